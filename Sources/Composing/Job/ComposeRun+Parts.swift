import Foundation
import MediaFiles

extension ComposeRun {
    /// How often a part is tried as it is. A process can be killed for reasons that have nothing to do with its input, such as too
    /// little memory.
    private static let attempts = 2

    /// Makes a chunk, unless it is there.
    func chunk(_ index: Int) async throws -> MadePart {
        let chunk = plan.chunks[index]
        let name = name(of: index)
        if files.tracks(JobFiles.path(name))?.frames == chunk.frames.count { return .kept(name: name) }
        var last = ""
        for _ in 0..<Self.attempts {
            if try await encode(index, to: name, &last) { return .made(name: name, damaged: []) }
        }
        let damaged = try await damaged(in: chunk)
        files.note(
            "Chunk \(index) fails. These files cannot be decoded there: \(damaged.sorted().joined(separator: ", "))")
        // Without a culprit, a third attempt shows whether the failure was by chance.
        guard try await encode(index, black: damaged, to: name, &last) else {
            throw ComposeError.failed(part: "chunk \(index)", message: last)
        }
        return .made(name: name, damaged: damaged.sorted())
    }

    /// Makes a chunk of an archive that is still recorded, unless it is there. If it fails, it is tried again after the end of the archive.
    ///
    /// - Parameter ranges: what to read of the files that are still being recorded.
    func settledChunk(_ index: Int, ranges: [String: RecordedRange]) async throws {
        let name = name(of: index)
        guard files.tracks(JobFiles.path(name))?.frames != plan.chunks[index].frames.count else { return }
        var reason = ""
        _ = try await encode(index, ranges: ranges, to: name, &reason)
    }

    /// The name of a finished chunk. It differs if the command or the part of its files on which it depends does.
    private func name(of index: Int) -> String {
        let chunk = plan.chunks[index]
        let extents = chunk.sources.map { source in
            source.file.map { chunk.extent(of: source, clusters[$0], size: files.size($0) ?? 0) } ?? 0
        }
        let key = arguments.chunk(chunk, output: "").key(sizes: extents)
        return "chunk-\(index)-\(String(key, radix: 16)).mp4"
    }

    private func encode(
        _ index: Int, black: Set<String> = [], ranges: [String: RecordedRange] = [:], to name: String,
        _ reason: inout String
    ) async throws -> Bool {
        let chunk = plan.chunks[index]
        // Another name for each attempt. The ffmpeg of a killed process may still write to its own.
        let unfinished = JobFiles.path("\(UUID().uuidString).part")
        defer { files.remove(unfinished) }
        let command = arguments.chunk(chunk, black: black, ranges: ranges, output: unfinished)
        let outcome = try await run(command, frames: chunk.frames.count) { line in
            if line.hasPrefix("frame="), let frames = Int(line.dropFirst(6)) { report(index, frames) }
        }
        guard outcome.isSuccess, files.tracks(unfinished)?.frames == chunk.frames.count else {
            try failIfFull(outcome)
            reason = outcome.isSuccess ? "too few frames" : outcome.reason
            files.note("Chunk \(index) failed: \(reason)")
            return false
        }
        try files.rename(unfinished, to: JobFiles.path(name))
        files.note("Made \(name).")
        return true
    }

    /// Returns the files of which ffmpeg cannot decode a single frame for a chunk.
    private func damaged(in chunk: ComposedChunk) async throws -> Set<String> {
        var damaged: Set<String> = []
        for source in chunk.sources {
            guard let file = source.file else { continue }
            let lines = Lines()
            let outcome = try await run(arguments.probe(source, in: chunk), frames: chunk.frames.count) {
                lines.append(String($0))
            }
            // The lines of the format begin with the stream's number; lines about it begin with #.
            if !outcome.isSuccess || !lines.all.contains(where: { $0.hasPrefix("0,") }) { damaged.insert(file) }
        }
        return damaged
    }

    /// Makes the audio, unless it is there.
    func audio() async throws -> MadePart {
        let sizes = plan.heard.map { files.size($0.file) ?? 0 }
        let key = arguments.audio(plan.heard, frames: plan.frames, output: "").key(sizes: sizes)
        let name = "audio-\(String(key, radix: 16)).m4a"
        if files.tracks(JobFiles.path(name)) != nil { return .kept(name: name) }
        var last = ""
        for _ in 0..<Self.attempts where try await mix(plan.heard, to: name, &last) {
            return .made(name: name, damaged: [])
        }
        var damaged: [String] = []
        for source in plan.heard where try await !run(arguments.probe(source), frames: plan.frames).isSuccess {
            damaged.append(source.file)
        }
        files.note("The audio fails. These files cannot be decoded: \(damaged.joined(separator: ", "))")
        let others = plan.heard.filter { !damaged.contains($0.file) }
        guard try await mix(others, to: name, &last) else {
            throw ComposeError.failed(part: "the audio", message: last)
        }
        return .made(name: name, damaged: damaged)
    }

    private func mix(_ sources: [HeardSource], to name: String, _ reason: inout String) async throws -> Bool {
        let prefix = UUID().uuidString
        var partial: [String] = []
        defer { for file in partial { files.remove(file) } }
        // Too many files for one command are mixed in groups, and those again.
        if sources.count > FFmpegArguments.maxMixed {
            for first in stride(from: 0, to: sources.count, by: FFmpegArguments.group) {
                let group = Array(sources[first..<min(sources.count, first + FFmpegArguments.group)])
                partial.append(JobFiles.path("\(prefix)-\(first).part"))
                let command = arguments.partialMix(group, output: partial[partial.count - 1])
                guard try await succeeds(command, &reason) else { return false }
            }
        }
        let unfinished = JobFiles.path("\(prefix).part")
        defer { files.remove(unfinished) }
        let command = arguments.audio(sources, partial: partial, frames: plan.frames, output: unfinished)
        guard try await succeeds(command, &reason) else { return false }
        guard files.tracks(unfinished)?.tracks.contains(where: { $0.kind == "soun" && $0.samples > 0 }) == true else {
            reason = "no samples"
            return false
        }
        try files.rename(unfinished, to: JobFiles.path(name))
        files.note("Made \(name).")
        return true
    }

    private func succeeds(_ command: FFmpegCommand, _ reason: inout String) async throws -> Bool {
        let outcome = try await run(command, frames: plan.frames)
        guard !outcome.isSuccess else { return true }
        try failIfFull(outcome)
        reason = outcome.reason
        files.note("The audio failed: \(reason)")
        return false
    }
}

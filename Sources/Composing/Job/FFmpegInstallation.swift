import Foundation

/// An ffmpeg that can compose archives.
public struct FFmpegInstallation: Hashable, Sendable {
    /// The oldest version that has all filters and options: `alimiter=latency`.
    public static let oldest = "5.1"

    /// The path of the executable.
    public var path: String
    /// What ffmpeg prints, such as `5.1.9-0+deb12u1`.
    public var version: String

    private static let limits = ChildProcess.Limits(processor: 20, seconds: 60, nice: 0)

    /// Finds ffmpeg, and asks it for its version and its codecs.
    ///
    /// - Parameter name: a path, or the name of a command in one of the folders of `PATH`.
    /// - Throws: `ComposeError` if it is missing, too old, or lacks a codec.
    public static func find(_ name: String = "ffmpeg") async throws -> FFmpegInstallation {
        guard let path = locate(name) else { throw ComposeError.ffmpegMissing(name) }
        let version = try await ask(path, "-version").first.map(version(of:)) ?? "of an unknown version"
        guard isNewEnough(version) else { throw ComposeError.ffmpegTooOld(version) }
        var missing: [String] = []
        for (list, names) in [("-encoders", ["libx264", "aac"]), ("-decoders", ["libopus"])] {
            let lines = try await ask(path, list)
            // A line is six letters of abilities, a name, and a description.
            let known = Set(lines.compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) })
            missing += names.filter { !known.contains($0) }
        }
        guard missing.isEmpty else { throw ComposeError.ffmpegIncomplete(missing) }
        return FFmpegInstallation(path: path, version: version)
    }

    /// Returns the path of an executable file; nil if there is none. Does not look whether it is ffmpeg.
    ///
    /// - Parameter name: as in `find`.
    public static func locate(_ name: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let paths = name.contains("/") ? [name] : folders.map { "\($0)/\(name)" }
        return paths.first { FileManager.default.isExecutableFile(atPath: $0) }
            .map { URL(filePath: $0).standardizedFileURL.path }
    }

    /// Returns the third word of `ffmpeg version 5.1.9 Copyright …`.
    static func version(of line: String) -> String {
        let words = line.split(separator: " ")
        return words.count > 2 ? String(words[2]) : "of an unknown version"
    }

    /// Whether the version is at least `oldest`. A build from the sources, which has no number, counts as new.
    static func isNewEnough(_ version: String) -> Bool {
        let digits = version.hasPrefix("n") ? version.dropFirst() : version[...]
        let numbers = digits.split(whereSeparator: { !$0.isNumber && $0 != "." }).first?.split(separator: ".")
            .compactMap { Int($0) }
        guard digits.first?.isNumber == true, let numbers, let major = numbers.first else {
            return version.hasPrefix("N-") || version.hasPrefix("git")
        }
        return (major, numbers.dropFirst().first ?? 0) >= (5, 1)
    }

    private static func ask(_ path: String, _ question: String) async throws -> [String] {
        let lines = Lines()
        let outcome = try await ChildProcess.run(path, ["-hide_banner", question], directory: "/", limits: limits) {
            lines.append(String($0))
        }
        guard outcome.isSuccess else { throw ComposeError.failed(part: question, message: outcome.reason) }
        return lines.all
    }
}

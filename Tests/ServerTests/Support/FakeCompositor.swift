import Broadcasting
import Foundation
import LiveComposing
import MediaFiles
import TestSupport
import Testing

/// A script that stands in for confab-compositor, which needs FFmpeg's headers to be built.
struct FakeCompositor: Sendable {
    /// The folder of the script. Delete it with `remove`.
    let folder: String
    /// The path of the script.
    var path: String { "\(folder)/compositor" }

    /// Writes a script.
    ///
    /// - Parameter lines: of a shell script. Descriptor 3 is the socket to the server.
    init(_ lines: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "confab-compositor-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data("#!/bin/sh\n\(lines)\n".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
    }

    /// A compositor that sends this output at once, notes the types of the messages that it gets in the file `inputs`, and exits when it
    /// is stopped.
    init(output: [UInt8] = []) throws {
        // A message begins with its length in four bytes, which counts the type and what follows it.
        try self.init(
            #"""
            folder=$(dirname "$0")
            cat "$folder/output" >&3
            while header=$(head -c 5 <&3 | od -An -v -tu1) && [ -n "$header" ]; do
              set -- $header
              echo $5 >> "$folder/inputs"
              [ $5 -ne 7 ] || exit 0
              head -c $(( ($1 << 24) + ($2 << 16) + ($3 << 8) + $4 - 1 )) <&3 >/dev/null
            done
            """#)
        try Data(output).write(to: URL(filePath: "\(folder)/output"))
    }

    /// The types of the messages that it got.
    var inputs: [CompositorInput.Kind] {
        let text = (try? String(contentsOfFile: "\(folder)/inputs", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { UInt8($0).flatMap(CompositorInput.Kind.init) }
    }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }

    // MARK: Output

    static let canEncode = ChildProgram.path("ffmpeg") != nil

    /// Returns what a compositor would send: a test pattern with a tone, of 160 × 120, with a keyframe each 1.92 s, in fragments of
    /// 400 ms. Made by ffmpeg.
    static func output(seconds: Int, _ settings: HLSSettings) throws -> [UInt8] {
        let fake = try FakeCompositor("")
        defer { fake.remove() }
        let file = "\(fake.folder)/out.mp4"
        let made = try ChildProgram.run(
            "ffmpeg",
            [
                "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=\(seconds)", "-f", "lavfi", "-i",
                "sine=1000:r=48000:d=\(seconds)", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "48",
                "-keyint_min", "48", "-sc_threshold", "0", "-c:a", "aac", "-b:a", "48k", "-ac", "1", "-movflags",
                "empty_moov+default_base_moof+frag_keyframe", "-frag_duration", "400000", file,
            ])
        try #require(made.status == 0, "\(made.standardError)")
        var segmenter = Segmenter(settings.segmenting)
        var output: [UInt8] = []
        for item in try segmenter.take([UInt8](try Data(contentsOf: URL(filePath: file)))) {
            switch item {
            case .initialization(let initialization):
                output += CompositorOutput.initialization(at: .zero, initialization.bytes).message.bytes
            case .part(let part):
                let fragment = CompositorFragment(
                    time: part.start, duration: part.duration, isKeyframe: part.isIndependent, bytes: part.bytes)
                output += CompositorOutput.fragment(fragment).message.bytes
            }
        }
        return output
    }
}

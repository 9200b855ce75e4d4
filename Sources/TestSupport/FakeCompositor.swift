import Foundation

/// A script that stands in for confab-compositor, which needs FFmpeg's headers to be built.
public struct FakeCompositor: Sendable {
    /// The folder of the script. Delete it with `remove`.
    public let folder: String
    /// The path of the script.
    public var path: String { "\(folder)/compositor" }

    /// Writes a script.
    ///
    /// - Parameter lines: of a shell script. Descriptor 3 is the socket to the server.
    public init(_ lines: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "confab-compositor-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Self.write(lines, in: folder)
    }

    /// A compositor that sends some messages, notes the types of the messages that it gets in the file `inputs`, and exits when it is
    /// stopped.
    ///
    /// - Parameters:
    ///   - messages: sent at once.
    ///   - later: sent after that, one each second.
    public init(sending messages: [[UInt8]] = [], later: [[UInt8]] = []) throws {
        // A message begins with its length in four bytes, which counts the type and what follows it. The loop in the background has
        // nothing open but the socket, and ends with the script, so that the server sees the end of both.
        try self.init(
            #"""
            folder=$(dirname "$0")
            cat "$folder/output" >&3
            for message in "$folder"/later/*; do
              [ -e "$message" ] || exit 0
              sleep 1 3>&-
              kill -0 $$ && cat "$message" >&3 || exit 0
            done >/dev/null 2>&1 &
            while header=$(head -c 5 <&3 | od -An -v -tu1) && [ -n "$header" ]; do
              set -- $header
              echo $5 >> "$folder/inputs"
              [ $5 -ne 7 ] || { kill $! 2>/dev/null; exit 0; }
              head -c $(( ($1 << 24) + ($2 << 16) + ($3 << 8) + $4 - 1 )) <&3 >/dev/null
            done
            """#)
        try Data(messages.joined()).write(to: URL(filePath: "\(folder)/output"))
        try FileManager.default.createDirectory(atPath: "\(folder)/later", withIntermediateDirectories: true)
        for (number, message) in later.enumerated() {
            // The shell sorts the names as text.
            try Data(message).write(to: URL(filePath: "\(folder)/later/\(100_000 + number)"))
        }
    }

    /// Deletes the folder of the compositor.
    public func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// Writes a script that stands in for the compositor, and returns its path.
    ///
    /// - Parameter lines: of a shell script. Descriptor 3 is the socket to the server.
    @discardableResult
    public static func write(_ lines: String, in folder: String) throws -> String {
        let path = "\(folder)/compositor"
        try Data("#!/bin/sh\n\(lines)\n".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        return path
    }

    // MARK: Output

    /// Whether ffmpeg is installed, which the functions below need.
    public static let canEncode = ChildProgram.path("ffmpeg") != nil

    /// Returns fragmented MP4 that ffmpeg makes: a test pattern of 160 × 120 with 25 frames per second and a keyframe each 48 frames,
    /// and a tone, in fragments of about 400 ms.
    public static func fragmentedMP4(seconds: Double) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appending(path: "confab-output-\(UUID()).mp4")
        defer { try? FileManager.default.removeItem(at: file) }
        let made = try ChildProgram.run(
            "ffmpeg",
            [
                "-hide_banner", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=\(seconds)", "-f",
                "lavfi", "-i", "sine=1000:r=48000:d=\(seconds)", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0",
                "-g", "48", "-keyint_min", "48", "-sc_threshold", "0", "-c:a", "aac", "-b:a",
                "48k", "-ac", "1", "-movflags", "empty_moov+default_base_moof+frag_keyframe", "-frag_duration",
                "400000", file.path,
            ])
        guard made.status == 0, made.standardError.isEmpty else {
            throw ChildProgram.Failure(description: "ffmpeg has failed: \(made.standardError)")
        }
        return [UInt8](try Data(contentsOf: file))
    }

    /// Returns what a compositor would send: the start of the MP4 file, and a message for each fragment of `fragmentedMP4`.
    public static func messages(seconds: Double) throws -> [[UInt8]] {
        let bytes = try fragmentedMP4(seconds: seconds)
        var messages: [[UInt8]] = []
        // The offsets of the next box, and of the first one that is in no message yet.
        var (offset, first) = (0, 0)
        while bytes.count - offset >= 8 {
            let size = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            let name = String(decoding: bytes[offset + 4..<offset + 8], as: UTF8.self)
            guard size >= 8, size <= bytes.count - offset else {
                throw ChildProgram.Failure(description: "The MP4 box \(name) of \(size) bytes is not possible.")
            }
            offset += size
            // The numbers are those of `CompositorOutput.Kind`. The duration before a fragment is in microseconds.
            switch name {
            case "moov": messages.append(message(65, Array(bytes[first..<offset])))
            case "mdat": messages.append(message(66, bigEndian(400_000, count: 4) + bytes[first..<offset]))
            default: continue
            }
            first = offset
        }
        return messages
    }

    /// Returns a message of this type, of no stream and for the time 0, without flags (`CompositorMessage`).
    private static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
        let header = [type] + [UInt8](repeating: 0, count: 13)
        return bigEndian(header.count + body.count, count: 4) + header + body
    }

    private static func bigEndian(_ number: Int, count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}

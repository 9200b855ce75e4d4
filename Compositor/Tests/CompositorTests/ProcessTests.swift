import Foundation
import LiveComposing
import TestSupport
import Testing

/// Runs the executable as the server does: with a socket as descriptor 3.
@Suite("confab-compositor", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"), .serialized)
struct ProcessTests {
    /// The executable beside this one.
    private static var executable: String {
        let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return tests.deletingLastPathComponent().appending(path: "confab-compositor").path
    }

    /// Starts the executable, sends the bytes, and reads until it closes the socket.
    ///
    /// - Parameter fragments: after so many fragments it is stopped.
    private static func run(_ bytes: [UInt8], stopAfter fragments: Int = .max) throws -> (
        status: Int32?, output: [CompositorOutput]
    ) {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { close(ends[0]) }
        let program = try ChildProgram("/bin/sh", ["-c", "exec \"$0\" 3<&0 </dev/null", executable], input: ends[1])
        close(ends[1])
        // A thread, because the compositor may wait until its output is read. It has a descriptor of its own, because it may send
        // longer than this function reads.
        let (descriptor, sending) = (ends[0], dup(ends[0]))
        try #require(sending >= 0)
        Thread.detachNewThread {
            defer { close(sending) }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(sending, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
        var reader = CompositorMessageReader()
        var output: [CompositorOutput] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            reader.append(buffer.prefix(count))
            while let message = try reader.next() { output.append(try CompositorOutput(message)) }
            if output.count(where: { if case .fragment = $0 { true } else { false } }) == fragments {
                let stop = CompositorInput.stop(at: .seconds(60)).message.bytes
                _ = stop.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
        }
        return (program.waitForEnd(seconds: 60), output)
    }

    @Test("composes what comes through its socket in real time, and exits when it is stopped")
    func real() throws {
        try TestMedia.with { media in
            let configuration = CompositorConfiguration(width: 640, height: 360, delay: .milliseconds(400))
            let cell = CompositorCell(stream: 1, x: 0, y: 0, width: 640, height: 360)
            var inputs: [CompositorInput] = [
                .config(configuration, at: .zero), .open(stream: 1, .vp8, configuration: []),
                .layout(CompositorLayout([cell]), at: .zero),
            ]
            inputs += try media.flashes(of: 1, seconds: 3).sorted { $0.time < $1.time }
            // Five fragments end at 2.4 s, and the delay is composed after the stop.
            let (status, output) = try Self.run(inputs.flatMap { $0.message.bytes }, stopAfter: 5)
            #expect(status == 0)
            var file: [UInt8] = []
            for case .initialization(_, let bytes) in output { file += bytes }
            for case .fragment(let fragment) in output { file += fragment.bytes }
            for case .fault(let fault) in output { Issue.record("\(fault)") }
            let composed = try ComposedFile(file, media, width: 640, height: 360)
            let (worst, flashes) = composed.lipSync(320, 180)
            #expect(composed.frames >= 70 && flashes >= 2 && worst <= 0.04)
        }
    }

    @Test("reports a fatal fault for bytes that are no messages, and exits")
    func garbage() throws {
        for bytes in [[UInt8](repeating: 0xff, count: 100), CompositorInput.close(stream: 1).message.bytes] {
            let (status, output) = try Self.run(bytes)
            #expect(status == 1)
            let faults = output.compactMap { if case .fault(let fault) = $0 { fault } else { nil } }
            #expect(faults.map(\.isFatal) == [true] && faults.first?.text.isEmpty == false)
        }
    }

    @Test("exits without a socket, and says why")
    func alone() throws {
        let result = try ChildProgram.run(Self.executable, [])
        #expect(result.status == 2 && result.standardError.contains("socket"))
    }
}

import Layout
import Testing

@testable import LiveComposing

/// Tests the messages between the server and the compositor. To add a message, add a row.
@Suite("Messages of the compositor")
struct CompositorMessageTests {
    private static let cell = CompositorCell(stream: 7, x: 2, y: 4, width: 640, height: 360, fit: .cover)
    private static var stats: CompositorStats {
        var stats = CompositorStats()
        (stats.frames, stats.behind, stats.load, stats.preset) = (48, .milliseconds(20), 55, "veryfast")
        (stats.streams, stats.dropped, stats.damaged) = (3, 2, 1)
        return stats
    }

    /// Each message to the compositor: how many bytes follow, type, stream, time, flags, and the body.
    private static let inputs: [(CompositorInput, String, String)] = [
        (
            .config(CompositorConfiguration(), at: .seconds(1)), "00000054 01 00000000 00000000000f4240 00",
            #"{"width":1280,"height":720,"bitrate":2000000,"delay":2000,"threads":1}"#
        ),
        (
            .layout(CompositorLayout([cell]), at: .milliseconds(40)), "00000059 02 00000000 0000000000009c40 00",
            #"{"cells":[{"stream":7,"x":2,"y":4,"width":640,"height":360,"fit":"cover"}]}"#
        ),
        (.open(stream: 7, .h264, configuration: [1, 0x42]), "00000011 03 00000007 0000000000000000 00 04 01 42", ""),
        (.open(stream: 8, nil, configuration: []), "0000000f 03 00000008 0000000000000000 00 00", ""),
        (
            .video(stream: 7, at: .microseconds(1), isKeyframe: true, [9, 8]),
            "00000010 04 00000007 0000000000000001 01 09 08", ""
        ),
        (
            .video(stream: 7, at: .microseconds(2), isKeyframe: false, [9]),
            "0000000f 04 00000007 0000000000000002 00 09", ""
        ),
        (
            .audio(stream: .max, at: .seconds(3_600), [0xf8, 0xff, 0xfe]),
            "00000011 05 ffffffff 00000000d693a400 00 f8 ff fe", ""
        ),
        (.close(stream: 7), "0000000e 06 00000007 0000000000000000 00", ""),
        (.stop(at: .seconds(2)), "0000000e 07 00000000 00000000001e8480 00", ""),
    ]

    /// Each message from the compositor.
    private static let outputs: [(CompositorOutput, String, String)] = [
        (.initialization(at: .seconds(1), [1, 2]), "00000010 41 00000000 00000000000f4240 00 01 02", ""),
        (
            .fragment(.init(time: .zero, duration: .milliseconds(480), isKeyframe: true, bytes: [7])),
            "00000013 42 00000000 0000000000000000 01 00075300 07", ""
        ),
        (
            .stats(stats), "00000077 43 00000000 0000000000000000 00",
            #"{"frames":48,"behind":20,"load":55,"preset":"veryfast","interval":40,"streams":3,"dropped":2,"damaged":1}"#
        ),
        (.needKeyframe(stream: 5), "0000000e 44 00000005 0000000000000000 00", ""),
        (.fault(.init("No.", stream: 5)), "00000011 45 00000005 0000000000000000 00", "No."),
        (.fault(.init("No.", isFatal: true)), "00000011 45 00000000 0000000000000000 01", "No."),
    ]

    private static func bytes(_ hexadecimal: String, _ text: String) -> [UInt8] {
        let digits = Array(hexadecimal.filter { $0 != " " })
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
            + Array(text.utf8)
    }

    @Test("to the compositor have these bytes, and are read back")
    func inputBytes() throws {
        for (input, hexadecimal, text) in Self.inputs {
            let bytes = Self.bytes(hexadecimal, text)
            #expect(input.message.bytes == bytes, "\(input)")
            #expect(try Self.messages(bytes).map { try CompositorInput($0) } == [input])
        }
    }

    @Test("from the compositor have these bytes, and are read back")
    func outputBytes() throws {
        for (output, hexadecimal, text) in Self.outputs {
            let bytes = Self.bytes(hexadecimal, text)
            #expect(output.message.bytes == bytes, "\(output)")
            #expect(try Self.messages(bytes).map { try CompositorOutput($0) } == [output])
        }
    }

    private static func messages(_ bytes: [UInt8], pieces: Int = .max) throws -> [CompositorMessage] {
        var reader = CompositorMessageReader()
        var messages: [CompositorMessage] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            reader.append(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            while let message = try reader.next() { messages.append(message) }
        }
        return messages
    }

    @Test("are the same however the socket divides them", arguments: [1, 3, 17, 100])
    func pieces(size: Int) throws {
        let all = Self.inputs.flatMap { $0.0.message.bytes }
        #expect(try Self.messages(all, pieces: size) == Self.inputs.map { $0.0.message })
    }

    @Test(
        "with a length or a time out of range end the connection",
        arguments: [
            "0000000d 07 00000000 0000000000000000 ", "0040000f 04 00000007 0000000000000000 01", "ffffffff 07",
            "0000000e 07 00000000 ffffffffffffffff 00", "0000000e 07 00000000 00038d7ea4c68001 00",
        ])
    func badMessages(_ hexadecimal: String) {
        #expect(throws: CompositorMessageError.self) { try Self.messages(Self.bytes(hexadecimal, "")) }
    }

    @Test("that the compositor cannot use are refused with a sentence")
    func badInputs() {
        func refuses(_ type: CompositorInput.Kind, stream: UInt32 = 1, _ body: String, _ bytes: [UInt8] = []) {
            let message = CompositorMessage(type: type.rawValue, stream: stream, body: Array(body.utf8) + bytes)
            #expect(throws: CompositorMessageError.self, "\(type) \(body)") { try CompositorInput(message) }
        }
        let others = #""bitrate":2000000,"delay":2000,"threads":1}"#
        refuses(.config, #"{"width":1281,"height":720,"# + others)
        refuses(.config, #"{"width":1280,"height":20000,"# + others)
        refuses(.config, #"{"width":1280,"height":720,"bitrate":1,"delay":2000,"threads":1}"#)
        refuses(.config, #"{"width":1280,"height":720,"bitrate":2000000,"delay":1,"threads":1}"#)
        refuses(.config, "[]")
        refuses(.layout, #"{"cells":[{"stream":7,"x":1,"y":4,"width":640,"height":360,"fit":"cover"}]}"#)
        refuses(.layout, #"{"cells":[{"stream":7,"x":0,"y":4,"width":640,"height":360,"fit":"fill"}]}"#)
        refuses(.layout, #"{"cells":[{"stream":7,"x":0,"y":4,"width":0,"height":360,"fit":"cover"}]}"#)
        let cell = #"{"stream":7,"x":0,"y":4,"width":2,"height":360,"fit":"cover"}"#
        refuses(.layout, #"{"cells":[\#(Array(repeating: cell, count: 17).joined(separator: ","))]}"#)
        refuses(.layout, String(repeating: " ", count: CompositorInput.maxJSON) + "{}")
        refuses(.open, "", [5])
        refuses(.open, "")
        refuses(.open, stream: 0, "", [1])
        refuses(.open, "", [UInt8](repeating: 1, count: CompositorInput.maxCodecConfiguration + 2))
        refuses(.video, "")
        refuses(.audio, "")
        refuses(.audio, "", [UInt8](repeating: 0, count: CompositorInput.maxAudio + 1))
        #expect(throws: CompositorMessageError.self) { try CompositorInput(CompositorMessage(type: 8)) }
        #expect(throws: CompositorMessageError.self) { try CompositorOutput(CompositorMessage(type: 7)) }
        #expect(throws: CompositorMessageError.self) {
            try CompositorOutput(CompositorMessage(type: 66, body: [0, 0, 0, 1]))
        }
    }
}

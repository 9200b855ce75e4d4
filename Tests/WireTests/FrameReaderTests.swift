import Testing

import Wire

/// Tests what a client may send on a WebSocket (RFC 6455 §5 and §7). To add a case, add a row.
@Suite("WebSocket frames")
struct FrameReaderTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var frames: [FrameReader.Frame]
        var last: FrameReader.Output
    }

    private static func frame(
        _ opcode: FrameReader.Opcode, _ payload: [UInt8] = [], final isFinal: Bool = true, reserved: Bool = false,
        masked: Bool = true
    ) -> FrameReader.Frame {
        .init(opcode: opcode, isFinal: isFinal, hasReservedBits: reserved, isMasked: masked, payload: payload)
    }

    private static let long = [UInt8](repeating: 0x61, count: 40)

    static let cases: [Case] = [
        Case(testDescription: "a whole text", frames: [frame(.text, [0x68, 0x69])], last: .text([0x68, 0x69])),
        Case(testDescription: "an empty text", frames: [frame(.text)], last: .text([])),
        Case(
            testDescription: "a text in three fragments, one of them empty",
            frames: [
                frame(.text, [1], final: false), frame(.continuation, [], final: false), frame(.continuation, [2]),
            ],
            last: .text([1, 2])),
        Case(
            testDescription: "a ping between two fragments is answered at once",
            frames: [frame(.text, [1], final: false), frame(.ping, [9])], last: .ping([9])),
        Case(
            testDescription: "the message continues after a ping between two fragments",
            frames: [frame(.text, [1], final: false), frame(.ping, [9]), frame(.continuation, [2])],
            last: .text([1, 2])),
        Case(testDescription: "an unsolicited pong", frames: [frame(.pong, [1])], last: .pong),
        Case(testDescription: "a close without a code", frames: [frame(.close)], last: .close(1005)),
        Case(testDescription: "a close with a code", frames: [frame(.close, [0x03, 0xE8])], last: .close(1000)),
        Case(
            testDescription: "an application's code", frames: [frame(.close, [0x0F, 0xA0, 0x62])], last: .close(4000)
        ),
        violation("unmasked", 1002, [frame(.text, [1], masked: false)], "client frames must be masked"),
        violation(
            "reserved bits", 1002, [frame(.text, [1], reserved: true)],
            "reserved bits must be 0 without an extension"),
        violation("a reserved opcode", 1002, [frame(.reserved)], "reserved opcode"),
        violation("binary", 1003, [frame(.binary, [1])], "only text messages are supported"),
        violation(
            "a continuation of nothing", 1002, [frame(.continuation, [1])],
            "continuation frame without a message"),
        violation(
            "a text message within another", 1002, [frame(.text, [1], final: false), frame(.text, [2])],
            "a new message began before the last one ended"),
        violation(
            "a ping in fragments", 1002, [frame(.ping, final: false)],
            "control frames must not be fragmented or exceed 125 bytes"),
        violation(
            "a ping of 126 bytes", 1002, [frame(.ping, [UInt8](repeating: 0, count: 126))],
            "control frames must not be fragmented or exceed 125 bytes"),
        violation("a close code with one byte", 1002, [frame(.close, [3])], "a close code must have two bytes"),
        violation("a close code that must not be sent", 1002, [frame(.close, [0x03, 0xED])], "invalid close code"),
        violation("a close code below 1000", 1002, [frame(.close, [0x00, 0x01])], "invalid close code"),
        violation("an unassigned close code", 1002, [frame(.close, [0x07, 0xD0])], "invalid close code"),
        violation(
            "a close reason that is not UTF-8", 1007, [frame(.close, [0x03, 0xE8, 0xC0])],
            "the close reason must be UTF-8"),
        violation("a message over the limit", 1009, [frame(.text, long + long)], "the message is too large"),
        violation(
            "a message over the limit in fragments", 1009,
            [frame(.text, long, final: false), frame(.continuation, long)], "the message is too large"),
    ]

    private static func violation(
        _ description: String, _ code: UInt16, _ frames: [FrameReader.Frame], _ reason: String
    ) -> Case {
        Case(testDescription: description, frames: frames, last: .violation(code, reason))
    }

    @Test("each case gets the expected answer", arguments: cases)
    func reading(testCase: Case) {
        var reader = FrameReader(limit: 64)
        var output = FrameReader.Output.nothing
        for frame in testCase.frames { output = reader.read(frame) }
        #expect(output == testCase.last)
    }
}

import Foundation

// The rules of RFC 6455 about frames, in the order of its sections.

extension WebSocketCase {
    /// The first message of `confab.v1`; the answer is `welcome`.
    static let hello = #"{"type":"hello","version":1}"#

    /// Returns a hello with exactly this many bytes. An unknown member, which the server ignores, fills it up.
    static func hello(bytes count: Int) -> [UInt8] {
        let (start, end) = (#"{"type":"hello","version":1,"padding":""#, #""}"#)
        return Array((start + String(repeating: "x", count: count - start.utf8.count - end.utf8.count) + end).utf8)
    }

    /// Returns a hello with these bytes as the name.
    static func hello(name: [UInt8]) -> [UInt8] {
        Array(#"{"type":"hello","version":1,"name":""#.utf8) + name + Array(#""}"#.utf8)
    }

    /// §5.1 and §5.2: the mask, the reserved bits, the opcodes.
    static let framing: [WebSocketCase] =
        [
            WebSocketCase("a masked text frame is accepted", .text(hello), is: [.message("welcome")]),
            WebSocketCase(
                "an unmasked text frame is refused", RawFrame(opcode: 1, payload: Array(hello.utf8), masked: false),
                closes: 1002),
            WebSocketCase(
                "an unmasked ping is refused", RawFrame(opcode: 9, payload: [1], masked: false), closes: 1002),
            WebSocketCase("an unmasked close is refused", RawFrame(opcode: 8, masked: false), closes: 1002),
            WebSocketCase("an unmasked empty text frame is refused", RawFrame(opcode: 1, masked: false), closes: 1002),
            WebSocketCase("a mask of zeros is valid", zeroMask, is: [.message("welcome")]),
            WebSocketCase("a binary message is refused", RawFrame(opcode: 2, payload: [1, 2, 3]), closes: 1003),
            WebSocketCase("an empty binary message is refused", RawFrame(opcode: 2), closes: 1003),
        ]
        + [1, 2, 4, 3, 5, 6, 7].flatMap { (bits: UInt8) in
            [
                WebSocketCase(
                    "reserved bits \(bits) in a text frame are refused",
                    RawFrame(opcode: 1, payload: Array(hello.utf8), rsv: bits), closes: 1002),
                WebSocketCase(
                    "reserved bits \(bits) in a ping are refused", RawFrame(opcode: 9, payload: [1], rsv: bits),
                    closes: 1002),
            ]
        }
        + [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].flatMap { (opcode: UInt8) in
            [
                WebSocketCase("opcode \(opcode) is refused", RawFrame(opcode: opcode), closes: 1002),
                WebSocketCase(
                    "opcode \(opcode) with a payload is refused", RawFrame(opcode: opcode, payload: [1, 2, 3]),
                    closes: 1002),
                WebSocketCase(
                    "opcode \(opcode) between fragments is refused", .text("{", final: false), RawFrame(opcode: opcode),
                    closes: 1002),
            ]
        }

    private static var zeroMask: RawFrame {
        var frame = RawFrame.text(hello)
        frame.mask = [0, 0, 0, 0]
        return frame
    }

    /// §5.4: fragments.
    static let fragments: [WebSocketCase] = [
        WebSocketCase(
            "two fragments are one message", .text(#"{"type":"hello","#, final: false),
            .continuation(#""version":1}"#, final: true), is: [.message("welcome")]),
        WebSocketCase(
            "empty fragments add nothing", .text("", final: false), .continuation("", final: false),
            .continuation(hello, final: false), .continuation("", final: false), .continuation("", final: true),
            is: [.message("welcome")]),
        WebSocketCase(
            "a message of one-byte fragments is one message",
            sends: [
                [RawFrame.text([], final: false)]
                    .map(\.bytes).joined() + hello.utf8.flatMap { RawFrame.continuation([$0], final: false).bytes }
                    + RawFrame.continuation([], final: true).bytes
            ], isOneOf: [[.message("welcome")]]),
        WebSocketCase(
            "a final continuation without a message is refused", .continuation(hello, final: true), closes: 1002),
        WebSocketCase("a continuation without a message is refused", .continuation(hello, final: false), closes: 1002),
        WebSocketCase(
            "a continuation after a whole message is refused", .text(hello), .continuation("x", final: true),
            is: [.message("welcome"), .message("malformed"), .closed(1002)]),
        WebSocketCase(
            "a text message within another is refused", .text("{", final: false), .text(hello), closes: 1002),
        WebSocketCase(
            "a fragment that begins a text message within another is refused", .text("{", final: false),
            .text("{", final: false), closes: 1002),
        WebSocketCase(
            "a binary frame within a text is refused", .text("{", final: false), RawFrame(opcode: 2, payload: [1]),
            closes: 1002, 1003),
        WebSocketCase(
            "a fragmented binary message is refused", RawFrame(opcode: 2, payload: [1], final: false), closes: 1003),
        WebSocketCase(
            "pings between fragments are answered before the message is", .text(#"{"type":"#, final: false),
            .ping([1, 2]), .continuation(#""hello","#, final: false), .ping([]),
            .continuation(#""version":1}"#, final: true),
            is: [.pong([1, 2]), .pong([]), .message("welcome")]),
        WebSocketCase(
            "a pong between fragments is ignored", .text(#"{"type":"hello","#, final: false), .pong([9]),
            .continuation(#""version":1}"#, final: true), is: [.message("welcome")]),
        WebSocketCase(
            "a close between fragments is answered", .text("{", final: false), .close(1000), closes: 1000),
        WebSocketCase("an unfinished message keeps the connection open", .text("{", final: false), is: []),
        WebSocketCase(
            "endless fragments are refused", sends: endlessFragments, isOneOf: [[.closed(1009)]]),
    ]

    /// 20 fragments of 16 KiB. Together they exceed every limit, but each frame is below the limit.
    private static var endlessFragments: [[UInt8]] {
        let part = [UInt8](repeating: 0x20, count: 16 * 1024)
        return [RawFrame.text(part, final: false).bytes]
            + (0..<20).map { _ in RawFrame.continuation(part, final: false).bytes }
    }

    /// §5.5: control frames.
    static let control: [WebSocketCase] =
        [
            WebSocketCase("an empty ping is echoed", .ping([]), is: [.pong([])]),
            WebSocketCase("a ping of one byte is echoed", .ping([0xFF]), is: [.pong([0xFF])]),
            WebSocketCase("a ping of 125 bytes is echoed", .ping(full), is: [.pong(full)]),
            WebSocketCase(
                "three pings are echoed in order", .ping([1]), .ping([2]), .ping([3]),
                is: [.pong([1]), .pong([2]), .pong([3])]),
            WebSocketCase("an unsolicited pong is ignored", .pong([1, 2, 3]), is: []),
            WebSocketCase("an unsolicited empty pong is ignored", .pong([]), is: []),
            WebSocketCase("an unasked pong of 125 bytes is ignored", .pong(full), .ping([1]), is: [.pong([1])]),
        ]
        + [(8, "close"), (9, "ping"), (10, "pong")].flatMap { (opcode: UInt8, name: String) in
            [
                WebSocketCase(
                    "a fragmented \(name) is refused", RawFrame(opcode: opcode, final: false), closes: 1002),
                WebSocketCase(
                    "a fragmented \(name) between fragments is refused", .text("{", final: false),
                    RawFrame(opcode: opcode, final: false), closes: 1002),
                WebSocketCase(
                    "a \(name) of 126 bytes is refused",
                    RawFrame(opcode: opcode, payload: [3, 232] + [UInt8](repeating: 0x61, count: 124)),
                    closes: 1002),
                WebSocketCase(
                    "a \(name) of 64 KiB is refused",
                    RawFrame(opcode: opcode, payload: [3, 232] + [UInt8](repeating: 0x61, count: 65536)),
                    closes: 1002),
            ]
        }

    private static let full = [UInt8]((0..<125).map { UInt8($0) })
}

import Foundation

// The rules of RFC 6455 about closing, UTF-8 and lengths.

extension WebSocketCase {
    /// §5.5.1 and §7.4: the close handshake.
    static let closing: [WebSocketCase] =
        [
            WebSocketCase(
                "a close without a code is answered", sends: [RawFrame(opcode: 8).bytes],
                isOneOf: [[.closed(1000)], [.closed(1005)]]),
            WebSocketCase("a close with one byte is refused", RawFrame(opcode: 8, payload: [3]), closes: 1002),
            WebSocketCase(
                "a reason of 123 bytes is read", .close(1000, [UInt8](repeating: 0x61, count: 123)), closes: 1000),
            WebSocketCase("a reason in UTF-8 is read", .close(1000, Array("goodbye, Zoë ✓".utf8)), closes: 1000),
            WebSocketCase("a reason that is not UTF-8 is refused", .close(1000, [0x61, 0xFF]), closes: 1007),
            WebSocketCase(
                "a reason that ends within a character is refused", .close(1000, [0xE2, 0x9C]), closes: 1007),
            WebSocketCase("frames after a close are ignored", .close(1000), .text(hello), .ping([1]), closes: 1000),
            WebSocketCase("a second close is ignored", .close(1000), .close(1002), closes: 1000),
            WebSocketCase(
                "an invalid frame after a close is ignored", .close(1001), RawFrame(opcode: 3),
                closes: 1001),
            WebSocketCase(
                "a close is answered after the message before it", .text(hello), .close(1000),
                is: [.message("welcome"), .closed(1000)]),
        ]
        + ([1000, 1001, 1002, 1003] + Array(1007...1014) + [3000, 3999, 4000, 4400, 4999]).map { (code: UInt16) in
            WebSocketCase("a close with \(code) is answered with it", .close(code), closes: code)
        }
        + ([0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535]).map { (code: UInt16) in
            WebSocketCase("a close with the reserved code \(code) is refused", .close(code), closes: 1002)
        }

    /// §5.6 and §8.1: a text is valid UTF-8 as a whole, not each fragment.
    static let text: [WebSocketCase] =
        [
            WebSocketCase(
                "characters of every length are accepted", .text(hello(name: letters)), is: [.message("welcome")]),
            WebSocketCase(
                "characters split between fragments are accepted", sends: [cut(hello(name: letters))],
                isOneOf: [[.message("welcome")]]),
            WebSocketCase(
                "a character split between the last two fragments is accepted",
                .text(Array(#"{"type":"hello","version":1,"name":"\#u{20AC}"#.utf8).dropLast(), final: false),
                .continuation([0xAC] + Array(#""}"#.utf8), final: true), is: [.message("welcome")]),
            WebSocketCase(
                "an invalid UTF-8 sequence that is split between fragments is refused",
                .text(Array(#"{"type":"hello","version":1,"name":"#.utf8), final: false),
                .continuation([0x22, 0xC3], final: false), .continuation([0x22, 0x7D], final: true), closes: 1007),
            WebSocketCase(
                "a message that ends within a character is refused", .text([0x7B, 0xF0, 0x9F, 0x98]), closes: 1007),
            WebSocketCase(
                "a fragmented message that ends within a character is refused", .text([0x7B, 0xE2], final: false),
                .continuation([0x82], final: true), closes: 1007),
        ]
        + notUTF8.flatMap { (name: String, bytes: [UInt8]) in
            [
                WebSocketCase("\(name) in a JSON string is refused", .text(hello(name: bytes)), closes: 1007),
                WebSocketCase("\(name) outside of JSON is refused", .text(bytes), closes: 1007),
                WebSocketCase(
                    "\(name) after the welcome is refused", .text(hello), .text(hello(name: bytes)),
                    is: [.message("welcome"), .message("malformed"), .closed(1007)]),
            ]
        }

    /// Text with characters of one, two, three and four bytes.
    private static let letters = Array("a é € 😀".utf8)

    private static let notUTF8: [(String, [UInt8])] = [
        ("a lone continuation byte", [0x80]),
        ("0xFF", [0xFF]),
        ("0xFE", [0xFE]),
        ("an overlong slash", [0xC0, 0xAF]),
        ("an overlong NUL", [0xC0, 0x80]),
        ("an overlong character of three bytes", [0xE0, 0x80, 0xAF]),
        ("an overlong character of four bytes", [0xF0, 0x80, 0x80, 0xAF]),
        ("a high surrogate", [0xED, 0xA0, 0x80]),
        ("a low surrogate", [0xED, 0xBF, 0xBF]),
        ("a surrogate pair", [0xED, 0xA1, 0x80, 0xED, 0xB0, 0x80]),
        ("a letter above U+10FFFF", [0xF4, 0x90, 0x80, 0x80]),
        ("a character of five bytes", [0xF8, 0x88, 0x80, 0x80, 0x80]),
        ("a character of six bytes", [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80]),
        ("a truncated character", [0xE2, 0x82, 0x61]),
    ]

    /// Returns the message with each byte in a separate fragment.
    private static func cut(_ bytes: [UInt8]) -> [UInt8] {
        bytes.enumerated().flatMap { index, byte in
            RawFrame(opcode: index == 0 ? 1 : 0, payload: [byte], final: index == bytes.count - 1).bytes
        }
    }

    /// §5.2: lengths. 64 KiB and 256 KiB are limits of `confab.v1` (protocol §1, §2).
    static let lengths: [WebSocketCase] =
        [125, 126, 127, 128, 65534, 65535, 65536].map { count in
            WebSocketCase("a message of \(count) bytes is taken", .text(hello(bytes: count)), is: [.message("welcome")])
        } + [
            WebSocketCase(
                "a message one byte above the limit is refused", .text(hello(bytes: 65537)),
                is: [.message("message_too_large"), .closed(4413)]),
            WebSocketCase(
                "a fragmented message above the limit is refused",
                .text(Array(hello(bytes: 65537).prefix(40000)), final: false),
                .continuation(Array(hello(bytes: 65537).dropFirst(40000)), final: true),
                is: [.message("message_too_large"), .closed(4413)]),
            WebSocketCase(
                "a message of 256 KiB without a session description is refused", .text(hello(bytes: 262_144)),
                is: [.message("message_too_large"), .closed(4413)]),
            WebSocketCase("a frame above every limit is refused", .text(hello(bytes: 262_145)), closes: 1009),
            WebSocketCase("a frame that announces 2 GiB is refused at its header", claim(1 << 31), closes: 1009),
            WebSocketCase("a frame that announces 1 TiB is refused at its header", claim(1 << 40), closes: 1009),
            WebSocketCase("a length with the highest bit set is refused", claim(1 << 63), closes: 1002, 1009),
            WebSocketCase("the largest possible length is refused", claim(.max), closes: 1002, 1009),
            WebSocketCase(
                "a continuation that claims 2 GiB is refused", .text("{", final: false),
                RawFrame(opcode: 0, payload: [1], claimedLength: 1 << 31), closes: 1009),
            WebSocketCase(
                "a ping that claims 2 GiB is refused",
                RawFrame(opcode: 9, payload: [1], claimedLength: 1 << 31), closes: 1002, 1009),
            longForm("a short length in 16 bits is refused", bytes: 100, .sixteenBits),
            longForm("a short length in 64 bits is refused", bytes: 100, .sixtyFourBits),
            longForm("a 16-bit length in 64 bits is refused", bytes: 1000, .sixtyFourBits),
            WebSocketCase(
                "a ping with a short length in 16 bits is refused",
                RawFrame(opcode: 9, payload: [1], lengthEncoding: .sixteenBits), closes: 1002),
            WebSocketCase(
                "an empty ping with its length in 64 bits is refused",
                RawFrame(opcode: 9, lengthEncoding: .sixtyFourBits), closes: 1002),
        ]

    private static func claim(_ length: UInt64) -> RawFrame {
        RawFrame(opcode: 1, payload: Array("{".utf8), claimedLength: length)
    }

    /// "The minimal number of bytes MUST be used to encode the length."
    private static func longForm(
        _ name: String, bytes count: Int, _ encoding: RawFrame.LengthEncoding
    ) -> WebSocketCase {
        let payload = hello(bytes: count)
        return WebSocketCase(name, RawFrame(opcode: 1, payload: payload, lengthEncoding: encoding), closes: 1002)
    }

    /// TCP does not preserve frame boundaries, so a frame may arrive in any pieces.
    static let segments: [WebSocketCase] = [
        WebSocketCase(
            "a frame that arrives byte by byte is accepted", sends: RawFrame.text(hello).bytes.map { [$0] },
            isOneOf: [[.message("welcome")]]),
        WebSocketCase(
            "a ping that arrives byte by byte is answered", sends: RawFrame.ping([1, 2, 3]).bytes.map { [$0] },
            isOneOf: [[.pong([1, 2, 3])]]),
        WebSocketCase(
            "a header split within its length is accepted",
            sends: [
                Array(RawFrame.text(hello(bytes: 300)).bytes.prefix(3)),
                Array(RawFrame.text(hello(bytes: 300)).bytes.dropFirst(3)),
            ], isOneOf: [[.message("welcome")]]),
        WebSocketCase(
            "a header split within its mask is accepted",
            sends: [
                Array(RawFrame.text(hello(bytes: 300)).bytes.prefix(6)),
                Array(RawFrame.text(hello(bytes: 300)).bytes.dropFirst(6)),
            ], isOneOf: [[.message("welcome")]]),
        WebSocketCase(
            "several frames in one segment are handled one by one", .ping([1]), .text(hello), .ping([2]),
            .text(#"{"type":"ping"}"#),
            is: [.pong([1]), .message("welcome"), .pong([2]), .message("pong")]),
        WebSocketCase(
            "the end of a frame and the start of the next may share a segment",
            sends: [
                Array(RawFrame.ping([1, 2]).bytes.dropLast()),
                Array(RawFrame.ping([1, 2]).bytes.suffix(1)) + Array(RawFrame.text(hello).bytes.prefix(10)),
                Array(RawFrame.text(hello).bytes.dropFirst(10)),
            ], isOneOf: [[.pong([1, 2]), .message("welcome")]]),
        WebSocketCase(
            "a frame in the segment of the upgrade is accepted", sends: [RawFrame.text(hello).bytes],
            isOneOf: [[.message("welcome")]], joinsUpgrade: true),
        WebSocketCase(
            "half a frame in the segment of the upgrade is accepted",
            sends: [
                Array(RawFrame.text(hello).bytes.prefix(3)), Array(RawFrame.text(hello).bytes.dropFirst(3)),
            ], isOneOf: [[.message("welcome")]], joinsUpgrade: true),
        WebSocketCase(
            "an invalid frame in the segment of the upgrade is refused", sends: [RawFrame(opcode: 3).bytes],
            isOneOf: [[.closed(1002)]], joinsUpgrade: true),
    ]
}

/// base64url without padding (RFC 4648 §5), as subscriptions, VAPID and JWT write bytes.
enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var (kept, count): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            kept = (kept & 0x3f) << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(kept >> count) & 63])
            }
        }
        if count > 0 { text.append(alphabet[Int(kept << (6 - count)) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for anything but the one spelling that ``encode(_:)`` has, padded or not: some libraries pad.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (kept, count): (UInt32, UInt32) = (0, 0)
        let digits = text.prefix { $0 != UInt8(ascii: "=") }
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            kept = (kept & 0x3ff) << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: kept >> count))
            }
        }
        let padding = text.dropFirst(digits.count)
        guard count < 6, kept & ((1 << count) - 1) == 0, padding.allSatisfy({ $0 == UInt8(ascii: "=") }),
            padding.isEmpty || (padding.count < 3 && (digits.count + padding.count).isMultiple(of: 4))
        else { return nil }
        return bytes
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a") + 26)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0") + 52)
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}

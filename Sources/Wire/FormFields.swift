/// The fields of a body in `application/x-www-form-urlencoded`.
public struct FormFields: Equatable, Sendable {
    /// Maximum number of fields. More are ignored.
    private static let maxFields = 32

    private var values: [String: String] = [:]
    /// False if a field was ignored because it is not UTF-8.
    public private(set) var isText = true

    /// Parses a body. Ignores fields that are not UTF-8. Keeps a value with invalid escapes unchanged, because
    /// PerchRTC's clients do not escape characters. If several fields have the same name, the first one counts.
    public init(_ body: [UInt8]) {
        for field in body.split(separator: UInt8(ascii: "&")).prefix(Self.maxFields) {
            let name = field.prefix { $0 != UInt8(ascii: "=") }
            guard let key = Self.text(name), let value = Self.text(field.dropFirst(name.count + 1)) else {
                isText = false
                continue
            }
            if values[key] == nil { values[key] = value }
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
        String(validating: decoded(bytes) ?? Array(bytes), as: UTF8.self)
    }

    public subscript(name: String) -> String? { values[name] }

    /// Decodes a name or value. Returns nil if an escape is invalid.
    static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

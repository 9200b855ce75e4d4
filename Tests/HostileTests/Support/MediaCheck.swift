import Crypto
import Foundation
import RTC

/// A STUN message in which a hostile client can set every field (RFC 8489 §5). The encoder does not use the server's
/// code.
struct MediaCheck {
    static let cookie: [UInt8] = [0x21, 0x12, 0xa4, 0x42]
    /// RFC 8489 §18.3, RFC 8445 §20.1.
    static let username: UInt16 = 0x0006
    static let messageIntegrity: UInt16 = 0x0008
    static let priority: UInt16 = 0x0024
    static let useCandidate: UInt16 = 0x0025
    static let fingerprintType: UInt16 = 0x8028
    static let controlled: UInt16 = 0x8029
    static let controlling: UInt16 = 0x802a

    struct Attribute {
        var type: UInt16
        var value: [UInt8]
        /// An incorrect value for the length field.
        var claimedLength: UInt16?

        var bytes: [UInt8] {
            let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
            return bigEndian(type) + bigEndian(claimedLength ?? UInt16(truncatingIfNeeded: value.count)) + value
                + padding
        }
    }

    /// A Binding request.
    var type: UInt16 = 0x0001
    var start = Self.cookie
    var transaction = (0..<12).map { _ in UInt8.random(in: .min ... .max) }
    var attributes: [Attribute] = []
    /// The key of MESSAGE-INTEGRITY. Without a key, the message does not contain that attribute.
    var key: String?
    var hasFingerprint = true
    /// An incorrect value for the length field.
    var claimedLength: UInt16?

    init() {}

    /// Creates the check that a browser would send to the server after this answer.
    init(to answer: MediaOffering.Answer, from ufrag: String, nominates: Bool = false) {
        attributes = [
            Attribute(type: Self.username, value: Array("\(answer.credentials.ufrag):\(ufrag)".utf8)),
            Attribute(type: Self.priority, value: [0x6e, 0, 0xff, 0xff]),
            Attribute(type: Self.controlling, value: [1, 2, 3, 4, 5, 6, 7, 8]),
        ]
        if nominates { attributes.append(Attribute(type: Self.useCandidate, value: [])) }
        key = answer.credentials.password
    }

    mutating func add(_ type: UInt16, _ value: [UInt8] = [], claimedLength: UInt16? = nil) {
        attributes.append(Attribute(type: type, value: value, claimedLength: claimedLength))
    }

    var bytes: [UInt8] {
        var body = attributes.flatMap(\.bytes)
        func head(_ length: Int) -> [UInt8] {
            bigEndian(type) + bigEndian(UInt16(truncatingIfNeeded: length)) + start + transaction
        }
        if let key {
            let code = HMAC<Insecure.SHA1>.authenticationCode(
                for: head(body.count + 24) + body, using: SymmetricKey(data: Data(key.utf8)))
            body += Attribute(type: Self.messageIntegrity, value: Array(code)).bytes
        }
        if hasFingerprint {
            let sum = Self.crc32(head(body.count + 8) + body) ^ 0x5354_554e
            let value = withUnsafeBytes(of: sum.bigEndian) { Array($0) }
            body += Attribute(type: Self.fingerprintType, value: value).bytes
        }
        return head(Int(claimedLength ?? UInt16(truncatingIfNeeded: body.count))) + body
    }

    /// The CRC-32 of ITU V.42, computed bit by bit.
    static func crc32(_ bytes: [UInt8]) -> UInt32 {
        var register: UInt32 = .max
        for byte in bytes {
            register ^= UInt32(byte)
            for _ in 0..<8 { register = register & 1 == 1 ? 0xedb8_8320 ^ (register >> 1) : register >> 1 }
        }
        return ~register
    }

    /// The error code of a response: 0 for success, nil if the datagram has no error code.
    static func code(of answer: [UInt8]) -> Int? {
        guard answer.count >= 20, answer[4..<8].elementsEqual(cookie) else { return nil }
        if answer[0] == 0x01, answer[1] == 0x01 { return 0 }
        // ERROR-CODE is the first attribute.
        guard answer[0] == 0x01, answer[1] == 0x11, answer.count >= 28 else { return nil }
        return Int(answer[26]) * 100 + Int(answer[27])
    }
}

func bigEndian(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)] }
func bigEndian(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

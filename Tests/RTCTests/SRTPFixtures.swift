import TestSupport
import Testing

@testable import RTC

/// Parses hexadecimal digits and skips other characters.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap { $0.hexDigitValue }
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

extension SeededGenerator {
    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: .min ... .max, using: &self) } }
}

/// A packet for SRTP tests, split into header and payload, as `SRTPSender` expects.
struct PlainPacket {
    var header: [UInt8]
    var payload: [UInt8]
    var whole: [UInt8] { header + payload }

    /// Creates a packet with random contributing sources, extension and payload.
    static func random(ssrc: UInt32, sequence: UInt16, using generator: inout SeededGenerator) -> PlainPacket {
        let sources = Int.random(in: 0..<4, using: &generator) == 0 ? Int.random(in: 0...15, using: &generator) : 0
        let words = Bool.random(using: &generator) ? Int.random(in: 0...12, using: &generator) : nil
        var header: [UInt8] = [0x80 | UInt8(sources) | (words == nil ? 0 : 0x10), generator.bytes(1)[0]]
        header += [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)] + generator.bytes(4)
        header += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: ssrc >> $0) } + generator.bytes(4 * sources)
        if let words { header += [0xbe, 0xde, 0, UInt8(words)] + generator.bytes(4 * words) }
        let length = Int.random(in: 0..<8, using: &generator) == 0 ? 0 : Int.random(in: 0...1300, using: &generator)
        return PlainPacket(header: header, payload: generator.bytes(length))
    }

    static func simple(ssrc: UInt32 = 0x1234_5678, sequence: UInt16, payload: [UInt8] = [1, 2, 3]) -> PlainPacket {
        let header: [UInt8] = [0x80, 96, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence), 0, 0, 0, 0]
        let source = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: ssrc >> $0) }
        return PlainPacket(header: header + source, payload: payload)
    }
}

/// Returns a compound packet for SRTCP tests. Only its first eight bytes are meaningful.
func controlPacket(ssrc: UInt32 = 0x1234_5678, body: [UInt8]) -> [UInt8] {
    [0x80, 200, 0, 6] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: ssrc >> $0) } + body
}

extension SRTPSender {
    /// Encrypts a packet.
    ///
    /// - Parameter prefix: the number of payload bytes to pass separately, as the prefix.
    func protect(_ packet: PlainPacket, prefix: Int = 0, room: Int? = nil) -> [UInt8]? {
        var datagram = packet.header
        datagram += [UInt8](repeating: 0xee, count: room ?? packet.payload.count + 16)
        let length = datagram.withUnsafeMutableBytes { memory in
            packet.payload.withUnsafeBytes { payload in
                let cut = min(prefix, payload.count)
                return protect(
                    memory, headerLength: packet.header.count,
                    prefix: UnsafeRawBufferPointer(rebasing: payload[..<cut]),
                    payload: UnsafeRawBufferPointer(rebasing: payload[cut...]))
            }
        }
        return length.map { Array(datagram.prefix($0)) }
    }

    func protectControl(_ packet: [UInt8], room: Int = 20) -> [UInt8]? {
        var datagram = packet + [UInt8](repeating: 0xee, count: room)
        let length = datagram.withUnsafeMutableBytes { protectControl($0, length: packet.count) }
        return length.map { Array(datagram.prefix($0)) }
    }
}

/// The result of decrypting a datagram, for comparison.
enum Opened: Equatable {
    case packet([UInt8])
    case failed(SRTPFailure)

    var isPacket: Bool { if case .packet = self { true } else { false } }
}

extension SRTPReceiver {
    private func opened(_ datagram: [UInt8], _ open: (UnsafeMutableRawBufferPointer) -> SRTPResult) -> Opened {
        // Use memory of exactly this size, so that an address sanitizer detects a read past the end.
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: datagram.count, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: datagram)
        switch open(memory) {
        case .ok(let length): return .packet(Array(memory.prefix(length)))
        case .failed(let failure): return .failed(failure)
        }
    }

    func open(_ datagram: [UInt8]) -> Opened { opened(datagram, unprotect) }
    func openControl(_ datagram: [UInt8]) -> Opened { opened(datagram, unprotectControl) }
}

/// A profile, and the library that computes AES-GCM.
struct SRTPCase: Sendable, CustomTestStringConvertible {
    let profile: SRTPProfile
    /// Nil for OpenSSL.
    let variant: IPsecMB.Variant?

    var library: IPsecMB? { variant.flatMap { IPsecMB($0) } }
    var testDescription: String { "\(profile.name), \(variant.map { "ipsec-mb \($0)" } ?? "OpenSSL")" }

    /// AES-GCM with OpenSSL, and with each variant of Intel's library that this machine can run.
    static let gcm =
        [SRTPCase(profile: .aeadAES128GCM, variant: nil)]
        + IPsecMB.Variant.allCases.filter { IPsecMB($0) != nil }.map { SRTPCase(profile: .aeadAES128GCM, variant: $0) }
    static let all = gcm + [SRTPCase(profile: .aes128CMSHA1, variant: nil)]

    func sender(key: [UInt8], salt: [UInt8]) -> SRTPSender? {
        guard let (media, control) = sessionKeys(key, salt) else { return nil }
        return SRTPSender(profile: profile, media: media, control: control, library: library)
    }

    func receiver(key: [UInt8], salt: [UInt8]) -> SRTPReceiver? {
        guard let (media, control) = sessionKeys(key, salt) else { return nil }
        return SRTPReceiver(profile: profile, media: media, control: control, library: library)
    }

    private func sessionKeys(_ key: [UInt8], _ salt: [UInt8]) -> (SRTPSessionKeys, SRTPSessionKeys)? {
        guard
            let media = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtp),
            let control = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtcp)
        else { return nil }
        return (media, control)
    }
}

/// A sender and a receiver with the same key.
struct SRTPPair {
    let sender: SRTPSender
    let receiver: SRTPReceiver

    init?(_ profile: SRTPProfile) {
        let key = [UInt8](repeating: 7, count: profile.keyLength)
        let salt = [UInt8](repeating: 9, count: profile.saltLength)
        guard
            let sender = SRTPSender(profile: profile, key: key, salt: salt),
            let receiver = SRTPReceiver(profile: profile, key: key, salt: salt)
        else { return nil }
        (self.sender, self.receiver) = (sender, receiver)
    }
}

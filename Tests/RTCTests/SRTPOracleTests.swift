import CSRTP
import TestSupport
import Testing

@testable import RTC

/// One direction of an SRTP session in libsrtp2, for comparison.
private final class Oracle {
    private static let initialized: Bool = srtp_init() == srtp_err_status_ok
    private var session: srtp_t?

    init?(profile: SRTPProfile, key: [UInt8], salt: [UInt8], direction: srtp_ssrc_type_t) {
        guard Self.initialized else { return nil }
        var policy = srtp_policy_t()
        switch profile {
        case .aeadAES128GCM:
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aes128CMSHA1:
            srtp_crypto_policy_set_rtp_default(&policy.rtp)
            srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        }
        policy.ssrc.type = direction
        policy.window_size = UInt(ReplayWindow.size)
        var material = key + salt
        let status = material.withUnsafeMutableBufferPointer { bytes in
            policy.key = bytes.baseAddress
            return srtp_create(&session, &policy)
        }
        guard status == srtp_err_status_ok else { return nil }
    }

    deinit { srtp_dealloc(session) }

    private typealias Work = (srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?) -> srtp_err_status_t

    private func run(_ bytes: [UInt8], _ work: Work) -> [UInt8]? {
        var memory = bytes + [UInt8](repeating: 0, count: 32)
        var length = Int32(bytes.count)
        let status = memory.withUnsafeMutableBytes { work(session, $0.baseAddress, &length) }
        return status == srtp_err_status_ok ? Array(memory.prefix(Int(length))) : nil
    }

    func protect(_ packet: [UInt8]) -> [UInt8]? { run(packet, srtp_protect) }
    func open(_ datagram: [UInt8]) -> [UInt8]? { run(datagram, srtp_unprotect) }
    func protectControl(_ packet: [UInt8]) -> [UInt8]? { run(packet, srtp_protect_rtcp) }
    func openControl(_ datagram: [UInt8]) -> [UInt8]? { run(datagram, srtp_unprotect_rtcp) }
}

/// The sequence numbers of a source. They jump, so they wrap around often, and packets are reordered.
private struct Stream {
    let ssrc: UInt32
    private var next: UInt16
    private var waiting: [UInt16] = []

    init(ssrc: UInt32, using generator: inout SeededGenerator) {
        self.ssrc = ssrc
        next = .random(in: 0..<0x8000, using: &generator)
    }

    mutating func sequence(using generator: inout SeededGenerator) -> UInt16 {
        if waiting.isEmpty {
            let leaps = Int.random(in: 0..<3, using: &generator) == 0
            next &+= leaps ? .random(in: 1...20_000, using: &generator) : 0
            waiting = (0..<UInt16.random(in: 1...30, using: &generator)).map { next &+ $0 }
            next &+= UInt16(waiting.count)
            // The first packet stays first, because another test covers packets from before the first one.
            waiting[1...].shuffle(using: &generator)
        }
        return waiting.removeFirst()
    }
}

/// Compares our SRTP with libsrtp2, which browsers use. Each must decrypt the other's packets, and both must reject the
/// same packets.
@Suite(.serialized) struct SRTPOracleTests {
    /// Returns the packets with some of them lost, duplicated, swapped and corrupted.
    private static func disturb(_ sent: [[UInt8]], using generator: inout SeededGenerator) -> [[UInt8]] {
        var received: [[UInt8]] = []
        for datagram in sent {
            switch Int.random(in: 0..<40, using: &generator) {
            case 0, 1: continue
            case 2, 3: received += [datagram, datagram]
            case 4:
                var damaged = datagram
                damaged[.random(in: datagram.indices, using: &generator)] ^=
                    1 << UInt8.random(in: 0..<8, using: &generator)
                received += [damaged, datagram]
            case 5: received += [datagram.dropLast(.random(in: 1...40, using: &generator)), datagram]
            case 6:
                let old = received.count - .random(in: 1...3000, using: &generator)
                received.append(datagram)
                if old >= 0 { received.append(received[old]) }
            case 7...12:
                let place = max(0, received.count - .random(in: 0...20, using: &generator))
                received.insert(datagram, at: place)
            default: received.append(datagram)
            }
        }
        return received
    }

    @Test(arguments: SRTPCase.all) func mediaAgrees(_ tested: SRTPCase) throws {
        let profile = tested.profile
        let seed = UInt64.random(in: 0 ... .max)
        print("SRTP against libsrtp2, \(tested.testDescription): seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let key = generator.bytes(profile.keyLength)
        let salt = generator.bytes(profile.saltLength)
        let sender = try #require(tested.sender(key: key, salt: salt))
        let receiver = try #require(tested.receiver(key: key, salt: salt))
        let theirSender = try #require(Oracle(profile: profile, key: key, salt: salt, direction: ssrc_any_outbound))
        let theirReceiver = try #require(Oracle(profile: profile, key: key, salt: salt, direction: ssrc_any_inbound))

        var streams = (0..<4).map { _ in Stream(ssrc: .random(in: 0 ... .max, using: &generator), using: &generator) }
        var sent: [[UInt8]] = []
        for round in 0..<6000 {
            let stream = Int.random(in: streams.indices, using: &generator)
            let sequence = streams[stream].sequence(using: &generator)
            let packet = PlainPacket.random(ssrc: streams[stream].ssrc, sequence: sequence, using: &generator)
            let ours = sender.protect(packet, prefix: .random(in: 0...5, using: &generator))
            try #require(ours != nil && ours == theirSender.protect(packet.whole), "seed \(seed), round \(round)")
            if let ours { sent.append(ours) }
        }
        var accepted = 0
        let received = Self.disturb(sent, using: &generator)
        for (round, datagram) in received.enumerated() {
            let ours = receiver.open(datagram)
            if let theirs = theirReceiver.open(datagram) {
                accepted += 1
                try #require(ours == .packet(theirs), "seed \(seed), round \(round)")
            } else {
                try #require(!ours.isPacket, "seed \(seed), round \(round)")
            }
        }
        print("SRTP against libsrtp2: \(accepted) of \(received.count) accepted by both")
        #expect(accepted > 4000)
    }

    @Test(arguments: SRTPCase.all) func controlAgrees(_ tested: SRTPCase) throws {
        let profile = tested.profile
        let seed = UInt64.random(in: 0 ... .max)
        print("SRTCP against libsrtp2, \(tested.testDescription): seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let key = generator.bytes(profile.keyLength)
        let salt = generator.bytes(profile.saltLength)
        let sender = try #require(tested.sender(key: key, salt: salt))
        let theirSender = try #require(Oracle(profile: profile, key: key, salt: salt, direction: ssrc_any_outbound))

        // The encrypted bytes differ, because libsrtp2 counts separately for each source, from 1. So each side decrypts
        // the other's packets instead.
        var (ours, theirs): ([[UInt8]], [[UInt8]]) = ([], [])
        for _ in 0..<3000 {
            let ssrc = UInt32.random(in: 1...3, using: &generator)
            let packet = controlPacket(ssrc: ssrc, body: generator.bytes(4 * .random(in: 0...100, using: &generator)))
            ours.append(try #require(sender.protectControl(packet)))
            theirs.append(try #require(theirSender.protectControl(packet)))
        }
        for sent in [ours, theirs] {
            let receiver = try #require(tested.receiver(key: key, salt: salt))
            let oracle = try #require(Oracle(profile: profile, key: key, salt: salt, direction: ssrc_any_inbound))
            var accepted = 0
            for (round, datagram) in Self.disturb(sent, using: &generator).enumerated() {
                let opened = receiver.openControl(datagram)
                if let expected = oracle.openControl(datagram) {
                    accepted += 1
                    try #require(opened == .packet(expected), "seed \(seed), round \(round)")
                } else {
                    try #require(!opened.isPacket, "seed \(seed), round \(round)")
                }
            }
            print("SRTCP against libsrtp2: \(accepted) of \(sent.count) accepted by both")
            #expect(accepted > 2500)
        }
    }
}

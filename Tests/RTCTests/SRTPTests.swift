import TestSupport
import Testing

@testable import RTC

@Suite struct SRTPTests {
    @Test(arguments: SRTPProfile.allCases) func packetsRoundTrip(_ profile: SRTPProfile) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("SRTP round trips: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let pair = try #require(SRTPPair(profile))
        for sequence in UInt16(1)...500 {
            let packet = PlainPacket.random(ssrc: 5, sequence: sequence, using: &generator)
            let prefix = Int.random(in: 0...20, using: &generator)
            let datagram = try #require(pair.sender.protect(packet, prefix: prefix))
            #expect(datagram.count == packet.whole.count + profile.rtpOverhead)
            #expect(pair.receiver.open(datagram) == .packet(packet.whole), "seed \(seed)")
            let control = controlPacket(body: generator.bytes(.random(in: 0...200, using: &generator)))
            let sealed = try #require(pair.sender.protectControl(control))
            #expect(sealed.count == control.count + profile.rtcpOverhead)
            #expect(pair.receiver.openControl(sealed) == .packet(control), "seed \(seed)")
        }
    }

    @Test(arguments: SRTPProfile.allCases) func aPacketIsAcceptedOnce(_ profile: SRTPProfile) throws {
        let pair = try #require(SRTPPair(profile))
        let datagrams = try (UInt16(100)..<1200).map { try #require(pair.sender.protect(.simple(sequence: $0))) }
        for datagram in datagrams.reversed().dropLast(1100 - 1024) { #expect(pair.receiver.open(datagram).isPacket) }
        for datagram in datagrams { #expect(pair.receiver.open(datagram) == .failed(.replayed)) }
        let control = try (0..<1100).map { _ in try #require(pair.sender.protectControl(controlPacket(body: [4]))) }
        for datagram in control.reversed().dropLast(1100 - 1024) {
            #expect(pair.receiver.openControl(datagram).isPacket)
        }
        for datagram in control { #expect(pair.receiver.openControl(datagram) == .failed(.replayed)) }
    }

    /// Reusing a nonce reveals GCM's authentication key.
    @Test(arguments: SRTPProfile.allCases) func anIndexIsNeverSentTwice(_ profile: SRTPProfile) throws {
        let sender = try #require(SRTPPair(profile)).sender
        #expect(sender.protect(.simple(sequence: 5000)) != nil)
        #expect(sender.protect(.simple(sequence: 5000, payload: [9])) == nil)
        #expect(sender.protect(.simple(sequence: 5000 - 1023)) != nil)
        #expect(sender.protect(.simple(sequence: 5000 - 1023)) == nil)
        #expect(sender.protect(.simple(sequence: 5000 - 1024)) == nil)
        #expect(sender.protect(.simple(sequence: 5001)) != nil)
        #expect(sender.protect(.simple(sequence: 5000 - 1023)) == nil)
        #expect(sender.protect(.simple(ssrc: 1, sequence: 5000)) != nil)
    }

    @Test func aSequenceNumberFromBeforeTheFirstPacketIsRejected() throws {
        let sender = try #require(SRTPPair(.aeadAES128GCM)).sender
        #expect(sender.protect(.simple(sequence: 3)) != nil)
        #expect(sender.protect(.simple(sequence: 65_530)) == nil)
        #expect(sender.protect(.simple(sequence: 4)) != nil)
    }

    @Test(arguments: SRTPProfile.allCases) func sequenceNumbersMayWrapInAnyOrder(_ profile: SRTPProfile) throws {
        let pair = try #require(SRTPPair(profile))
        // Take steps of at most half the range, over three rollovers, with a few late packets around each rollover.
        var sequences: [UInt16] = [30_000, 60_000, 65_534, 1, 65_535, 0, 65_533, 2]
        sequences += [30_000, 60_000, 65_535, 3, 65_500, 0, 30_000, 60_000, 100, 65_000, 101]
        for (step, sequence) in sequences.enumerated() {
            let packet = PlainPacket.simple(sequence: sequence, payload: [UInt8(step)])
            let datagram = try #require(pair.sender.protect(packet), "step \(step)")
            #expect(pair.receiver.open(datagram) == .packet(packet.whole), "step \(step)")
        }
    }

    @Test func theRolloverCounterIsEstimatedAsInRFC3711Section331() {
        let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: ReplayWindow.wordCount)
        defer { memory.deallocate() }
        let window = ReplayWindow(memory)
        func estimate(after highest: UInt64, _ sequence: UInt16) -> Int64? {
            window.start(highest)
            return window.estimate(sequence)
        }
        #expect(estimate(after: 0x5_0001, 2) == 0x5_0002)
        #expect(estimate(after: 0x5_0001, 0xffff) == 0x4_ffff)
        #expect(estimate(after: 0x5_ffff, 0) == 0x6_0000)
        #expect(estimate(after: 0x5_7fff, 0xffff) == 0x5_ffff)
        #expect(estimate(after: 0x5_7ffe, 0xffff) == 0x4_ffff)
        #expect(estimate(after: 0x5_8000, 0) == 0x5_0000)
        #expect(estimate(after: 0x5_8001, 0) == 0x6_0000)
        #expect(estimate(after: 0x0_0001, 0xffff) == -1)
        #expect(estimate(after: 0xffff_ffff_fffe, 0xffff) == 0xffff_ffff_ffff)
        #expect(estimate(after: 0xffff_ffff_ffff, 0) == nil)
    }

    /// Compares the replay window with a set of all marked indices.
    @Test func theReplayWindowAgreesWithASet() {
        let seed = UInt64.random(in: 0 ... .max)
        print("replay window: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: ReplayWindow.wordCount)
        defer { memory.deallocate() }
        let window = ReplayWindow(memory)
        var highest: UInt64 = 70_000
        var marked: Set<UInt64> = [highest]
        window.start(highest)
        var wrong = 0
        for _ in 0..<50_000 {
            let leap = Int.random(in: 0..<50, using: &generator) == 0
            let index = highest - 1100 + .random(in: 0...(leap ? 3300 : 1103), using: &generator)
            let fresh = index > highest || (highest - index < 1024 && !marked.contains(index))
            if window.isFresh(index) != fresh { wrong += 1 }
            guard fresh else { continue }
            if index == highest + 1, Bool.random(using: &generator) {
                if window.markNext(UInt16(truncatingIfNeeded: index)) != index { wrong += 1 }
            } else {
                window.mark(index)
            }
            marked.insert(index)
            highest = max(highest, index)
        }
        #expect(wrong == 0, "seed \(seed)")
        #expect(window.highest == highest)
    }

    @Test func theNextIndexIsOneMoreThanTheHighest() {
        let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: ReplayWindow.wordCount)
        defer { memory.deallocate() }
        let window = ReplayWindow(memory)
        window.start(0x5_fffe)
        #expect(window.markNext(0) == nil && window.markNext(0xfffe) == nil)
        #expect(window.markNext(0xffff) == 0x5_ffff && window.markNext(0) == 0x6_0000)
        #expect(window.highest == 0x6_0000 && !window.isFresh(0x5_ffff) && window.isFresh(0x5_fffd))
        window.start(ReplayWindow.maxIndex)
        #expect(window.markNext(0) == nil, "the key must not be used any more")
    }

    @Test(arguments: SRTPProfile.allCases) func aPacketTruncatedAtAnyByteIsRejected(_ profile: SRTPProfile) throws {
        let pair = try #require(SRTPPair(profile))
        var packet = PlainPacket.simple(sequence: 7)
        packet.header[0] |= 0x12
        packet.header += hex("0000000a 0000000b bede0002 10111213 14151617")
        let datagram = try #require(pair.sender.protect(packet))
        let control = controlPacket(body: hex("0102030405060708"))
        let sealed = try #require(pair.sender.protectControl(control))
        for length in 0..<datagram.count { #expect(!pair.receiver.open(Array(datagram.prefix(length))).isPacket) }
        for length in 0..<sealed.count { #expect(!pair.receiver.openControl(Array(sealed.prefix(length))).isPacket) }
        // The rejected packets must not have changed the state.
        #expect(pair.receiver.open(datagram) == .packet(packet.whole))
        #expect(pair.receiver.openControl(sealed) == .packet(control))
    }

    @Test(arguments: SRTPProfile.allCases) func aFlippedBitIsNeverAccepted(_ profile: SRTPProfile) throws {
        let pair = try #require(SRTPPair(profile))
        let first = try #require(pair.sender.protect(.simple(sequence: 6)))
        #expect(pair.receiver.open(first).isPacket)
        let packet = PlainPacket.simple(sequence: 7, payload: Array(0..<40))
        let datagram = try #require(pair.sender.protect(packet))
        let control = controlPacket(body: Array(0..<20))
        let sealed = try #require(pair.sender.protectControl(control))
        for bit in 0..<8 * datagram.count {
            var changed = datagram
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(!pair.receiver.open(changed).isPacket, "bit \(bit)")
        }
        for bit in 0..<8 * sealed.count {
            var changed = sealed
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(!pair.receiver.openControl(changed).isPacket, "bit \(bit)")
        }
        #expect(pair.receiver.open(datagram) == .packet(packet.whole))
        #expect(pair.receiver.openControl(sealed) == .packet(control))
    }

    @Test(arguments: SRTPProfile.allCases) func noiseIsNeverAccepted(_ profile: SRTPProfile) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("SRTP noise: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let receiver = try #require(SRTPPair(profile)).receiver
        var accepted = 0
        for _ in 0..<20_000 {
            var noise = generator.bytes(.random(in: 0...90, using: &generator))
            if let first = noise.first, Bool.random(using: &generator) { noise[0] = 0x80 | first & 0x3f }
            if receiver.open(noise).isPacket { accepted += 1 }
            if receiver.openControl(noise).isPacket { accepted += 1 }
        }
        #expect(accepted == 0, "seed \(seed)")
    }

    @Test func theNumberOfSourcesIsBoundedAndForgeriesDoNotCount() throws {
        let pair = try #require(SRTPPair(.aeadAES128GCM))
        let most = UInt32(SRTPReceiver.maxSources)
        for ssrc in 0..<UInt32(1000) {
            var forged = try #require(pair.sender.protect(.simple(ssrc: ssrc, sequence: 1)))
            forged[forged.count - 1] ^= 1
            #expect(pair.receiver.open(forged) == .failed(.authentication))
        }
        for ssrc in 0..<most {
            let datagram = try #require(pair.sender.protect(.simple(ssrc: ssrc, sequence: 2)))
            #expect(pair.receiver.open(datagram).isPacket)
        }
        let late = try #require(pair.sender.protect(.simple(ssrc: most, sequence: 2)))
        #expect(pair.receiver.open(late) == .failed(.tooManySources))
        let known = try #require(pair.sender.protect(.simple(ssrc: 0, sequence: 3)))
        #expect(pair.receiver.open(known).isPacket)
        // Firefox reports from one SSRC for each section in which it receives.
        let limit = UInt32(SRTPReceiver.maxControlSources)
        #expect(limit >= SessionDescription.maxSections)
        for ssrc in 0...limit {
            let datagram = try #require(pair.sender.protectControl(controlPacket(ssrc: ssrc, body: [])))
            #expect(pair.receiver.openControl(datagram).isPacket == (ssrc < limit))
        }
        for ssrc in 1000..<UInt32(SRTPSender.maxSources) {
            #expect(pair.sender.protect(.simple(ssrc: ssrc, sequence: 1)) != nil)
        }
        #expect(pair.sender.protect(.simple(ssrc: UInt32(SRTPSender.maxSources), sequence: 1)) == nil)
        #expect(pair.sender.protect(.simple(ssrc: 0, sequence: 4)) != nil)
    }

    @Test func controlPacketsEndWithTheirIndex() throws {
        let keys = SRTPSessionKeys(
            encryptionKey: hex("000102030405060708090a0b0c0d0e0f"), authenticationKey: [],
            salt: hex("517569642070726f2071756f"))
        let last = SRTPSender.maxControlIndex
        let sender = try #require(
            SRTPSender(profile: .aeadAES128GCM, media: keys, control: keys, nextControlIndex: last))
        #expect(sender.protectControl(controlPacket(body: []))?.suffix(4) == [0xff, 0xff, 0xff, 0xff])
        #expect(sender.protectControl(controlPacket(body: [])) == nil)
    }

    @Test(arguments: SRTPProfile.allCases) func packetsThatDoNotFitAreNotWritten(_ profile: SRTPProfile) throws {
        let sender = try #require(SRTPPair(profile)).sender
        let packet = PlainPacket.simple(sequence: 1, payload: [1, 2, 3, 4, 5])
        #expect(sender.protect(packet, room: 5 + profile.rtpOverhead - 1) == nil)
        #expect(sender.protect(packet, room: 5 + profile.rtpOverhead) != nil)
        var wrong = PlainPacket.simple(sequence: 2)
        wrong.header[0] |= 1
        #expect(sender.protect(wrong) == nil, "the header announces more bytes than it has")
        #expect(sender.protect(PlainPacket(header: [0x80, 96], payload: [])) == nil)
        #expect(sender.protect(.simple(sequence: 3, payload: [UInt8](repeating: 0, count: 65_535))) == nil)
        #expect(sender.protectControl(controlPacket(body: []), room: profile.rtcpOverhead - 1) == nil)
        #expect(sender.protectControl(controlPacket(body: []), room: profile.rtcpOverhead) != nil)
        #expect(sender.protectControl([0x80, 200, 0, 0, 0, 0, 0]) == nil)
    }

    @Test(arguments: SRTPProfile.allCases) func keysOfTheWrongLengthAreRejected(_ profile: SRTPProfile) {
        let (key, salt) = ([UInt8](repeating: 0, count: 16), [UInt8](repeating: 0, count: profile.saltLength))
        #expect(SRTPSender(profile: profile, key: key + [0], salt: salt) == nil)
        #expect(SRTPSender(profile: profile, key: key, salt: salt.dropLast()) == nil)
        #expect(SRTPReceiver(profile: profile, key: [], salt: salt) == nil)
        #expect(SRTPReceiver(profile: profile, key: key, salt: salt + [0]) == nil)
    }
}

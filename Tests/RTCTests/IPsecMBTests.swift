import COpenSSL
import TestSupport
import Testing

@testable import RTC

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Memory that ends where an inaccessible page begins, so that an access beyond its end traps. Intel's library is written
/// in assembly, which no sanitizer checks.
private final class GuardedMemory {
    private static let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    private let pages: UnsafeMutableRawBufferPointer

    init?(room: Int) {
        let length = (room + Self.page - 1) / Self.page * Self.page + Self.page
        guard let start = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0), start != MAP_FAILED
        else { return nil }
        pages = UnsafeMutableRawBufferPointer(start: start, count: length)
        guard mprotect(start + length - Self.page, Self.page, PROT_NONE) == 0 else { return nil }
    }

    deinit { munmap(pages.baseAddress, pages.count) }

    /// The last `count` accessible bytes.
    func last(_ count: Int) -> UnsafeMutableRawBufferPointer {
        let end = pages.count - Self.page
        return UnsafeMutableRawBufferPointer(rebasing: pages[(end - count)..<end])
    }
}

/// Tests AES-GCM with Intel's library, where it is installed. OpenSSL is the oracle.
@Suite struct IPsecMBTests {
    private static let variants = IPsecMB.Variant.allCases.filter { IPsecMB($0) != nil }

    @Test(arguments: variants) func packetsOfAllLengthsEqualThoseOfOpenSSL(_ variant: IPsecMB.Variant) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("SRTP with ipsec-mb \(variant) against OpenSSL: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let (key, salt) = (generator.bytes(16), generator.bytes(12))
        let tested = SRTPCase(profile: .aeadAES128GCM, variant: variant)
        let oracle = SRTPCase(profile: .aeadAES128GCM, variant: nil)
        let ours = try #require(tested.sender(key: key, salt: salt))
        let theirs = try #require(oracle.sender(key: key, salt: salt))
        let ourReceiver = try #require(tested.receiver(key: key, salt: salt))
        let theirReceiver = try #require(oracle.receiver(key: key, salt: salt))
        for length in 0...1500 {
            var packet = PlainPacket.random(ssrc: 1, sequence: UInt16(length), using: &generator)
            packet.payload = generator.bytes(length)
            let isSplit = Bool.random(using: &generator)
            let prefix = isSplit ? Int.random(in: 0...length, using: &generator) : 0
            let datagram = try #require(ours.protect(packet, prefix: prefix))
            try #require(theirs.protect(packet, prefix: prefix) == datagram, "seed \(seed), length \(length)")
            var damaged = datagram
            damaged[.random(in: packet.header.count..<datagram.count, using: &generator)] ^= 0x10
            try #require(ourReceiver.open(damaged) == .failed(.authentication), "seed \(seed), length \(length)")
            try #require(ourReceiver.open(datagram) == .packet(packet.whole), "seed \(seed), length \(length)")
            try #require(theirReceiver.open(datagram) == .packet(packet.whole), "seed \(seed), length \(length)")
        }
    }

    @Test(arguments: variants) func nothingBeyondAPacketIsReadOrWritten(_ variant: IPsecMB.Variant) throws {
        let library = try #require(IPsecMB(variant))
        let key = [UInt8](repeating: 3, count: 16)
        let sealing = try #require(GCMKey(key, .sealing, library: library))
        defer { sealing.free() }
        let opening = try #require(GCMKey(key, .opening, library: library))
        defer { opening.free() }
        let memory = try (0..<3).map { _ in try #require(GuardedMemory(room: 2048)) }
        for length in 0...1300 {
            let header = UnsafeRawBufferPointer(memory[0].last(12 + 4 * (length % 11)))
            let payload = memory[1].last(length)
            payload.copyBytes(from: (0..<length).map { UInt8(truncatingIfNeeded: $0) })
            let packet = memory[2].last(length + GCMKey.tagLength)
            let out = try #require(packet.baseAddress)
            let prefix = UnsafeRawBufferPointer(rebasing: payload[..<(length % 3 == 0 ? length / 2 : 0)])
            let rest = UnsafeRawBufferPointer(rebasing: payload[prefix.count...])
            let nonce = (UInt64(length), UInt64(0))
            #expect(sealing.seal(nonce, data: header, prefix: prefix, rest, out: out))
            #expect(opening.open(nonce, data: header, body: out, length: length, tag: out + length))
            #expect(packet.prefix(length).elementsEqual(payload))
        }
    }

    @Test(.enabled(if: confab_ipsec_mb_version() != 0, "Intel's library is not installed"))
    func theInstalledLibraryIsUsedOrTheReasonGiven() {
        let text = SRTPImplementation.text
        print("AES-GCM by \(text)")
        #expect(text.hasPrefix(IPsecMB.shared.library == nil ? "OpenSSL, because ipsec-mb" : "ipsec-mb 1."))
    }

    @Test(arguments: variants) func theTestAcceptsTheLibrary(_ variant: IPsecMB.Variant) throws {
        let library = try #require(IPsecMB(variant))
        #expect(library.agreesWithOpenSSL())
        #expect(library.scheduleSize == IPsecMB.scheduleSize)
    }

    @Test func otherMajorVersionsAreNotSupported() {
        #expect(IPsecMB.Version(number: 0x010300).isSupported)
        #expect(IPsecMB.Version(number: 0x010500).isSupported)
        #expect(!IPsecMB.Version(number: 0x020000).isSupported)
        #expect(!IPsecMB.Version(number: 0x003700).isSupported)
        #expect(!IPsecMB.Version(number: 0).isSupported)
        #expect(IPsecMB.Version(number: 0x010300).description == "1.3.0")
    }

    /// Functions that do nothing but write a wrong tag.
    private static var wrong: confab_ipsec_mb {
        let crypt: confab_mb_crypt = { _, _, out, input, length, _, _, _, tag, tagLength in
            if let out, let input { memmove(out, input, Int(length)) }
            if let tag { memset(tag, 7, Int(tagLength)) }
        }
        return confab_ipsec_mb(expand: { _, _ in }, encrypt: crypt, decrypt: crypt)
    }

    @Test func aLibraryThatComputesSomethingElseIsRejected() throws {
        #expect(try !#require(IPsecMB(functions: Self.wrong)).agreesWithOpenSSL())
    }

    @Test(arguments: variants) func aLibraryThatAcceptsForgeriesIsRejected(_ variant: IPsecMB.Variant) throws {
        var functions = try #require(IPsecMB(variant)).functions
        functions.decrypt = Self.wrong.decrypt
        #expect(try !#require(IPsecMB(functions: functions)).agreesWithOpenSSL())
    }

    @Test func aLargerKeyScheduleGetsMoreMemoryOrIsRejected() throws {
        var functions = Self.wrong
        functions.expand = { _, schedule in if let schedule { memset(schedule, 1, 1264) } }
        #expect(try #require(IPsecMB(functions: functions)).scheduleSize == 1280)
        functions.expand = { _, schedule in if let schedule { memset(schedule, 1, IPsecMB.maxScheduleSize + 1) } }
        #expect(IPsecMB(functions: functions) == nil)
        functions.expand = { _, schedule in if let schedule { memset(schedule, 1, 2 * IPsecMB.maxScheduleSize) } }
        #expect(IPsecMB(functions: functions) == nil)
    }

    @Test func aLibraryThatNeedsMoreStateIsRejected() throws {
        var functions = Self.wrong
        functions.encrypt = { _, state, _, _, _, _, _, _, _, _ in
            if let state { memset(state, 1, Int(CONFAB_MB_STATE_SIZE) + 1) }
        }
        #expect(try #require(IPsecMB(functions: Self.wrong)).keepsToItsState())
        #expect(try !#require(IPsecMB(functions: functions)).keepsToItsState())
    }
}

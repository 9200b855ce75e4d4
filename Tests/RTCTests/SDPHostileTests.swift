import RTC
import Testing

/// Session descriptions that are meant to be expensive or to trigger a bug. The tests print the times but do not check
/// them.
@Suite struct SDPHostileTests {
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        // SplitMix64.
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    private static func many(_ count: Int, _ line: (Int) -> String) -> String {
        SDPSample.small + (0..<count).map { line($0) + "\n" }.joined()
    }

    private func refusal(_ hostile: Case) -> SDPError? {
        let bytes = Array(hostile.text.utf8)
        let clock = ContinuousClock()
        var refusal: SDPError?
        let time = clock.measure {
            do throws(SDPError) {
                _ = try answer(
                    to: SessionDescription(parsing: bytes), role: .send, local: SDPSample.local,
                    sources: SDPSample.source)
            } catch {
                refusal = error
            }
        }
        print("hostile description: \(hostile.testDescription), \(bytes.count) bytes: \(time)")
        return refusal
    }

    /// A description with a name for test reports, in which its text would be too long.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var text: String
        var code: SDPError.Code?

        init(_ name: String, _ text: String, _ code: SDPError.Code? = nil) {
            (testDescription, self.text, self.code) = (name, text, code)
        }
    }

    static let floods: [Case] = [
        Case("more than 256 KiB", many(200_000) { _ in "a=x" }, .tooLarge),
        Case("10 000 m-lines", many(10_000) { _ in "m=audio 9 RTP/SAVPF 1" }, .tooMany),
        Case("100 000 candidates", many(100_000) { _ in "a=candidate:1 1 udp 1 192.0.2.1 1 typ host" }, .tooLarge),
        Case("5 000 candidates", many(5_000) { "a=candidate:\($0) 1 udp 1 192.0.2.1 1 typ host" }, .tooMany),
        Case("100 000 sources", many(100_000) { "a=ssrc:\($0) cname:x" }, .tooLarge),
        Case("10 000 sources", many(10_000) { "a=ssrc:\($0) cname:x" }, .tooMany),
        Case("10 000 groups", many(10_000) { "a=ssrc-group:FID \($0) 1" }, .tooMany),
        Case(
            "one group of 2 000 sources", many(1) { _ in "a=ssrc-group:FID" + String(repeating: " 1", count: 2000) },
            .tooMany
        ),
        Case("10 000 extensions", many(10_000) { "a=extmap:\($0 % 255 + 1) urn:\($0 % 255)" }, .tooMany),
        Case("5 000 streams", many(5_000) { "a=msid:\($0) x" }, .tooMany),
        Case("5 000 rids", many(5_000) { "a=rid:\($0) send" }, .tooMany),
        Case(
            "200 layers", many(1) { _ in "a=simulcast:send " + (0..<200).map { "\($0)" }.joined(separator: ";") },
            .tooMany
        ),
        Case("1 000 fingerprints", many(1000) { _ in SDPSample.fingerprint("sha-256", 32) }, .tooMany),
        Case("a line of 200 KiB", many(1) { _ in "a=fmtp:111 " + String(repeating: "x", count: 200_000) }, .tooLarge),
        Case("a group of 4 000 mids", "v=0\no=- 1 1\na=group:BUNDLE" + String(repeating: " 1", count: 4000), .tooMany),
    ]

    @Test(arguments: floods) func floodsAreRejected(_ flood: Case) {
        #expect(refusal(flood)?.code == flood.code)
    }

    static let expensive: [Case] = [
        Case("80 000 empty attributes", many(80_000) { _ in "a=" }),
        Case("15 000 parameters of one payload type", many(15_000) { _ in "a=fmtp:111 a=b" }),
        Case(
            "feedback for all payload types",
            many(1) { _ in
                "m=video 9 RTP/SAVPF " + (0..<128).map { "\($0)" }.joined(separator: " ")
                    + String(repeating: "\na=rtcp-fb:* nack", count: 14_000)
            }
        ),
        Case(
            "256 sections of 128 payload types",
            many(255) { _ in
                "m=video 9 RTP/SAVPF " + (0..<128).map { "\($0)" }.joined(separator: " ")
            }
        ),
        Case(
            "256 valid sections",
            "v=0\no=- 1 1\na=group:BUNDLE" + (0..<256).map { " \($0)" }.joined() + "\n"
                + (0..<256).map {
                    "m=audio 9 RTP/SAVPF 1\na=mid:\($0)\na=rtcp-mux\na=rtpmap:1 opus/48000/2\na=ice-ufrag:abcd\n"
                        + "a=ice-pwd:0123456789abcdefghijkl\n\(SDPSample.fingerprint("sha-256", 32))\n"
                }.joined()
        ),
        Case(
            "many semicolons",
            many(25) { "a=rtpmap:\($0) VP9/90000\na=fmtp:111 " + String(repeating: ";", count: 8000) }),
    ]

    @Test(arguments: expensive) func allowedDescriptionsTakeLinearTime(_ expensive: Case) {
        _ = refusal(expensive)
    }

    @Test func mutatedOffersNeverTrapAndRoundTripIfTheyAreRead() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("mutated offers: seed \(seed)")
        var random = Seeded(state: seed)
        let corpus = try SDPSample.names.map(SDPSample.bytes) + [Array(SDPSample.likeAiortc.utf8)]
        let lines = corpus.flatMap { $0.split(separator: UInt8(ascii: "\n")) }
        var (read, answered, changed) = (0, 0, [Int]())
        for round in 0..<20_000 {
            var bytes = corpus[round % corpus.count]
            for _ in 0..<Int.random(in: 1...3, using: &random) { mutate(&bytes, lines, using: &random) }
            guard let offer = try? SessionDescription(parsing: bytes) else { continue }
            read += 1
            // Compare only one round in four, because debug builds are slow.
            if round % 16 < 4, try SessionDescription(parsing: offer.text) != offer { changed.append(round) }
            let role: AnswerRole = round % 2 == 0 ? .send : .receive
            guard let negotiated = try? answer(to: offer, role: role, local: SDPSample.local, sources: SDPSample.source)
            else { continue }
            answered += 1
            let answer = try SessionDescription(parsing: negotiated.answer)
            if negotiated.media.count != offer.sections.count || answer.sections.count != offer.sections.count {
                changed.append(round)
            }
        }
        print("mutated offers: \(read) of 20000 could be read, \(answered) answered")
        #expect(answered > 2000)
        #expect(changed == [], "seed \(seed)")
    }

    @Test func anOfferTruncatedAtAnyByteNeverTraps() throws {
        for name in SDPSample.names {
            let bytes = try SDPSample.bytes(name)
            for length in bytes.indices { _ = try? SessionDescription(parsing: Array(bytes.prefix(length))) }
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ lines: [ArraySlice<UInt8>], using random: inout Seeded) {
        guard !bytes.isEmpty else { return }
        let at = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0: bytes[at] = .random(in: .min ... .max, using: &random)
        case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.remove(at: at)
        case 3:
            let signs = Array(" :;=/,~*-.\r\n0".utf8)
            bytes[at] = signs[Int.random(in: signs.indices, using: &random)]
        case 4:
            let end = min(bytes.count, at + Int.random(in: 1...40, using: &random))
            bytes.removeSubrange(at..<end)
        case 5:
            // Insert a line of another offer before the next line.
            let line = lines[Int.random(in: lines.indices, using: &random)]
            let start = bytes[at...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            bytes.insert(contentsOf: [UInt8(ascii: "\n")] + line, at: start)
        case 6:
            let numbers = ["4294967296", "18446744073709551616", "-1", "0", "65536", "255", "128"]
            bytes.insert(contentsOf: numbers[Int.random(in: numbers.indices, using: &random)].utf8, at: at)
        default:
            let end = min(bytes.count, at + Int.random(in: 1...200, using: &random))
            bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: bytes.indices, using: &random))
        }
    }
}

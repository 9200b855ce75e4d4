import RTC

extension FuzzTarget {
    /// Fuzzes a client's session description. It must be the same after encoding and parsing it again, and the offerer must be
    /// able to parse every answer.
    static let sdp = FuzzTarget(
        "sdp", longestInput: 8192, dictionary: "sdp", seeds: ["Tests/RTCTests/Offers"]
    ) { input throws(BrokenProperty) in
        guard let description = try? SessionDescription(parsing: input) else { return }
        let text = description.text
        guard let again = try? SessionDescription(parsing: text) else {
            throw BrokenProperty(description: "the encoded description cannot be parsed: \(text)")
        }
        try require(again == description, "a description differs after encoding and parsing it: \(text)")
        guard let fingerprint = Fingerprint(.sha256, [UInt8](repeating: 7, count: 32)) else { return }
        let local = LocalParameters(
            ufrag: "ours", pwd: "0123456789abcdefghijklmn", fingerprint: fingerprint,
            candidates: [
                Candidate(
                    foundation: "1", component: 1, transport: .udp, priority: 1,
                    address: TransportAddress(v4: 0xc000_0201, port: 40000), kind: .host
                )
            ],
            sessionID: 1, cname: "c"
        )
        for role in [AnswerRole.receive, .send] {
            var next: UInt32 = 0
            let negotiated = try? answer(to: description, role: role, local: local) { _ in
                next += 2
                return LocalSource(ssrc: next, rtxSSRC: next + 1, msid: MediaStreamID(stream: "s", track: "t"))
            }
            guard let negotiated else { continue }
            try require(negotiated.media.count == description.sections.count, "sections are missing")
            guard let read = try? SessionDescription(parsing: negotiated.answer) else {
                throw BrokenProperty(description: "our answer cannot be parsed: \(negotiated.answer)")
            }
            try require(read.isICELite, "the answer is not ICE-lite")
            try require(
                read.sections.count == description.sections.count,
                "the answer has a different number of sections than the offer")
        }
    }
}

import RTC

extension FuzzTarget {
    /// Fuzzes the body of a POST to WHIP or WHEP. If it can be answered, offering it again with other credentials, as for an
    /// ICE restart, must work, and the answer's fragment must be parseable.
    static let whip = FuzzTarget(
        "whip", longestInput: 8192, dictionary: "sdp", seeds: ["Tests/RTCTests/Offers"]
    ) { input throws(BrokenProperty) in
        guard let offer = try? SessionDescription(parsing: input), offer.iceCredentials != nil else { return }
        let text = offer.textAroundCredentials
        let (ufrag, pwd) = ("restarted", "restarted/with+this/password")
        let restart = text.head + "a=ice-ufrag:\(ufrag)\r\na=ice-pwd:\(pwd)\r\n" + text.tail
        guard let again = try? SessionDescription(parsing: restart) else {
            throw BrokenProperty(description: "a restart cannot be parsed: \(restart)")
        }
        try require(
            again.iceCredentials?.ufrag == ufrag && again.iceCredentials?.pwd == pwd,
            "the restart does not have the given credentials")
        try require(again.textAroundCredentials == text, "a restart changes more than credentials: \(restart)")
        try require(again.origin == offer.origin, "a restart belongs to another connection")
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
        guard let first = try? answer(to: offer, role: .receive, local: local) else { return }
        guard let second = try? answer(to: again, role: .receive, local: local) else {
            throw BrokenProperty(description: "a restart gets no answer: \(restart)")
        }
        try require(first.answer == second.answer, "a restart gets a different answer: \(second.answer)")
        try require(second.remote.ufrag == ufrag, "the restart's credentials are not used")
        guard let read = try? SessionDescription(parsing: second.answer),
            let fragment = try? ICEFragment(parsing: Array(read.iceFragment.utf8))
        else { throw BrokenProperty(description: "our fragment cannot be parsed") }
        try require(fragment.ufrag == local.ufrag && fragment.pwd == local.pwd, "our fragment lacks our credentials")
        try require(fragment.candidates == local.candidates, "our fragment lacks our candidates")
    }

    /// Fuzzes the body of a PATCH to WHIP or WHEP.
    static let sdpFragment = FuzzTarget(
        "sdpfrag", longestInput: 4096, dictionary: "sdp"
    ) { input throws(BrokenProperty) in
        guard let fragment = try? ICEFragment(parsing: input) else { return }
        try require((fragment.ufrag == nil) == (fragment.pwd == nil), "only one of ufrag and pwd is present")
        try require(
            fragment.ufrag?.utf8.count ?? 4 >= 4 && fragment.pwd?.utf8.count ?? 22 >= 22,
            "the credentials are too short")
        try require(fragment.candidates.count <= SessionDescription.maxCandidates, "too many candidates")
    }
}

import RTC

/// A robot's offer, and the server's answer to it.
struct MediaOffering {
    var sections: [OfferedMedia]
    var credentials: ICECredentials
    var fingerprint: Fingerprint
    var candidates: [Candidate] = []
    private let sessionID: UInt64
    private let cname: String
    /// Changes the offer's text before it is sent.
    var edit: (String) -> String = { $0 }

    struct Answer {
        var credentials: ICECredentials
        var fingerprint: Fingerprint
        var candidates: [Candidate]
        var media: [NegotiatedMedia]
    }

    init(_ sections: [OfferedMedia], _ fingerprint: Fingerprint, using random: inout some RandomNumberGenerator) {
        (self.sections, self.fingerprint) = (sections, fingerprint)
        credentials = ICECredentials(using: &random)
        sessionID = random.next() >> 1
        cname = "robot"
    }

    /// Returns the transceivers for receiving this many streams: `a0`, `v0`, `a1` and so on.
    static func slots(_ count: Int) -> [OfferedMedia] {
        (0..<count).flatMap { [OfferedMedia.audio(mid: "a\($0)", .recvonly), .video(mid: "v\($0)", .recvonly)] }
    }

    var description: RTC.SessionDescription {
        RTC.offer(
            sections,
            local: LocalParameters(
                ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: fingerprint, candidates: candidates,
                sessionID: sessionID, cname: cname))
    }

    var text: String { edit(description.text) }

    /// Parses the server's answer.
    func accept(_ text: String) throws -> Answer {
        let (remote, media) = try RTC.accept(try RTC.SessionDescription(parsing: text), to: description)
        guard let theirs = ICECredentials(ufrag: remote.ufrag, password: remote.pwd) else {
            throw TimedOut("the server's ICE credentials are invalid")
        }
        return Answer(
            credentials: theirs, fingerprint: remote.fingerprint, candidates: remote.candidates, media: media)
    }
}

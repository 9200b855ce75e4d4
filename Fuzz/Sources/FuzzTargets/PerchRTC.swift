import Wire

extension FuzzTarget {
    /// Fuzzes a message of PerchRTC's protocol, in both forms. What was read is sent on, and must be read again by the other end.
    static let perchMessages = FuzzTarget("perch-messages", dictionary: "messages") { input throws(BrokenProperty) in
        for envelope in PerchEnvelope.allCases {
            let request = try? PerchRequest(parsing: input, envelope)
            guard case .signal(let signal, to: let user)? = request else { continue }
            try require((1...PerchRequest.maxUser).contains(user.utf8.count), "\(user) is not the name of a user")
            try require((1...Limits.negotiationID).contains(signal.connection.utf8.count), "the id is too long")
            for other in PerchEnvelope.allCases {
                let place = PerchPlace(envelope: other, domain: "d", application: "a", room: "r", user: user)
                let bytes = PerchNotice.signal(signal, from: "amy").encode(for: place)
                guard case .object? = try? JSONReader.parse(bytes) else {
                    throw BrokenProperty(
                        description: "\(signal) is passed on as \(String(decoding: bytes, as: UTF8.self))")
                }
            }
        }
    }

    /// Fuzzes a session description of PerchRTC's clients.
    static let perchDescriptions = FuzzTarget("perch-descriptions", dictionary: "sdp") { input throws(BrokenProperty) in
        guard let sdp = String(validating: input, as: UTF8.self) else { return }
        let streams = PerchDescription.streams(in: sdp)
        try require(streams.count <= PerchDescription.maxStreams, "\(streams.count) streams")
        try require(Set(streams).count == streams.count, "a stream is listed twice")
        guard streams.isEmpty else { return }
        let named = PerchDescription.named("stream", sdp)
        let sections = PerchDescription.streams(in: named)
        try require(sections.isEmpty || sections == ["stream"], "the stream is called \(sections)")
    }

    /// Fuzzes a posted form.
    static let forms = FuzzTarget("forms") { input throws(BrokenProperty) in
        let form = FormFields(input)
        let size = ["ident", "secret", "username", "room"].reduce(0) { $0 + (form[$1]?.utf8.count ?? 0) }
        try require(size <= input.count, "the fields are longer than the form")
        // The fields that an application sends to create a session. A field after others counts the same.
        for name in ["p2p.preference", "archiveMode", "e2ee", "location"] where form[name] == nil {
            let fields = input.split(separator: UInt8(ascii: "&"))
            guard fields.count < 32 else { continue }
            let longer = FormFields(input + Array("&\(name)=a%20b+c".utf8))
            try require(longer[name] == "a b c", "\(name) is \(longer[name] ?? "missing")")
        }
    }
}

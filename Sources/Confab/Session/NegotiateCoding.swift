import Wire

extension RelayedPeer.Message {
    /// Decodes a message from another member; nil if it can be ignored.
    init?(_ notice: SessionNotice.Negotiate) {
        if let description = notice.description {
            // Ignore a rollback, which concerns only the sender, and a provisional answer, which is not used.
            guard let kind = PeerDescription.Kind(rawValue: description.type.rawValue) else { return nil }
            content = .description(PeerDescription(kind, sdp: description.sdp))
        } else if let candidate = notice.candidate {
            content = .candidate(PeerCandidate(candidate))
        } else {
            return nil
        }
        label = Negotiation.Label(id: notice.negotiationID, number: notice.offerNumber)
        guard case .object(let streams) = notice.streams else { return }
        for member in streams.members.prefix(RelayedPeer.maxWaiting) {
            if case .string(let name) = member.value { names[member.name] = name }
        }
    }

    func verb(_ session: SessionID, to connection: ConnectionID) -> SessionVerb {
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to) = (session, connection)
        switch content {
        case .description(let description):
            verb.description = SessionDescription(
                type: description.kind == .offer ? .offer : .answer, sdp: description.sdp)
        case .candidate(let candidate): verb.candidate = candidate?.json ?? .null
        }
        (verb.negotiationID, verb.offerNumber) = (label.id, label.number)
        return .negotiate(verb)
    }
}

extension PeerCandidate {
    /// Decodes an `RTCIceCandidateInit`. Any other value gives nil, which means the end of candidates.
    fileprivate init?(_ value: JSONValue) {
        guard case .object(let object) = value, case .string(let text) = object["candidate"] else { return nil }
        self.init(text)
        if case .string(let mid) = object["sdpMid"] { self.mid = mid }
        if case .integer(let index) = object["sdpMLineIndex"] { lineIndex = Int(exactly: index) }
        if case .string(let fragment) = object["usernameFragment"] { usernameFragment = fragment }
    }

    fileprivate var json: JSONValue {
        var object = JSONObject()
        object.members = [
            .init(name: "candidate", value: .string(candidate)),
            .init(name: "sdpMid", value: mid.map { .string($0) } ?? .null),
            .init(name: "sdpMLineIndex", value: lineIndex.map { .integer(Int64($0)) } ?? .null),
        ]
        if let usernameFragment {
            object.members.append(.init(name: "usernameFragment", value: .string(usernameFragment)))
        }
        return .object(object)
    }
}

import Wire

/// Translates negotiations with native clients, and relays those with other clients of PerchRTC's protocol.
extension PerchClient {
    /// Asks the client to make an offer. If it may already have a peer connection, asks it to close that one first.
    mutating func beginNegotiation(with member: ConnectionID, _ context: inout Context) {
        guard var pair = pairs[member] else { return }
        if pair.isAnnounced {
            let bye = PerchSignal(connection: pair.connection ?? "none", .bye)
            transmit(.signal(bye, from: pair.user), &context)
        }
        pair.announced(now: context.now)
        pairs[member] = pair
        transmit(.connected(pair.user), &context)
    }

    // MARK: From the client

    /// Relays a message from the client to another member. Drops offers and answers that only the other member should
    /// make. Also drops messages that are not for the current peer connection, except offers, because an offer may
    /// start a new one.
    mutating func pass(_ signal: PerchSignal, to member: ConnectionID, _ context: inout Context) {
        guard var pair = pairs[member] else { return }
        switch signal.content {
        case .offer:
            // Ignore an offer if the other member makes the offers.
            guard pair.offers else { return }
            pair.offered(signal.connection, now: context.now)
        case .answer:
            guard !pair.offers, signal.connection == pair.connection else { return }
        case .candidate:
            guard signal.connection == pair.connection else { return }
        case .bye:
            guard signal.connection == pair.connection else { return }
            pair.closed(now: context.now)
        }
        pairs[member] = pair
        if pair.isPerch {
            context.tell(.client(member, .perchSignal(id, signal)))
        } else {
            negotiate(signal, with: member, number: pair.offerNumber, &context)
        }
    }

    private func negotiate(
        _ signal: PerchSignal, with member: ConnectionID, number: Int, _ context: inout Context
    ) {
        guard let session else { return }
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to, verb.negotiationID) = (session, member, signal.connection)
        switch signal.content {
        case .offer(let sdp):
            guard let stream else { return }
            verb.offerNumber = number
            let names = PerchDescription.streams(in: sdp)
            let named = names.isEmpty ? PerchDescription.named(stream.description, sdp) : sdp
            verb.description = SessionDescription(type: .offer, sdp: named)
            if !names.isEmpty { verb.streams = Self.object(names.map { ($0, .string(stream.description)) }) }
        case .candidate(let candidate):
            let members: [(String, JSONValue)] = [
                ("candidate", .string(candidate.candidate)), ("sdpMid", .string(candidate.mid)),
                ("sdpMLineIndex", .integer(Int64(candidate.label))),
            ]
            verb.candidate = Self.object(candidate.mid.isEmpty ? [members[0], members[2]] : members)
        // Relay neither. The Perch client makes all offers, so it never has an offer from a native client to answer. A
        // bye is not needed, because native clients detect the end of media on their own.
        case .answer, .bye: return
        }
        ask(.negotiate(verb), &context)
    }

    private static func object(_ members: [(String, JSONValue)]) -> JSONValue {
        var object = JSONObject()
        object.members = members.map { JSONObject.Member(name: $0.0, value: $0.1) }
        return .object(object)
    }

    // MARK: From other clients of this protocol

    mutating func receive(_ signal: PerchSignal, from member: ConnectionID, _ context: inout Context) {
        guard var pair = pairs[member], pair.isPerch else { return }
        switch signal.content {
        case .offer:
            guard !pair.offers else { return }
            pair.offered(signal.connection, now: context.now)
        case .answer:
            guard pair.offers, signal.connection == pair.connection else { return }
            pair.answered()
        case .candidate: guard signal.connection == pair.connection else { return }
        case .bye:
            guard signal.connection == pair.connection else { return }
            pair.closed(now: context.now)
        }
        pairs[member] = pair
        transmit(.signal(signal, from: pair.user), &context)
    }

    // MARK: From native clients

    mutating func receive(_ negotiate: SessionNotice.Negotiate, _ context: inout Context) {
        guard var pair = pairs[negotiate.from], !pair.isPerch else { return }
        if negotiate.description?.type == .offer {
            // The native client has more to send, or lost its peer connection. Ignore its offer and start over,
            // because only this client makes offers.
            pair.beginAgain(now: context.now)
            pairs[negotiate.from] = pair
            return
        }
        guard let connection = pair.connection, negotiate.negotiationID ?? connection == connection else { return }
        if let description = negotiate.description, description.type == .answer {
            guard negotiate.offerNumber ?? pair.offerNumber == pair.offerNumber else { return }
            pair.answered()
            pairs[negotiate.from] = pair
            transmit(.signal(.init(connection: connection, .answer(description.sdp)), from: pair.user), &context)
        } else if let candidate = negotiate.candidate.flatMap(PerchCandidate.init(native:)) {
            transmit(.signal(.init(connection: connection, .candidate(candidate)), from: pair.user), &context)
        }
    }

    // MARK: Streams

    mutating func streamCreated(_ stream: StreamInfo, _ context: inout Context) {
        // PerchRTC's protocol carries one video per user, which must not be a screen. Media between two clients of this
        // protocol needs no subscription.
        guard stream.videoType != .screen, let pair = pairs[stream.connection], !pair.isPerch else { return }
        pairs[stream.connection]?.streams.append(stream.id)
        subscribe(to: stream.connection, &context)
    }

    mutating func streamDestroyed(_ stream: StreamID, _ context: inout Context) {
        guard let member = pairs.first(where: { $0.value.streams.contains(stream) })?.key else { return }
        pairs[member]?.streams.removeAll { $0 == stream }
        if pairs[member]?.subscribed == stream { pairs[member]?.subscribed = nil }
        subscribe(to: member, &context)
    }

    private mutating func subscribe(to member: ConnectionID, _ context: inout Context) {
        guard let session, let pair = pairs[member], pair.subscribed == nil, let stream = pair.streams.first else {
            return
        }
        pairs[member]?.subscribed = stream
        ask(.subscribe(.init(session: session, stream: stream)), &context)
        pairs[member]?.begin(now: context.now)
    }
}

extension PerchCandidate {
    /// Parses an `RTCIceCandidateInit`. Returns nil for an invalid value, and for the end of candidates, which
    /// PerchRTC's protocol does not have.
    fileprivate init?(native value: JSONValue) {
        guard case .object(let object) = value, case .string(let candidate)? = object["candidate"], !candidate.isEmpty
        else { return nil }
        var (label, mid) = (0, "")
        if case .integer(let number)? = object["sdpMLineIndex"] { label = Int(clamping: number) }
        if case .string(let text)? = object["sdpMid"] { mid = text }
        self.init(label: label, mid: mid, candidate: candidate)
    }
}

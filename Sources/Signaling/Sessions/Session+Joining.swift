import Wire

/// Admits new members. Their tokens were verified earlier. This part checks what depends on the state of the session, such
/// as revoked tokens, the maximum number of members, and whether the match or call still exists.
extension Session {
    /// Returns true if the client may join with this token now. Otherwise sends an error.
    private func admits(
        _ grant: SessionGrant, of identity: IdentityID, _ request: Request, _ context: inout Context
    ) -> Bool {
        let (client, re) = (request.client, request.re)
        if let match = grant.match, bindings[match] == nil {
            context.tell(.client(client, .joinRefused(re: re, .matchOfTokenEnded, match: match)))
            return false
        }
        do throws(WireError) { try context.project.check(grant, isHeldBy: identity) } catch {
            context.tell(.client(client, .joinRefused(re: re, error, match: nil)))
            return false
        }
        guard !isRevoked(grant) else {
            let error = WireError(.tokenRevoked, "This token was revoked: its holder was removed from the session.")
            context.tell(.client(client, .joinRefused(re: re, error, match: nil)))
            return false
        }
        guard members[client] == nil else {
            context.fail(.inSession, request)
            return false
        }
        if let match = grant.match, let binding = bindings[match],
            members.values.count(where: { $0.match == match }) - former(of: client, identity, grant).count
                >= binding.places
        {
            let error = WireError(
                .sessionFull, "Both people in this match have already joined. Start a new search or call.")
            context.fail(error, request)
            return false
        }
        guard members.count < context.rules.connectionsPerSession else {
            let error = WireError(
                .sessionFull, "This session is full. Try again later.", retryable: true)
            context.fail(error, request)
            return false
        }
        guard context.hasRoomForConnection(of: apiKey) else {
            let error = WireError(
                .tooManyConnections, "Too many connections to this application's sessions. Try again later.",
                retryable: true)
            context.fail(error, request)
            return false
        }
        return true
    }

    /// Returns the members whose place in a match or call this client takes over: the person's other connections. Each
    /// person has one place. A connection that could not resume must not block the new one, and a second device must
    /// not take the partner's place.
    private func former(of client: ConnectionID, _ identity: IdentityID, _ grant: SessionGrant) -> [ConnectionID] {
        guard let match = grant.match, grant.holder != nil else { return [] }
        return order.filter { $0 != client && members[$0]?.match == match && members[$0]?.identity == identity }
    }

    private mutating func leavePlace(_ former: [ConnectionID], _ context: inout Context) {
        for client in former { context.tell(.client(client, .leftSession(id, .forceDisconnected))) }
        remove(former, .networkDisconnected, &context)
    }

    /// Keeps this join if its match may open this home session soon. If the client already waits, rejects the join. Returns whether the
    /// join was kept or rejected.
    private mutating func keepsEarly(
        _ request: Request, _ identity: IdentityID, _ grant: SessionGrant, _ context: inout Context
    ) -> Bool {
        guard home != nil, context.spansNodes, let match = grant.match, bindings[match] == nil,
            let own = context.tag, match.isOn(own), !endedMatches.contains(match)
        else { return false }
        guard !early.contains(request.client) else {
            context.fail(.inSession, request)
            return true
        }
        return early.add(request, identity, grant, for: match, now: context.now)
    }

    /// Carries out the joins that waited for this match.
    mutating func joinEarly(_ match: MatchID, _ context: inout Context) {
        for kept in early.take(for: match) { join(kept.request, kept.identity, kept.grant, &context) }
    }

    func refuse(_ joins: [EarlyJoins.Join], _ context: inout Context) {
        for kept in joins {
            let refused = ClientEvent.joinRefused(re: kept.request.re, .matchOfTokenEnded, match: kept.match)
            context.tell(.client(kept.request.client, refused))
        }
    }

    mutating func join(
        _ request: Request, _ identity: IdentityID, _ grant: SessionGrant, _ context: inout Context
    ) {
        let client = request.client
        guard !keepsEarly(request, identity, grant, &context) else { return }
        guard admits(grant, of: identity, request, &context) else { return }
        let isCharged: Bool
        do throws(WireError) { isCharged = try chargeArrival(context) } catch { return context.fail(error, request) }
        leavePlace(former(of: client, identity, grant), &context)
        mediaMode = hasFallenBack ? .routed : grant.mediaMode
        isRelayedOnly = grant.isRelayedOnly
        let connection = ConnectionInfo(id: client, createdAt: context.wallNow, data: grant.data)
        let size = connection.encodedSize
        lastNumber += 1
        let page = page(after: 0, for: client, reserved: size, context)
        // In a room, a person's role can change after the token was created, so the current role takes precedence.
        let rights = SessionRights(grant.match.flatMap { bindings[$0]?.rights?.role.sessionRole } ?? grant.role)
        var joined = SessionNotice.Joined()
        (joined.re, joined.session, joined.connection) = (request.re, id, connection)
        (joined.mediaMode, joined.capabilities) = (mediaMode, rights.capabilities)
        (joined.connections, joined.streams) = (page.connections, page.streams)
        (joined.more, joined.muted) = (page.hasMore ? true : nil, isMuted)
        joined.archives = archives.isEmpty ? nil : archives.map(\.info)
        joined.broadcasts = broadcasts.isEmpty ? nil : broadcasts.map(\.info)
        joined.moderatorArchives = moderatorArchives(context)
        context.send(.session(.joined(joined)), to: client)
        if members.isEmpty { report(.sessionCreated, &context) }
        report(.connectionCreated(connection), &context)
        context.countConnections(1, of: apiKey)
        forward(.connections(members.count + 1), &context)
        broadcast(
            .session(.connectionCreated(.init(session: id, connection: connection))), about: lastNumber, &context)
        muteUntil = nil
        order.append(client)
        introduced[client] = page.hasMore ? page.last : nil
        members[client] = Member(
            number: lastNumber, connection: connection, size: size, identity: identity,
            rights: rights, match: grant.match,
            token: Token(fingerprint: grant.fingerprint, expiresAt: grant.expiresAt),
            layoutClasses: grant.layoutClasses,
            publications: isCharged ? context.rules.streamsPerConnection : 0
        )
        enterNode(of: client, &context)
        if let call = grant.match.flatMap({ bindings[$0]?.call }) { context.tell(.call(call, .joined(identity))) }
        if members.count == 1 {
            automatic = context.projects[apiKey]?.automaticArchive(of: id).map { AutomaticArchive(resolution: $0) }
        }
        recordAutomatically(&context)
    }
}

extension WireError {
    static let inSession = WireError(.alreadyJoined, "This connection has already joined the session.")
    /// The error for a join with the token of a match or call that is over.
    static let matchOfTokenEnded = WireError(
        .tokenMatchEnded, "The match or call for this token has ended. Start a new search or call.")
}

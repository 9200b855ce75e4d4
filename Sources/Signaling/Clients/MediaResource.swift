import Wire

/// One resource of WHIP or WHEP: a client of a session that has no socket, only requests, and one peer connection.
///
/// It owns the way from a POST to a stream that is published or watched, what each later request is answered, and when the
/// resource is over; who is in the session and what they publish is the session's, and what is in a description is nobody's
/// business here. Invariant: every request is answered once, and when the resource is over, its connection is out of the
/// session and its peer connection closed.
public struct MediaResource: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    /// Legal next states: `joining` → `offering` → `attaching` → `running`; each → `gone`.
    enum State: Equatable, Sendable {
        /// The session was asked.
        case joining
        /// The media plane has the offer.
        case offering
        /// The session was asked to publish or subscribe; the answer waits for that.
        case attaching(answer: String)
        case running
        case gone
    }

    /// An ICE restart that the media plane was asked for.
    private struct Restart: Equatable, Sendable {
        var re: UInt64
        /// The rules' own number.
        var offer: UInt64
        var credentials: ResourceCredentials
        var until: Timestamp
    }

    let id: ConnectionID
    let address: String
    let grant: SessionGrant
    let socket: SocketID
    private let purpose: ResourcePurpose
    private let token: [UInt8]
    private var offer: ResourceOffer
    private var state = State.joining
    private var isJoined = false
    /// Whether the media plane ever heard of this client.
    private var usesMedia = false
    /// Numbers what the session and the media plane are asked.
    private var lastRequest: UInt64 = 1
    private var tag = ""
    private var restart: Restart?
    /// Until when the POST must be answered, and later, when there must be a path. Nil while there is one.
    private var deadline: Timestamp?
    private var isConnected = false
    private var requests: Budget
    /// The stream that is published, or watched if there is one.
    private var stream: StreamID?
    /// Cameras of the session, the oldest first; for who watches the newest.
    private var cameras: [StreamID] = []
    /// The last is the newest; the others are for when it ends.
    private static let mostCameras = 64

    var isOver: Bool { state == .gone }
    private var session: SessionID { grant.session }

    /// Asks the session, for whoever was let in.
    init(_ arrival: ResourceArrival, id: ConnectionID, _ turn: inout Turn) {
        self.id = id
        (address, grant, socket, purpose) = (arrival.address, arrival.grant, arrival.socket, arrival.purpose)
        (token, offer) = (Array(arrival.token.utf8), arrival.offer)
        requests = Budget(turn.rules.verbs, now: turn.now)
        deadline = turn.now + turn.rules.resourceAnswer
        let identity = IdentityID.random(using: &turn.random)
        turn.tell(.session(grant.session, .join(id, identity, grant, re: lastRequest)))
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        guard let deadline, let until = restart?.until else { return deadline ?? restart?.until }
        return min(deadline, until)
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let restart, restart.until <= turn.now { refuse(restart, Self.slow, &turn) }
        guard let deadline, deadline <= turn.now else { return }
        depart(state == .running ? .networkDisconnected : .clientDisconnected, Self.slow, &turn)
    }

    private static let slow = WireError(
        .mediaUnavailable, "The server did not answer in time; try again.", retryable: true, retryAfter: .seconds(2))

    // MARK: Events

    mutating func handle(_ event: ClientEvent, _ turn: inout Turn) {
        guard !isOver else { return }
        switch event {
        case .requested(let request):
            perform(request, &turn)
        case .deliver(let message):
            deliver(message, &turn)
        case .joinRefused(_, let error, _): depart(.clientDisconnected, error, &turn)
        case .leftSession:
            isJoined = false
            let error = WireError(.notFound, "The session put this resource out.")
            depart(.forceDisconnected, error, &turn)
        case .connected(let isConnected): connected(isConnected, turn)
        case .closed(let socket, _):
            if socket == self.socket { depart(.clientDisconnected, Self.slow, &turn) }
        case .expel(let error, _): depart(.forceDisconnected, error, &turn)
        // What only clients with sockets say or are told.
        case .message, .unreadable, .asked, .resume, .roulette, .call: return
        }
    }

    private mutating func deliver(_ message: ServerMessage, _ turn: inout Turn) {
        switch message {
        case .session(.joined(let joined)): self.joined(joined, &turn)
        case .media(.answer(let answer)):
            answered(answer, &turn)
        case .session(.published(let published)) where published.re == lastRequest:
            stream = published.stream.id
            attached(&turn)
        case .ok(let answer) where answer.re == lastRequest:
            attached(&turn)
        case .error(let message): failed(message, &turn)
        case .media(.closed(let closed)):
            depart(.networkDisconnected, WireError(closed.code, closed.message), &turn)
        case .session(.streamCreated(let created)): appeared(created.stream, &turn)
        case .session(.streamDestroyed(let destroyed)): disappeared(destroyed.stream, &turn)
        case .session(.muted(let muted)): unmute(muted, &turn)
        default: return
        }
    }

    // MARK: From a POST to a stream

    private mutating func joined(_ joined: SessionNotice.Joined, _ turn: inout Turn) {
        isJoined = true
        guard joined.mediaMode == .routed else {
            let error = WireError(
                .sessionRelayed, "The media of this session goes from browser to browser; make a routed session.")
            return depart(.clientDisconnected, error, &turn)
        }
        let streams = joined.streams.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
        for stream in streams { remember(stream) }
        if case .watch(let named) = purpose {
            stream = named.map { name in streams.contains { $0.id == name } ? name : nil } ?? cameras.last
            guard stream != nil else { return depart(.clientDisconnected, Self.noStream, &turn) }
        }
        state = .offering
        usesMedia = true
        lastRequest += 1
        turn.media(.offer(id, re: lastRequest, purpose.side, sdp: offer.sdp))
    }

    private static let noStream = WireError(
        .notFound, "There is no such stream in this session now; try again when it is published.", retryable: true)

    private mutating func answered(_ answer: MediaNotice.Answer, _ turn: inout Turn) {
        if let restart, restart.offer == answer.re {
            self.restart = nil
            offer.credentials = restart.credentials
            tag = Self.makeTag(using: &turn.random)
            if !isConnected { deadline = turn.now + turn.rules.resourceConnect }
            return turn.reply(socket, .restarted(re: restart.re, sdp: answer.sdp, tag: tag))
        }
        guard state == .offering, answer.re == lastRequest else { return }
        state = .attaching(answer: answer.sdp)
        lastRequest += 1
        switch purpose {
        case .publish:
            var verb = SessionVerb.Publish()
            verb.session = session
            (verb.hasAudio, verb.hasVideo) = (offer.mids.audio != nil, offer.mids.video != nil)
            verb.videoType = verb.hasVideo ? .camera : nil
            verb.mids = offer.mids
            turn.tell(.session(session, .verb(id, re: lastRequest, .publish(verb))))
        case .watch:
            guard let stream else { return depart(.clientDisconnected, Self.noStream, &turn) }
            subscribe(to: stream, &turn)
        }
    }

    private func subscribe(to stream: StreamID, _ turn: inout Turn) {
        let verb = SessionVerb.Subscribe(
            session: session, stream: stream, audio: offer.mids.audio != nil, video: offer.mids.video != nil,
            mids: offer.mids
        )
        turn.tell(.session(session, .verb(id, re: lastRequest, .subscribe(verb))))
    }

    private mutating func attached(_ turn: inout Turn) {
        guard case .attaching(let answer) = state else { return }
        state = .running
        tag = Self.makeTag(using: &turn.random)
        deadline = isConnected ? nil : turn.now + turn.rules.resourceConnect
        let ice = turn.ice.configuration(for: id, now: turn.now)
        turn.reply(socket, .created(sdp: answer, tag: tag, ice))
        watchNewest(&turn)
    }

    /// Names one ICE session of this resource (RFC 9725 §4.3.1).
    private static func makeTag(using generator: inout some RandomNumberGenerator) -> String {
        let text = String(generator.next(), radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    private mutating func failed(_ message: ServerMessage.Failure, _ turn: inout Turn) {
        if let restart, restart.offer == message.re { return refuse(restart, message.error, &turn) }
        guard message.re == lastRequest else { return }
        if state == .running {
            // The stream that was to be watched next ended in the same moment.
            stream = nil
        } else {
            depart(.clientDisconnected, message.error, &turn)
        }
    }

    // MARK: Streams of the session

    private mutating func remember(_ stream: StreamInfo) {
        guard purpose == .watch(nil), stream.videoType == .camera || stream.videoType == nil else { return }
        cameras.append(stream.id)
        if cameras.count > Self.mostCameras { cameras.removeFirst() }
    }

    /// Whoever watches the newest camera goes on with the next when it was gone: a publisher that reconnects is another
    /// stream.
    private mutating func appeared(_ stream: StreamInfo, _ turn: inout Turn) {
        remember(stream)
        watchNewest(&turn)
    }

    private mutating func disappeared(_ stream: StreamID, _ turn: inout Turn) {
        cameras.removeAll { $0 == stream }
        guard self.stream == stream else { return }
        guard purpose == .watch(nil) else { return depart(.clientDisconnected, Self.noStream, &turn) }
        self.stream = state == .offering ? cameras.last : nil
        watchNewest(&turn)
    }

    private mutating func watchNewest(_ turn: inout Turn) {
        guard purpose == .watch(nil), state == .running, stream == nil, let newest = cameras.last else { return }
        stream = newest
        lastRequest += 1
        subscribe(to: newest, &turn)
    }

    /// When a moderator lets it speak again, it does: nobody can press a button at its end.
    private mutating func unmute(_ muted: SessionNotice.Muted, _ turn: inout Turn) {
        guard !muted.active, purpose == .publish, offer.mids.audio != nil, let stream,
            muted.stream ?? stream == stream
        else { return }
        var verb = SessionVerb.Update()
        (verb.session, verb.stream, verb.hasAudio) = (session, stream, true)
        lastRequest += 1
        turn.tell(.session(session, .verb(id, re: lastRequest, .update(verb))))
    }

    // MARK: Requests

    private mutating func perform(_ request: ResourceRequest, _ turn: inout Turn) {
        do throws(WireError) {
            try authorize(request, turn)
            switch request.action {
            case .delete:
                turn.reply(socket, .deleted(re: request.re))
                depart(.clientDisconnected, Self.noStream, &turn)
            case .patch(let credentials, let condition):
                try check(condition)
                guard let credentials, credentials != offer.credentials else {
                    // We are ICE-lite: the client's checks tell where it is (RFC 8445 §6.1.1).
                    return turn.reply(socket, .accepted(re: request.re))
                }
                try begin(credentials, re: request.re, &turn)
            }
        } catch {
            turn.reply(socket, .refused(re: request.re, error))
        }
    }

    /// RFC 9725 §4.2: what was made with a token is changed with it, or with another of the same right.
    private mutating func authorize(_ request: ResourceRequest, _ turn: Turn) throws(WireError) {
        if let wait = requests.take(turn.rules.verbs, now: turn.now) {
            throw WireError(
                .rateLimited, "Too many requests; wait \(wait) and try again.", retryable: true, retryAfter: wait)
        }
        guard !constantTimeEquals(token, Array(request.token.utf8)) else { return }
        _ = try turn.project.verifyResourceToken(request.token, for: session, purpose, now: turn.now)
    }

    private func check(_ condition: ResourceRequest.Condition) throws(WireError) {
        switch condition {
        case .none:
            throw WireError(
                .preconditionRequired, "Say in If-Match which ICE session this is about: its ETag, or * to restart.")
        case .any: return
        case .tags(let tags):
            guard tags.contains(tag) else {
                throw WireError(.preconditionFailed, "This ETag is not that of the ICE session there is.")
            }
        }
    }

    /// An ICE restart (RFC 9725 §4.3.3): to the media plane it is the accepted offer with other credentials.
    private mutating func begin(_ credentials: ResourceCredentials, re: UInt64, _ turn: inout Turn) throws(WireError) {
        guard credentials.ufrag != offer.credentials.ufrag, credentials.pwd != offer.credentials.pwd else {
            throw WireError(
                .descriptionInvalid, "An ICE restart changes both a=ice-ufrag and a=ice-pwd (RFC 8839 §4.4.3.1.1).")
        }
        guard restart == nil else {
            throw WireError(.restartPending, "An ICE restart is under way; wait for its answer.", retryable: true)
        }
        lastRequest += 1
        var changed = offer
        changed.credentials = credentials
        restart = Restart(
            re: re, offer: lastRequest, credentials: credentials, until: turn.now + turn.rules.resourceAnswer)
        turn.media(.offer(id, re: lastRequest, purpose.side, sdp: changed.sdp))
    }

    private mutating func refuse(_ restart: Restart, _ error: WireError, _ turn: inout Turn) {
        self.restart = nil
        turn.reply(socket, .refused(re: restart.re, error))
    }

    // MARK: The end

    /// Whoever is not there for long enough is gone: his peer connection says so, and nothing else can.
    private mutating func connected(_ isConnected: Bool, _ turn: Turn) {
        self.isConnected = isConnected
        guard state == .running else { return }
        deadline = isConnected ? nil : turn.now + turn.rules.resourceConnect
    }

    /// - Parameter error: what requests that wait are answered.
    private mutating func depart(_ reason: GoneReason, _ error: WireError, _ turn: inout Turn) {
        switch state {
        case .joining, .offering, .attaching: turn.reply(socket, .refused(re: nil, error))
        case .running, .gone: break
        }
        if let restart { refuse(restart, error, &turn) }
        state = .gone
        if isJoined { turn.tell(.session(session, .gone(id, reason))) }
        if usesMedia { turn.tell(.media(.leave(id))) }
        turn.close(socket, .normal, "")
    }
}

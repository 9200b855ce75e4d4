import Wire

/// One resource of WHIP or WHEP: a client of a session that has no socket, only requests, and one peer connection.
///
/// It owns the way from a POST to a stream that is published or watched, what each later request is answered, and when the
/// resource is over; who is in the session and what they publish is the session's, and what is in a description is nobody's
/// business here. Invariant: every request is answered once, and when the resource is over, its connection is out of the
/// session and its peer connection closed.
public struct MediaResource: Equatable, Sendable {
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

    var isGone: Bool { state == .gone }
    private var session: SessionID { grant.session }

    /// Asks the session, for whoever was let in.
    init(
        _ arrival: ResourceArrival, id: ConnectionID, identity: IdentityID, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        self.id = id
        (address, grant, socket, purpose) = (arrival.address, arrival.grant, arrival.socket, arrival.purpose)
        (token, offer) = (Array(arrival.token.utf8), arrival.offer)
        requests = Budget(rules.verbs, now: now)
        deadline = now + rules.resourceAnswer
        effects.tell(.session(grant.session, .join(id, identity, grant, re: lastRequest)))
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        guard let deadline, let until = restart?.until else { return deadline ?? restart?.until }
        return min(deadline, until)
    }

    mutating func handleTimeout(now: Timestamp, into effects: inout [Effect]) {
        if let restart, restart.until <= now { refuse(restart, Self.slow, into: &effects) }
        guard let deadline, deadline <= now else { return }
        depart(state == .running ? .networkDisconnected : .clientDisconnected, Self.slow, into: &effects)
    }

    private static let slow = WireError(
        .mediaUnavailable, "The server did not answer in time; try again.", retryable: true, retryAfter: .seconds(2))

    // MARK: Events

    mutating func handle(
        _ event: ClientEvent, now: Timestamp, in surroundings: Surroundings,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        guard !isGone else { return }
        switch event {
        case .requested(let request):
            perform(request, now: now, surroundings, into: &effects)
        case .deliver(let message):
            deliver(message, now: now, surroundings, using: &generator, into: &effects)
        case .joinRefused(_, let error, _): depart(.clientDisconnected, error, into: &effects)
        case .leftSession:
            isJoined = false
            let error = WireError(.notFound, "The session put this resource out.")
            depart(.forceDisconnected, error, into: &effects)
        case .connected(let isConnected): connected(isConnected, now: now, surroundings.rules)
        case .closed(let socket, _):
            if socket == self.socket { depart(.clientDisconnected, Self.slow, into: &effects) }
        case .expel(let error, _): depart(.forceDisconnected, error, into: &effects)
        // What only clients with sockets say or are told.
        case .message, .unreadable, .asked, .resume, .roulette, .call: return
        }
    }

    private mutating func deliver(
        _ message: ServerMessage, now: Timestamp, _ surroundings: Surroundings,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        switch message {
        case .joined(let joined): self.joined(joined, into: &effects)
        case .mediaAnswer(let answer):
            answered(answer, now: now, surroundings.rules, using: &generator, into: &effects)
        case .published(let published) where published.re == lastRequest:
            stream = published.stream.id
            attached(now: now, surroundings, using: &generator, into: &effects)
        case .ok(let answer) where answer.re == lastRequest:
            attached(now: now, surroundings, using: &generator, into: &effects)
        case .error(let message): failed(message, into: &effects)
        case .mediaClosed(let closed):
            depart(.networkDisconnected, WireError(closed.code, closed.message), into: &effects)
        case .streamCreated(let created): appeared(created.stream, into: &effects)
        case .streamDestroyed(let destroyed): disappeared(destroyed.stream, into: &effects)
        case .muted(let muted): unmute(muted, into: &effects)
        default: return
        }
    }

    // MARK: From a POST to a stream

    private mutating func joined(_ joined: Joined, into effects: inout [Effect]) {
        isJoined = true
        guard joined.mediaMode == .routed else {
            let error = WireError(
                .sessionRelayed, "The media of this session goes from browser to browser; make a routed session.")
            return depart(.clientDisconnected, error, into: &effects)
        }
        let streams = joined.streams.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
        for stream in streams { remember(stream) }
        if case .watch(let named) = purpose {
            stream = named.map { name in streams.contains { $0.id == name } ? name : nil } ?? cameras.last
            guard stream != nil else { return depart(.clientDisconnected, Self.noStream, into: &effects) }
        }
        state = .offering
        usesMedia = true
        lastRequest += 1
        effects.append(.media(.offer(id, re: lastRequest, purpose.side, sdp: offer.sdp)))
    }

    private static let noStream = WireError(
        .notFound, "There is no such stream in this session now; try again when it is published.", retryable: true)

    private mutating func answered(
        _ answer: MediaAnswer, now: Timestamp, _ rules: Rules, using generator: inout some RandomNumberGenerator,
        into effects: inout [Effect]
    ) {
        if let restart, restart.offer == answer.re {
            self.restart = nil
            offer.credentials = restart.credentials
            tag = Self.makeTag(using: &generator)
            if !isConnected { deadline = now + rules.resourceConnect }
            return effects.append(.reply(socket, .restarted(re: restart.re, sdp: answer.sdp, tag: tag)))
        }
        guard state == .offering, answer.re == lastRequest else { return }
        state = .attaching(answer: answer.sdp)
        lastRequest += 1
        switch purpose {
        case .publish:
            var verb = Publish()
            verb.session = session
            (verb.hasAudio, verb.hasVideo) = (offer.mids.audio != nil, offer.mids.video != nil)
            verb.videoType = verb.hasVideo ? .camera : nil
            verb.mids = offer.mids
            effects.tell(.session(session, .verb(id, re: lastRequest, .publish(verb))))
        case .watch:
            guard let stream else { return depart(.clientDisconnected, Self.noStream, into: &effects) }
            subscribe(to: stream, into: &effects)
        }
    }

    private func subscribe(to stream: StreamID, into effects: inout [Effect]) {
        let verb = Subscribe(
            session: session, stream: stream, audio: offer.mids.audio != nil, video: offer.mids.video != nil,
            mids: offer.mids
        )
        effects.tell(.session(session, .verb(id, re: lastRequest, .subscribe(verb))))
    }

    private mutating func attached(
        now: Timestamp, _ surroundings: Surroundings, using generator: inout some RandomNumberGenerator,
        into effects: inout [Effect]
    ) {
        guard case .attaching(let answer) = state else { return }
        state = .running
        tag = Self.makeTag(using: &generator)
        deadline = isConnected ? nil : now + surroundings.rules.resourceConnect
        let ice = surroundings.ice.configuration(for: id, now: now)
        effects.append(.reply(socket, .created(sdp: answer, tag: tag, ice)))
        watchNewest(into: &effects)
    }

    /// Names one ICE session of this resource (RFC 9725 §4.3.1).
    private static func makeTag(using generator: inout some RandomNumberGenerator) -> String {
        let text = String(generator.next(), radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    private mutating func failed(_ message: ErrorMessage, into effects: inout [Effect]) {
        if let restart, restart.offer == message.re { return refuse(restart, message.error, into: &effects) }
        guard message.re == lastRequest else { return }
        if state == .running {
            // The stream that was to be watched next ended in the same moment.
            stream = nil
        } else {
            depart(.clientDisconnected, message.error, into: &effects)
        }
    }

    // MARK: Streams of the session

    private mutating func remember(_ stream: Stream) {
        guard purpose == .watch(nil), stream.videoType == .camera || stream.videoType == nil else { return }
        cameras.append(stream.id)
        if cameras.count > Self.mostCameras { cameras.removeFirst() }
    }

    /// Whoever watches the newest camera goes on with the next when it was gone: a publisher that reconnects is another
    /// stream.
    private mutating func appeared(_ stream: Stream, into effects: inout [Effect]) {
        remember(stream)
        watchNewest(into: &effects)
    }

    private mutating func disappeared(_ stream: StreamID, into effects: inout [Effect]) {
        cameras.removeAll { $0 == stream }
        guard self.stream == stream else { return }
        guard purpose == .watch(nil) else { return depart(.clientDisconnected, Self.noStream, into: &effects) }
        self.stream = state == .offering ? cameras.last : nil
        watchNewest(into: &effects)
    }

    private mutating func watchNewest(into effects: inout [Effect]) {
        guard purpose == .watch(nil), state == .running, stream == nil, let newest = cameras.last else { return }
        stream = newest
        lastRequest += 1
        subscribe(to: newest, into: &effects)
    }

    /// When a moderator lets it speak again, it does: nobody can press a button at its end.
    private mutating func unmute(_ muted: Muted, into effects: inout [Effect]) {
        guard !muted.active, purpose == .publish, offer.mids.audio != nil, let stream,
            muted.stream ?? stream == stream
        else { return }
        var verb = Update()
        (verb.session, verb.stream, verb.hasAudio) = (session, stream, true)
        lastRequest += 1
        effects.tell(.session(session, .verb(id, re: lastRequest, .update(verb))))
    }

    // MARK: Requests

    private mutating func perform(
        _ request: ResourceRequest, now: Timestamp, _ surroundings: Surroundings, into effects: inout [Effect]
    ) {
        do throws(WireError) {
            try authorize(request, now: now, surroundings)
            switch request.action {
            case .delete:
                effects.append(.reply(socket, .deleted(re: request.re)))
                depart(.clientDisconnected, Self.noStream, into: &effects)
            case .patch(let credentials, let condition):
                try check(condition)
                guard let credentials, credentials != offer.credentials else {
                    // We are ICE-lite: the client's checks tell where it is (RFC 8445 §6.1.1).
                    return effects.append(.reply(socket, .accepted(re: request.re)))
                }
                try begin(credentials, re: request.re, now: now, surroundings.rules, into: &effects)
            }
        } catch {
            effects.append(.reply(socket, .refused(re: request.re, error)))
        }
    }

    /// RFC 9725 §4.2: what was made with a token is changed with it, or with another of the same right.
    private mutating func authorize(
        _ request: ResourceRequest, now: Timestamp, _ surroundings: Surroundings
    ) throws(WireError) {
        if let wait = requests.take(surroundings.rules.verbs, now: now) {
            throw WireError(
                .rateLimited, "Too many requests; wait \(wait) and try again.", retryable: true, retryAfter: wait)
        }
        guard !constantTimeEquals(token, Array(request.token.utf8)) else { return }
        _ = try surroundings.project.verifyResourceToken(request.token, for: session, purpose, now: now)
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
    private mutating func begin(
        _ credentials: ResourceCredentials, re: UInt64, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) throws(WireError) {
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
        restart = Restart(re: re, offer: lastRequest, credentials: credentials, until: now + rules.resourceAnswer)
        effects.append(.media(.offer(id, re: lastRequest, purpose.side, sdp: changed.sdp)))
    }

    private mutating func refuse(_ restart: Restart, _ error: WireError, into effects: inout [Effect]) {
        self.restart = nil
        effects.append(.reply(socket, .refused(re: restart.re, error)))
    }

    // MARK: The end

    /// Whoever is not there for long enough is gone: his peer connection says so, and nothing else can.
    private mutating func connected(_ isConnected: Bool, now: Timestamp, _ rules: Rules) {
        self.isConnected = isConnected
        guard state == .running else { return }
        deadline = isConnected ? nil : now + rules.resourceConnect
    }

    /// - Parameter error: what requests that wait are answered.
    private mutating func depart(_ reason: GoneReason, _ error: WireError, into effects: inout [Effect]) {
        switch state {
        case .joining, .offering, .attaching: effects.append(.reply(socket, .refused(re: nil, error)))
        case .running, .gone: break
        }
        if let restart { refuse(restart, error, into: &effects) }
        state = .gone
        if isJoined { effects.tell(.session(session, .gone(id, reason))) }
        if usesMedia { effects.tell(.media(.leave(id))) }
        effects.append(.close(socket, .normal, ""))
    }
}

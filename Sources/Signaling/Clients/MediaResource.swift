import Wire

/// A WHIP or WHEP resource: a session member that has one peer connection and no socket. Its client controls it with
/// HTTP requests.
///
/// Owns the steps from the POST to a published or watched stream, the answers to later requests, and the end of the resource.
/// The session owns the members and streams. This type never inspects the SDP.
/// Invariant: every request is answered exactly once. By the time the resource has ended, it has left the session and its peer
/// connection is closed.
public struct MediaResource: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    /// Legal transitions: `joining` → `offering` → `attaching` → `running`; any state → `gone`.
    enum State: Equatable, Sendable {
        /// Waiting for the session to accept the join.
        case joining
        /// Waiting for the media plane to answer the offer.
        case offering
        /// Waiting for the session to accept the publish or subscribe request. The POST is then answered with
        /// `answer`, the SDP answer of the media plane.
        case attaching(answer: String)
        case running
        case gone
    }

    /// An ICE restart that the media plane has not answered yet.
    private struct Restart: Equatable, Sendable {
        var re: UInt64
        /// The request number of the offer sent to the media plane.
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
    /// Whether the media plane has received this resource's offer.
    private var usesMedia = false
    /// The number of the latest request to the session or the media plane.
    private var lastRequest: UInt64 = 1
    private var tag = ""
    private var restart: Restart?
    /// The deadline for answering the POST. After that, the deadline for connecting media, or nil while media is
    /// connected.
    private var deadline: Timestamp?
    private var isConnected = false
    private var requests: Budget
    /// The stream that is published or watched; nil until it is published, or while there is no stream to watch.
    private var stream: StreamID?
    /// The session's camera streams, oldest first. Only kept for a viewer of the newest camera.
    private var cameras: [StreamID] = []
    /// The newest camera streams on the roster pages received so far. Only used for a viewer of the newest camera.
    private var found: [StreamInfo] = []
    /// Maximum number of camera streams kept. The newest is watched, and the others are fallbacks in case it ends.
    private static let maxCameras = 64

    var isOver: Bool { state == .gone }
    private var session: SessionID { grant.session }

    /// Creates a resource and sends a join request to its session.
    init(_ arrival: ResourceArrival, id: ConnectionID, _ context: inout Context) {
        self.id = id
        (address, grant, socket, purpose) = (arrival.address, arrival.grant, arrival.socket, arrival.purpose)
        (token, offer) = (Array(arrival.token.utf8), arrival.offer)
        requests = Budget(context.rules.verbs, now: context.now)
        deadline = context.now + context.rules.resourceAnswer
        let identity = IdentityID.random(using: &context.random)
        context.tell(.session(grant.session, .join(id, identity, grant, re: lastRequest)))
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        guard let deadline, let until = restart?.until else { return deadline ?? restart?.until }
        return min(deadline, until)
    }

    mutating func handleTimeout(_ context: inout Context) {
        if let restart, restart.until <= context.now { refuse(restart, Self.slow, &context) }
        guard let deadline, deadline <= context.now else { return }
        depart(state == .running ? .networkDisconnected : .clientDisconnected, Self.slow, &context)
    }

    private static let slow = WireError(
        .mediaUnavailable, "The server did not answer in time. Try again.", retryable: true, retryAfter: .seconds(2))

    // MARK: Events

    mutating func handle(_ event: ClientEvent, _ context: inout Context) {
        guard !isOver else { return }
        switch event {
        case .requested(let request):
            perform(request, &context)
        case .deliverBroadcast(let broadcast): handle(.deliver(broadcast.message), &context)
        case .deliver(let message):
            deliver(message, &context)
        case .joinRefused(_, let error, _): depart(.clientDisconnected, error, &context)
        case .leftSession:
            isJoined = false
            let error = WireError(.notFound, "This resource was removed from the session. Create a new one.")
            depart(.forceDisconnected, error, &context)
        case .connected(let isConnected): connected(isConnected, context)
        case .closed(let socket, _):
            if socket == self.socket { depart(.clientDisconnected, Self.slow, &context) }
        case .expel(let error, _, _): depart(.forceDisconnected, error, &context)
        // Ignore events that only clients with sockets use.
        case .message, .unreadable, .asked, .suspended, .recovered, .perch, .perchSignal, .moved, .resume, .roulette,
            .call, .room:
            return
        }
    }

    private mutating func deliver(_ message: ServerMessage, _ context: inout Context) {
        switch message {
        case .session(.joined(let joined)): self.joined(joined, &context)
        case .session(.roster(let page)): listed(page.streams, hasMore: page.more == true, &context)
        case .media(.answer(let answer)):
            answered(answer, &context)
        case .session(.published(let published)) where published.re == lastRequest:
            stream = published.stream.id
            attached(&context)
        case .ok(let answer) where answer.re == lastRequest:
            attached(&context)
        case .error(let message): failed(message, &context)
        case .media(.closed(let closed)):
            depart(.networkDisconnected, WireError(closed.code, closed.message), &context)
        case .session(.streamCreated(let created)): appeared(created.stream, &context)
        case .session(.streamDestroyed(let destroyed)): disappeared(destroyed.stream, &context)
        case .session(.muted(let muted)): unmute(muted, &context)
        default: return
        }
    }

    // MARK: Creating the resource

    private mutating func joined(_ joined: SessionNotice.Joined, _ context: inout Context) {
        isJoined = true
        guard joined.mediaMode == .routed else {
            let error = WireError(
                .sessionRelayed, "This session is relayed. WHIP and WHEP require a routed session.")
            return depart(.clientDisconnected, error, &context)
        }
        listed(joined.streams, hasMore: joined.more == true, &context)
    }

    /// Handles the streams on a page of the session's roster. After the last page, sends the offer to the media plane,
    /// or ends the resource if there is no stream to watch.
    private mutating func listed(_ streams: [StreamInfo], hasMore: Bool, _ context: inout Context) {
        guard state == .joining else { return }
        switch purpose {
        case .publish: break
        case .watch(let named?): if streams.contains(where: { $0.id == named }) { stream = named }
        case .watch(nil): found = newest(of: found + streams)
        }
        // Request the next page immediately. The pause between pages protects slow sockets, and a resource has no
        // socket.
        if hasMore { return context.tell(.session(session, .rosterAcknowledged(id))) }
        for stream in found { remember(stream) }
        if purpose == .watch(nil) { stream = cameras.last }
        found = []
        if case .watch = purpose, stream == nil { return depart(.clientDisconnected, Self.noStream, &context) }
        state = .offering
        usesMedia = true
        lastRequest += 1
        context.media(.offer(id, in: session, re: lastRequest, purpose.side, sdp: offer.sdp))
    }

    private func newest(of streams: [StreamInfo]) -> [StreamInfo] {
        let cameras = streams.filter(\.isCamera).sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
        return cameras.suffix(Self.maxCameras)
    }

    private static let noStream = WireError(
        .notFound, "No such stream in this session. Try again after it is published.", retryable: true)

    private mutating func answered(_ answer: MediaNotice.Answer, _ context: inout Context) {
        if let restart, restart.offer == answer.re {
            self.restart = nil
            offer.credentials = restart.credentials
            tag = Self.makeTag(using: &context.random)
            if !isConnected { deadline = context.now + context.rules.resourceConnect }
            return context.reply(socket, .restarted(re: restart.re, sdp: answer.sdp, tag: tag))
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
            context.tell(.session(session, .verb(id, re: lastRequest, .publish(verb))))
        case .watch:
            guard let stream else { return depart(.clientDisconnected, Self.noStream, &context) }
            subscribe(to: stream, &context)
        }
    }

    private func subscribe(to stream: StreamID, _ context: inout Context) {
        let verb = SessionVerb.Subscribe(
            session: session, stream: stream, audio: offer.mids.audio != nil, video: offer.mids.video != nil,
            mids: offer.mids
        )
        context.tell(.session(session, .verb(id, re: lastRequest, .subscribe(verb))))
    }

    private mutating func attached(_ context: inout Context) {
        guard case .attaching(let answer) = state else { return }
        state = .running
        tag = Self.makeTag(using: &context.random)
        deadline = isConnected ? nil : context.now + context.rules.resourceConnect
        let ice = context.ice.configuration(for: id, now: context.wallNow)
        context.reply(socket, .created(sdp: answer, tag: tag, ice))
        watchNewest(&context)
    }

    /// Returns a new entity tag for one ICE session of this resource (RFC 9725 §4.3.1).
    private static func makeTag(using generator: inout some RandomNumberGenerator) -> String {
        let text = String(generator.next(), radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    private mutating func failed(_ message: ServerMessage.Failure, _ context: inout Context) {
        if let restart, restart.offer == message.re { return refuse(restart, message.error, &context) }
        guard message.re == lastRequest else { return }
        if state == .running {
            // The stream ended before the session handled the subscription. Wait for another stream.
            stream = nil
        } else {
            depart(.clientDisconnected, message.error, &context)
        }
    }

    // MARK: Streams of the session

    private mutating func remember(_ stream: StreamInfo) {
        guard purpose == .watch(nil), stream.isCamera else { return }
        cameras.append(stream.id)
        if cameras.count > Self.maxCameras { cameras.removeFirst() }
    }

    /// If this resource watches the newest camera, records a new camera stream. Also starts to watch it if no stream
    /// is being watched: a publisher that reconnects publishes a new stream.
    private mutating func appeared(_ stream: StreamInfo, _ context: inout Context) {
        remember(stream)
        watchNewest(&context)
    }

    private mutating func disappeared(_ stream: StreamID, _ context: inout Context) {
        cameras.removeAll { $0 == stream }
        guard self.stream == stream else { return }
        guard purpose == .watch(nil) else { return depart(.clientDisconnected, Self.noStream, &context) }
        self.stream = state == .offering ? cameras.last : nil
        watchNewest(&context)
    }

    private mutating func watchNewest(_ context: inout Context) {
        guard purpose == .watch(nil), state == .running, stream == nil, let newest = cameras.last else { return }
        stream = newest
        lastRequest += 1
        subscribe(to: newest, &context)
    }

    /// Turns the published stream's audio on again as soon as a moderator ends a mute, because a WHIP client has no
    /// user interface to unmute.
    private mutating func unmute(_ muted: SessionNotice.Muted, _ context: inout Context) {
        guard !muted.active, purpose == .publish, offer.mids.audio != nil, let stream,
            muted.stream ?? stream == stream
        else { return }
        var verb = SessionVerb.Update()
        (verb.session, verb.stream, verb.hasAudio) = (session, stream, true)
        lastRequest += 1
        context.tell(.session(session, .verb(id, re: lastRequest, .update(verb))))
    }

    // MARK: Requests

    private mutating func perform(_ request: ResourceRequest, _ context: inout Context) {
        do throws(WireError) {
            try authorize(request, context)
            switch request.action {
            case .delete:
                context.reply(socket, .deleted(re: request.re))
                depart(.clientDisconnected, Self.noStream, &context)
            case .patch(let credentials, let condition):
                try check(condition)
                guard let credentials, credentials != offer.credentials else {
                    // The fragment does not restart ICE, and its candidates are not needed: the server is ICE-lite and
                    // learns the client's address from the client's connectivity checks (RFC 8445 §6.1.1).
                    return context.reply(socket, .accepted(re: request.re))
                }
                try begin(credentials, re: request.re, &context)
            }
        } catch {
            context.reply(socket, .refused(re: request.re, error))
        }
    }

    /// Charges the request to the resource's budget. Then checks that the request has the token that created the
    /// resource, or another token with the same permission (RFC 9725 §4.2).
    private mutating func authorize(_ request: ResourceRequest, _ context: Context) throws(WireError) {
        if let wait = requests.take(context.rules.verbs, now: context.now) {
            throw WireError(
                .rateLimited, "Too many requests. Try again in \(wait.roundedText).", retryable: true, retryAfter: wait)
        }
        guard !constantTimeEquals(token, Array(request.token.utf8)) else { return }
        _ = try context.projects.verifyResourceToken(request.token, for: session, purpose, now: context.wallNow)
    }

    private func check(_ condition: ResourceRequest.Condition) throws(WireError) {
        switch condition {
        case .none:
            throw WireError(
                .preconditionRequired, "If-Match is required. Send the ETag of the ICE session, or * to restart ICE.")
        case .any: return
        case .tags(let tags):
            guard tags.contains(tag) else {
                throw WireError(
                    .preconditionFailed,
                    "If-Match does not match the current ICE session. Use the ETag of the latest answer.")
            }
        }
    }

    /// Starts an ICE restart (RFC 9725 §4.3.3): sends the media plane the original offer with new credentials. Throws
    /// if one of the credentials is not new, or if another restart is in progress.
    private mutating func begin(_ credentials: ResourceCredentials, re: UInt64, _ context: inout Context)
        throws(WireError)
    {
        guard credentials.ufrag != offer.credentials.ufrag, credentials.pwd != offer.credentials.pwd else {
            throw WireError(
                .descriptionInvalid, "An ICE restart must change both a=ice-ufrag and a=ice-pwd (RFC 8839 §4.4.3.1.1).")
        }
        guard restart == nil else {
            throw WireError(.restartPending, "An ICE restart is in progress. Wait for its answer.", retryable: true)
        }
        lastRequest += 1
        var changed = offer
        changed.credentials = credentials
        restart = Restart(
            re: re, offer: lastRequest, credentials: credentials, until: context.now + context.rules.resourceAnswer)
        context.media(.offer(id, in: session, re: lastRequest, purpose.side, sdp: changed.sdp))
    }

    private mutating func refuse(_ restart: Restart, _ error: WireError, _ context: inout Context) {
        self.restart = nil
        context.reply(socket, .refused(re: restart.re, error))
    }

    // MARK: Ending

    /// Records whether the peer connection is connected. Once the resource is running, also starts a timeout if the
    /// peer connection is lost, and stops it if the peer connection is back. A resource has no socket, so only its
    /// peer connection shows whether the client is still there.
    private mutating func connected(_ isConnected: Bool, _ context: Context) {
        self.isConnected = isConnected
        guard state == .running else { return }
        deadline = isConnected ? nil : context.now + context.rules.resourceConnect
    }

    /// Ends the resource: answers pending requests, leaves the session, and closes the peer connection.
    ///
    /// - Parameter error: the error with which to answer the POST, if it is unanswered, and an ICE restart, if one is
    ///   in progress.
    private mutating func depart(_ reason: GoneReason, _ error: WireError, _ context: inout Context) {
        switch state {
        case .joining, .offering, .attaching: context.reply(socket, .refused(re: nil, error))
        case .running, .gone: break
        }
        if let restart { refuse(restart, error, &context) }
        state = .gone
        if isJoined { context.tell(.session(session, .gone(id, reason))) }
        if usesMedia { context.tell(.media(.leave(id))) }
        context.close(socket, .normal, "")
    }
}

extension StreamInfo {
    fileprivate var isCamera: Bool { videoType == .camera || videoType == nil }
}

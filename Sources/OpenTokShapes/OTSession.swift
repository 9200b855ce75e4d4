import Confab
import Foundation

/// A session, with the methods of OpenTok's class. Each call is one of `Session` in the SDK `Confab`, whose answer the delegate
/// hears. An `error` parameter is set only by what is wrong at once, such as a session that is not connected.
@preconcurrency @MainActor open class OTSession: NSObject {
    /// The id, as given when the object was created.
    public let sessionId: String
    /// The key of the project. Confab finds the project in the id of the session.
    public let apiKey: String
    /// Hears what happens in the session.
    public weak var delegate: (any OTSessionDelegate)?
    /// This client's connection; nil unless the session is connected.
    public private(set) var connection: OTConnection?

    let settings: OTSessionSettings
    /// The SDK's session; nil before the first attempt to connect and after the end.
    var live: Session?
    /// From `connect` to the end of the session.
    var life: Task<Void, Never>?
    private var watching: Task<Void, Never>?
    var isConnected = false
    /// Whether the application asked for end-to-end encryption. Its media is not sent without.
    var wantsEncryption = false
    var connectionsByID: [ConnectionID: OTConnection] = [:]
    var streamsByID: [StreamID: OTStream] = [:]
    var publishers: [OTPublisherKit] = []
    var subscribers: [OTSubscriberKit] = []

    /// Creates a session that is not connected.
    ///
    /// - Parameters:
    ///   - apiKey: the key of the project.
    ///   - sessionId: the id of the session, from your own server.
    ///   - delegate: hears what happens. The session does not keep it.
    ///   - settings: settings of this session; nil for the default ones.
    public init?(
        apiKey: String, sessionId: String, delegate: (any OTSessionDelegate)?, settings: OTSessionSettings?
    ) {
        (self.apiKey, self.sessionId, self.delegate) = (apiKey, sessionId, delegate)
        self.settings = settings ?? OTSessionSettings()
        super.init()
    }

    /// Creates a session with the default settings.
    public convenience init?(apiKey: String, sessionId: String, delegate: (any OTSessionDelegate)?) {
        self.init(apiKey: apiKey, sessionId: sessionId, delegate: delegate, settings: nil)
    }

    deinit {
        life?.cancel()
        watching?.cancel()
        if let live { Task { await live.disconnect() } }
    }

    /// The streams of the other clients, by their ids.
    public var streams: [String: OTStream] {
        Dictionary(uniqueKeysWithValues: streamsByID.values.map { ($0.streamId, $0) })
    }

    /// The state of the session.
    public var sessionConnectionStatus: OTSessionConnectionStatus {
        guard isConnected || life == nil else { return .connecting }
        return live.flatMap { OTSessionConnectionStatus(rawValue: $0.status.rawValue) } ?? .notConnected
    }

    /// What the token allows; nil unless the session is connected.
    public var capabilities: OTSessionCapabilities? {
        guard isConnected, let allowed = live?.capabilities else { return nil }
        return OTSessionCapabilities(allowed)
    }

    // MARK: Life

    /// Connects the session, and its client if necessary. The delegate hears the result.
    public func connect(withToken token: String, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            guard life == nil else {
                throw OTError(.sessionIllegalState, "The session is connected or connecting. Disconnect it first.")
            }
            if let refusal = settings.refusal { throw refusal }
            guard let client = settings.client ?? OTConfab.client else {
                throw OTError(
                    .sessionIllegalState, "There is no client. Set OTConfab.client before you connect a session.")
            }
            guard let id = SessionID(text: sessionId) else {
                throw OTError(.errorInvalidSession, "This is not a session id. Use the one that your server created.")
            }
            guard !token.isEmpty else {
                throw OTError(.nullOrInvalidParameter, "The token is empty. Ask your server for one.")
            }
            life = Task { [weak self] in
                let session = await client.session(id, token: token)
                // Before connecting, so that no event is missed.
                let events = session.events.makeAsyncIterator()
                var failure: ConfabError?
                do throws(ConfabError) {
                    try await client.connect()
                    try await session.connect()
                } catch {
                    failure = error
                }
                if failure == nil, !Task.isCancelled {
                    self?.connected(session)
                    await Self.live(events) { [weak self] in self }
                } else {
                    // In a task that is not cancelled.
                    Task { await session.disconnect() }
                    self?.neverConnected(Task.isCancelled ? nil : failure)
                }
            }
        }
    }

    /// Hears events until the session has ended, and does not keep its object.
    private static func live(_ first: Events<Session.Event>.Iterator, _ session: () -> OTSession?) async {
        var events = first
        while true {
            while let event = await events.next() {
                session()?.hear(event)
                if case .disconnected = event { return }
            }
            guard let failure = events.failure, let next = session()?.resume(after: failure) else { return }
            events = next
        }
    }

    /// Leaves the session. The delegate hears when that has happened.
    public func disconnect(_ error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            guard let life else { throw .notConnected }
            if isConnected, let live {
                Task { await live.disconnect() }
            } else {
                life.cancel()
            }
        }
    }

    private func connected(_ session: Session) {
        (live, isConnected) = (session, true)
        connection = session.connection.map { OTConnection($0) }
        delegate?.sessionDidConnect(self)
        let statuses = session.statuses.makeAsyncIterator()
        watching = Task { [weak self] in
            var wasConnected = true
            while let status = await statuses.next() {
                if status == .reconnecting, wasConnected {
                    wasConnected = false
                    self?.reconnecting()
                } else if status == .connected, !wasConnected {
                    wasConnected = true
                    self?.reconnected()
                }
            }
        }
    }

    private func reconnecting() { delegate?.sessionDidBeginReconnecting(self) }
    private func reconnected() { delegate?.sessionDidReconnect(self) }

    /// - Parameter error: why; nil if `disconnect` was called.
    private func neverConnected(_ error: ConfabError?) {
        reset()
        if let error {
            delegate?.session(self, didFailWithError: OTError(session: error, otherwise: .connectionFailed))
        } else {
            delegate?.sessionDidDisconnect(self)
        }
    }

    func ended() {
        reset()
        delegate?.sessionDidDisconnect(self)
    }

    private func reset() {
        watching?.cancel()
        (live, life, watching, connection, isConnected) = (nil, nil, nil, nil, false)
        (connectionsByID, streamsByID) = ([:], [:])
    }

    // MARK: Requests

    /// The SDK's session.
    ///
    /// - Throws: 1010 unless the session is connected.
    func demand() throws(OTError) -> Session {
        guard isConnected, let live else { throw .notConnected }
        return live
    }

    /// Reports a request that was refused, unless it was cancelled.
    func refused(_ error: ConfabError, _ fallback: OTSessionErrorCode) {
        if error.code == .cancelled { return }
        delegate?.session(self, didFailWithError: OTError(session: error, otherwise: fallback))
    }

    /// Sends a signal to one client, or to everyone including this client. Signals are sent in the order of the calls, after an
    /// outage too.
    public func signal(
        withType type: String?, string: String?, connection: OTConnection?, error: UnsafeMutablePointer<OTError?>?
    ) {
        signal(withType: type, string: string, connection: connection, retryAfterReconnect: true, error: error)
    }

    /// Sends a signal like `signal(withType:string:connection:error:)`.
    ///
    /// - Parameter retryAfterReconnect: during an outage, whether to send the signal afterwards. Otherwise `error` is 1550.
    public func signal(
        withType type: String?, string: String?, connection: OTConnection?, retryAfterReconnect: Bool,
        error: UnsafeMutablePointer<OTError?>?
    ) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            if session.status == .reconnecting, !retryAfterReconnect {
                throw OTError(
                    .sessionUnableToSendSignal, "The connection is being restored. Send the signal again when it is.")
            }
            session.post(type, string, to: connection?.id) { [weak self] refusal in
                guard let refusal else { return }
                Task { @MainActor in self?.refused(refusal, .sessionUnableToSendSignal) }
            }
        }
    }

    /// Removes a client. Moderators only.
    public func forceDisconnect(_ connection: OTConnection, error: UnsafeMutablePointer<OTError?>?) {
        let id = connection.id
        ask(.sessionUnableToForceDisconnect, error) { (session) async throws(ConfabError) in
            try await session.forceDisconnect(id)
        }
    }

    /// Mutes one stream. Moderators only.
    public func forceMuteStream(_ stream: OTStream, error: UnsafeMutablePointer<OTError?>?) {
        let id = stream.media.id
        ask(.sessionUnableToForceMute, error) { (session) async throws(ConfabError) in try await session.forceMute(id) }
    }

    /// Mutes all streams, and those that are published until `disableForceMute`. Moderators only.
    public func forceMuteAll(_ excludedStreams: [OTStream]?, error: UnsafeMutablePointer<OTError?>?) {
        let excluded = (excludedStreams ?? []).map(\.media.id)
        ask(.sessionUnableToForceMute, error) { (session) async throws(ConfabError) in
            try await session.forceMuteAll(excluding: excluded)
        }
    }

    /// Ends the muting of all streams. Moderators only.
    public func disableForceMute(_ error: UnsafeMutablePointer<OTError?>?) {
        ask(.sessionUnableToForceMute, error) { (session) async throws(ConfabError) in
            try await session.disableForceMute()
        }
    }

    private func ask(
        _ fallback: OTSessionErrorCode, _ error: UnsafeMutablePointer<OTError?>?,
        _ request: @escaping @Sendable (Session) async throws(ConfabError) -> Void
    ) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            Task { [weak self] in
                do throws(ConfabError) { try await request(session) } catch { self?.refused(error, fallback) }
            }
        }
    }
}

// Publishers and subscribers.
extension OTSession {
    /// Publishes. The delegate of the publisher hears the result.
    public func publish(_ publisher: OTPublisherKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            guard publisher.session == nil else {
                throw OTError(.sessionIllegalState, "This publisher is published already. Unpublish it first.")
            }
            guard !wantsEncryption else {
                throw OTError(OTPublisherErrorCode.publisherEncryptionInternalError, Self.noEncryption)
            }
            guard let client = settings.client ?? OTConfab.client else { throw .notConnected }
            publishers.append(publisher)
            publisher.begin(in: self, session, client)
        }
    }

    /// Ends a stream of this client.
    public func unpublish(_ publisher: OTPublisherKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            guard publisher.session === self else {
                throw OTError(
                    .sessionPublisherNotFound, "This publisher is not published in this session. Publish it first.")
            }
            publisher.finish()
        }
    }

    /// Receives a stream. The delegate of the subscriber hears when media arrives.
    public func subscribe(_ subscriber: OTSubscriberKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            guard subscriber.session == nil else {
                throw OTError(
                    .sessionIllegalState, "This subscriber receives its stream already. Unsubscribe it first.")
            }
            guard !wantsEncryption else {
                throw OTError(OTSubscriberErrorCode.subscriberDecryptionInternalError, Self.noEncryption)
            }
            subscribers.append(subscriber)
            subscriber.begin(in: self, session)
        }
    }

    /// Stops receiving a stream.
    public func unsubscribe(_ subscriber: OTSubscriberKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            guard subscriber.session === self else {
                throw OTError(.sessionSubscriberNotFound, "This subscriber is not in this session. Subscribe it first.")
            }
            subscriber.finish()
        }
    }
}

extension OTError {
    static var notConnected: OTError { OTError(.notConnected, "The session is not connected. Connect it first.") }
}

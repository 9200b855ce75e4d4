import Confab
import Foundation

/// A session, with the methods of OpenTok's class. Each method calls `Session` of the SDK `Confab`, and the delegate
/// receives the result. An `error` parameter receives only errors that are detected immediately, for example that the
/// session is not connected; it receives nil if there is no such error.
@preconcurrency @MainActor open class OTSession: NSObject {
    /// The id of the session, as passed to the initializer.
    public let sessionId: String
    /// The key of the project. It is not used, because the id of the session identifies the project.
    public let apiKey: String
    /// Receives the events of the session.
    public weak var delegate: (any OTSessionDelegate)?
    /// This client's connection; nil unless the session is connected.
    public private(set) var connection: OTConnection?

    let settings: OTSessionSettings
    /// The SDK's session; nil unless the session is connected.
    var live: Session?
    /// The task that runs from `connect` to the end of the session; nil otherwise.
    var life: Task<Void, Never>?
    private var watching: Task<Void, Never>?
    var isConnected = false
    /// Whether the application requested end-to-end encryption. Its media is then not sent, because it would be
    /// unencrypted.
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
    ///   - delegate: receives the events. The session holds it weakly.
    ///   - settings: settings of this session; nil for the defaults.
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

    /// The streams of the other clients, keyed by their ids.
    public var streams: [String: OTStream] {
        Dictionary(uniqueKeysWithValues: streamsByID.values.map { ($0.streamId, $0) })
    }

    /// The state of the session.
    public var sessionConnectionStatus: OTSessionConnectionStatus {
        guard isConnected || life == nil else { return .connecting }
        return live.flatMap { OTSessionConnectionStatus(rawValue: $0.status.rawValue) } ?? .notConnected
    }

    /// The capabilities that the token grants; nil unless the session is connected.
    public var capabilities: OTSessionCapabilities? {
        guard isConnected, let allowed = live?.capabilities else { return nil }
        return OTSessionCapabilities(allowed)
    }

    // MARK: Life cycle

    /// Connects the session, and its client if necessary. The delegate receives the result.
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
                throw OTError(.errorInvalidSession, "Invalid session id. Use the one that your server created.")
            }
            guard !token.isEmpty else {
                throw OTError(.nullOrInvalidParameter, "The token is empty. Get one from your server.")
            }
            life = Task { [weak self] in
                let session = await client.session(id, token: token)
                // Subscribe before connecting, so that no event is missed.
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
                    // Disconnect in a separate task, because this task may be canceled.
                    Task { await session.disconnect() }
                    self?.neverConnected(Task.isCancelled ? nil : failure)
                }
            }
        }
    }

    /// Handles events until the session has ended, without keeping the session's object alive.
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

    /// Leaves the session. The delegate is notified when this client has left.
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

    /// Handles a failed or canceled attempt to connect.
    ///
    /// - Parameter error: the reason; nil if `disconnect` was called.
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

    /// Returns the SDK's session.
    ///
    /// - Throws: error 1010 unless the session is connected.
    func demand() throws(OTError) -> Session {
        guard isConnected, let live else { throw .notConnected }
        return live
    }

    /// Reports a rejected request, unless it was canceled. The error has the number `fallback` if ``ErrorNumbers``
    /// has none.
    func refused(_ error: ConfabError, _ fallback: OTSessionErrorCode) {
        if error.code == .cancelled { return }
        delegate?.session(self, didFailWithError: OTError(session: error, otherwise: fallback))
    }

    /// Sends a signal to one client or, if `connection` is nil, to everyone including this client. Signals are sent in
    /// the order in which this method is called, also after an outage.
    public func signal(
        withType type: String?, string: String?, connection: OTConnection?, error: UnsafeMutablePointer<OTError?>?
    ) {
        signal(withType: type, string: string, connection: connection, retryAfterReconnect: true, error: error)
    }

    /// Sends a signal like `signal(withType:string:connection:error:)`.
    ///
    /// - Parameter retryAfterReconnect: whether to send a signal after an outage if the connection is being restored
    ///   now. If false, `error` is set to 1550 in this case, and the signal is not sent.
    public func signal(
        withType type: String?, string: String?, connection: OTConnection?, retryAfterReconnect: Bool,
        error: UnsafeMutablePointer<OTError?>?
    ) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            if session.status == .reconnecting, !retryAfterReconnect {
                throw OTError(
                    .sessionUnableToSendSignal, "The connection is being restored. Send the signal again afterwards.")
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

    /// Mutes all streams except `excludedStreams`, including streams that are published later but before
    /// `disableForceMute`. Moderators only.
    public func forceMuteAll(_ excludedStreams: [OTStream]?, error: UnsafeMutablePointer<OTError?>?) {
        let excluded = (excludedStreams ?? []).map(\.media.id)
        ask(.sessionUnableToForceMute, error) { (session) async throws(ConfabError) in
            try await session.forceMuteAll(excluding: excluded)
        }
    }

    /// Stops muting new streams. Moderators only.
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
    /// Publishes a stream. The delegate of the publisher receives the result.
    public func publish(_ publisher: OTPublisherKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            guard publisher.session == nil else {
                throw OTError(.sessionIllegalState, "This publisher is already published. Unpublish it first.")
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

    /// Receives a stream. The delegate of the subscriber is notified when media arrives.
    public func subscribe(_ subscriber: OTSubscriberKit, error: UnsafeMutablePointer<OTError?>?) {
        reporting(to: error) { () throws(OTError) in
            let session = try demand()
            guard subscriber.session == nil else {
                throw OTError(
                    .sessionIllegalState, "This subscriber already receives its stream. Unsubscribe it first.")
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

/// The server's ICE-lite agent (RFC 8445 §2.5). The server is reachable, so the agent is always controlled: it answers
/// checks and does not look for paths. It ignores the client's candidates. It never sends media to an address until a
/// check with the right password, or an authentic answer to its own check, has arrived from there.
///
/// It sends its own check in only one case: if the client's media or RTCP arrives from an address that is not
/// validated, because a NAT has assigned a new one. The client would notice only at its next check, seconds later. An
/// answer shows that the client is at that address and consents (RFC 7675 §5.1), so the agent validates and selects the
/// path.
///
/// An authenticated check *validates* a path. A check with USE-CANDIDATE *selects* a path; the most recent one counts,
/// because a phone that changes networks nominates its new path. A path without a check for `ICETimes.consent` is
/// removed.
public struct ICELiteAgent {
    /// The maximum number of paths. A phone has a few interfaces, each with one or two addresses, over UDP and TCP. Beyond this
    /// number, the least recently checked path is removed.
    public static let maxPaths = 16

    /// The credentials of both sides since the connection began or since an ICE restart.
    private struct Generation {
        var local: ICECredentials
        var name: [UInt8]
        var key: [UInt8]
        /// The client's username fragment; nil until the client's description arrives. Until then the agent accepts any
        /// fragment, because a check is already authenticated by the server's password.
        var remoteName: [UInt8]?
        /// The client's password, which authenticates the client's answers; nil until the client's description
        /// arrives.
        var remoteKey: [UInt8]?
        var number: Int

        init(_ local: ICECredentials, remoteUfrag: String?, number: Int) {
            self.local = local
            name = Array(local.ufrag.utf8)
            key = Array(local.password.utf8)
            remoteName = remoteUfrag.map { Array($0.utf8) }
            self.number = number
        }

        func isMeant(by username: UnsafeRawBufferPointer) -> Bool {
            guard username.count > name.count, username[name.count] == UInt8(ascii: ":"),
                username.starts(with: name)
            else { return false }
            return remoteName.map { username.dropFirst(name.count + 1).elementsEqual($0) } ?? true
        }
    }

    /// A check that this agent sent.
    private struct OwnCheck {
        var path: Path
        var transaction: STUNTransaction
        var sentAt: MediaTime
    }

    /// A path that was validated, and when it was last checked.
    private struct ValidatedPath {
        var path: Path
        var lastChecked: MediaTime
        var generation: Int
    }

    private var current: Generation
    /// The credentials before a restart, accepted until a path is nominated with the new ones (RFC 8445 §9).
    private var former: Generation?
    private var paths: [ValidatedPath] = []
    /// This agent's most recent check that was not answered yet; nil if there is none.
    private var ownCheck: OwnCheck?
    /// The nominated path, which carries media; nil before the first nomination, and after all paths are lost.
    public private(set) var selectedPath: Path?

    public init(local: ICECredentials, remoteUfrag: String? = nil) {
        current = Generation(local, remoteUfrag: remoteUfrag, number: 0)
    }

    public var local: ICECredentials { current.local }
    public var hasPath: Bool { !paths.isEmpty }
    public func isValidated(_ path: Path) -> Bool { paths.contains { $0.path == path } }

    public mutating func setRemote(ufrag: String) { current.remoteName = Array(ufrag.utf8) }

    mutating func setRemote(_ remote: ICECredentials) {
        (current.remoteName, current.remoteKey) = (Array(remote.ufrag.utf8), Array(remote.password.utf8))
    }

    /// Restarts ICE with new credentials on both sides. Validated paths stay valid until a path is nominated with the
    /// new credentials.
    public mutating func restart(local: ICECredentials, remoteUfrag: String?) {
        ownCheck = nil
        // Keep the older credentials: after two restarts in a row, the paths in use still belong to the credentials
        // from before the first restart.
        if former == nil { former = current }
        current = Generation(local, remoteUfrag: remoteUfrag, number: current.number &+ 1)
    }

    /// Processes a datagram whose first byte identifies STUN. Sends a response to `sink` only if the request has the right
    /// password.
    public mutating func handle(
        _ datagram: UnsafeRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> ICEOutcome {
        guard let message = STUNMessage(datagram), message.method == STUN.binding else { return .dropped(.malformed) }
        if message.class == .success { return receiveAnswer(message, on: path, now: now) }
        guard message.class == .request, let username = message.username else { return .dropped(.malformed) }
        // Do not answer unknown names: an error response could be used for reflection, and would reveal which names exist.
        guard let generation = [current, former].lazy.compactMap({ $0 }).first(where: { $0.isMeant(by: username) })
        else { return .dropped(.unknownName) }
        guard message.isAuthentic(generation.key) else { return .dropped(.unauthenticated) }
        guard message.unknown.isEmpty else {
            answer(message, .failure, generation.key, on: path, sink) { writer in
                writer.error(420)
                writer.unknownAttributes(message.unknown)
            }
            return .refused(420)
        }
        // Refuse the check if both agents claim to be controlled. A lite agent never switches its role (RFC 8445
        // §7.3.1.1, §6.1.1).
        guard message.controlled == nil else {
            answer(message, .failure, generation.key, on: path, sink) { $0.error(487) }
            return .refused(487)
        }
        answer(message, .success, generation.key, on: path, sink) { $0.xorMappedAddress(path.remote) }
        let isNew = touch(path, generation.number, now)
        if message.useCandidate, nominate(path, generation.number) { return .selected }
        return isNew ? .validated : .refreshed
    }

    // MARK: Checks by this agent

    /// The minimum time between two checks by this agent.
    static let ownCheckInterval = MediaInterval.milliseconds(200)
    /// The maximum time for an answer to a check by this agent.
    static let longestAnswer = MediaInterval.seconds(2)

    /// Checks whether the client is at the end of a path that is not validated. An authentic and new packet must have
    /// arrived over the path before, and there are at most five checks per second, so that the checks cannot be used to
    /// flood another address.
    mutating func check(
        _ path: Path, now: MediaTime, sink: any DatagramSink, using random: inout some RandomNumberGenerator
    ) {
        guard let name = current.remoteName, let key = current.remoteKey, !isValidated(path) else { return }
        if let ownCheck, now - ownCheck.sentAt < Self.ownCheckInterval { return }
        let transaction = STUNTransaction(using: &random)
        ownCheck = OwnCheck(path: path, transaction: transaction, sentAt: now)
        var writer = STUNWriter(sink.prepare(STUN.maxBytes), .request, transaction: transaction)
        writer.username(name + [UInt8(ascii: ":")] + current.name)
        // The priority of a peer-reflexive candidate (RFC 8445 §5.1.2.1); the client ignores it.
        writer.priority(110 << 24 | 65535 << 8 | 255)
        writer.controlled(tieBreaker: random.next())
        if let length = writer.finish(key: key) { sink.send(length, on: path) }
    }

    private mutating func receiveAnswer(_ message: STUNMessage, on path: Path, now: MediaTime) -> ICEOutcome {
        guard let ownCheck, ownCheck.path == path, ownCheck.transaction == message.transaction,
            now - ownCheck.sentAt <= Self.longestAnswer
        else { return .dropped(.unsolicited) }
        guard let key = current.remoteKey, message.isAuthentic(key) else { return .dropped(.unauthenticated) }
        self.ownCheck = nil
        _ = touch(path, current.number, now)
        selectedPath = path
        return .selected
    }

    private func answer(
        _ request: STUNMessage, _ class: STUN.Class, _ key: [UInt8], on path: Path, _ sink: any DatagramSink,
        _ body: (inout STUNWriter) -> Void
    ) {
        var writer = STUNWriter(sink.prepare(STUN.maxBytes), `class`, transaction: request.transaction)
        body(&writer)
        if let length = writer.finish(key: key) { sink.send(length, on: path) }
    }

    /// Records that a check arrived on a path.
    ///
    /// - Returns: true if the path is new.
    private mutating func touch(_ path: Path, _ generation: Int, _ now: MediaTime) -> Bool {
        if let index = paths.firstIndex(where: { $0.path == path }) {
            paths[index].lastChecked = max(paths[index].lastChecked, now)
            paths[index].generation = max(paths[index].generation, generation)
            return false
        }
        paths.append(ValidatedPath(path: path, lastChecked: now, generation: generation))
        if paths.count > Self.maxPaths {
            let others = paths.indices.dropLast().filter { paths[$0].path != selectedPath }
            if let oldest = others.min(by: { paths[$0].lastChecked < paths[$1].lastChecked }) {
                paths.remove(at: oldest)
            }
        }
        return true
    }

    /// Selects a path that the remote agent has nominated.
    ///
    /// - Returns: true if the selected path changed.
    private mutating func nominate(_ path: Path, _ generation: Int) -> Bool {
        // After a restart, a check with the previous credentials is outdated, so it must not select another path.
        guard generation == current.number || selectedPath == nil else { return false }
        if generation == current.number, former != nil {
            former = nil
            paths.removeAll { $0.generation < generation }
        }
        guard selectedPath != path else { return false }
        selectedPath = path
        return true
    }

    /// The earliest time at which the consent of a path expires; nil if there is no path.
    public var nextTimeout: MediaTime? {
        // This property is read at every tick, so avoid an intermediate array.
        var earliest: MediaTime?
        for path in paths { earliest = min(earliest ?? path.lastChecked, path.lastChecked) }
        return earliest.map { $0 + ICETimes.consent }
    }

    /// Removes paths whose consent has expired. If the selected path is among them, selects the most recently checked remaining
    /// path.
    public mutating func handleTimeout(now: MediaTime) {
        paths.removeAll { $0.lastChecked + ICETimes.consent <= now }
        if let selectedPath, !isValidated(selectedPath) {
            self.selectedPath = paths.max { $0.lastChecked < $1.lastChecked }?.path
        }
    }

    /// Removes the paths of a closed socket (TCP).
    public mutating func remove(socket: UInt32) {
        paths.removeAll { $0.path.socket == socket }
        if let selectedPath, !isValidated(selectedPath) {
            self.selectedPath = paths.max { $0.lastChecked < $1.lastChecked }?.path
        }
    }
}

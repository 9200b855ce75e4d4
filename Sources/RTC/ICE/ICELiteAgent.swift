/// The server's end of ICE (RFC 8445 §2.5): it is reachable, so it answers checks, always controlled, and asks nothing. It
/// never sends to an address that has not sent to it with the right password; the other end's candidates are not even
/// known here.
///
/// A path is *validated* by an authenticated check over it, *selected* by one with USE-CANDIDATE (the last one counts: a
/// phone that moves nominates its new path), and gone when nobody asked over it for `ICETimes.consent`.
public struct ICELiteAgent {
    /// A phone has a few interfaces, each seen from one or two addresses over UDP and TCP. The one used longest ago goes.
    public static let mostPaths = 16

    private struct Generation {
        var local: ICECredentials
        var name: [UInt8]
        var key: [UInt8]
        /// Nil as long as the other end's description has not come: then any name is taken, for the password proves enough.
        var remoteName: [UInt8]?
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

    private struct ValidatedPath {
        var path: Path
        var lastChecked: MediaTime
        var generation: Int
    }

    private var current: Generation
    /// After a restart, until a path is nominated under the new credentials (RFC 8445 §9).
    private var former: Generation?
    private var paths: [ValidatedPath] = []
    /// Where to send media.
    public private(set) var selectedPath: Path?

    public init(local: ICECredentials, remoteUfrag: String? = nil) {
        current = Generation(local, remoteUfrag: remoteUfrag, number: 0)
        paths.reserveCapacity(Self.mostPaths + 1)
    }

    public var local: ICECredentials { current.local }
    public var hasPath: Bool { !paths.isEmpty }
    public func isValidated(_ path: Path) -> Bool { paths.contains { $0.path == path } }

    public mutating func setRemote(ufrag: String) { current.remoteName = Array(ufrag.utf8) }

    /// New credentials on both sides. What was validated stays good until a path is nominated under the new ones.
    public mutating func restart(local: ICECredentials, remoteUfrag: String?) {
        // Of two restarts in a row, what is in use is of the time before the first.
        if former == nil { former = current }
        current = Generation(local, remoteUfrag: remoteUfrag, number: current.number &+ 1)
    }

    /// Takes a datagram that begins as STUN does, and answers through `sink` only who has the password.
    public mutating func handle(
        _ datagram: UnsafeRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> ICEOutcome {
        guard let message = STUNMessage(datagram), message.class == .request, message.method == STUN.binding,
            let username = message.username
        else { return .dropped(.malformed) }
        // Silence to strangers: an error would be a reflector and tell which names exist.
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
        // Two ends that are both controlled: a lite agent is never the one to change (RFC 8445 §7.3.1.1, §6.1.1).
        guard message.controlled == nil else {
            answer(message, .failure, generation.key, on: path, sink) { $0.error(487) }
            return .refused(487)
        }
        answer(message, .success, generation.key, on: path, sink) { $0.xorMappedAddress(path.remote) }
        let isNew = touch(path, generation.number, now)
        if message.useCandidate, nominate(path, generation.number) { return .selected }
        return isNew ? .validated : .refreshed
    }

    private func answer(
        _ request: STUNMessage, _ class: STUN.Class, _ key: [UInt8], on path: Path, _ sink: any DatagramSink,
        _ body: (inout STUNWriter) -> Void
    ) {
        var writer = STUNWriter(sink.prepare(STUN.mostBytes), `class`, transaction: request.transaction)
        body(&writer)
        if let length = writer.finish(key: key) { sink.send(length, on: path) }
    }

    /// - Returns: whether the path was not known.
    private mutating func touch(_ path: Path, _ generation: Int, _ now: MediaTime) -> Bool {
        if let index = paths.firstIndex(where: { $0.path == path }) {
            paths[index].lastChecked = max(paths[index].lastChecked, now)
            paths[index].generation = max(paths[index].generation, generation)
            return false
        }
        paths.append(ValidatedPath(path: path, lastChecked: now, generation: generation))
        if paths.count > Self.mostPaths {
            let others = paths.indices.dropLast().filter { paths[$0].path != selectedPath }
            if let oldest = others.min(by: { paths[$0].lastChecked < paths[$1].lastChecked }) {
                paths.remove(at: oldest)
            }
        }
        return true
    }

    /// - Returns: whether that changed anything.
    private mutating func nominate(_ path: Path, _ generation: Int) -> Bool {
        // Under the former credentials nothing new is chosen once somebody has restarted: those checks are late.
        guard generation == current.number || selectedPath == nil else { return false }
        if generation == current.number, former != nil {
            former = nil
            paths.removeAll { $0.generation < generation }
        }
        guard selectedPath != path else { return false }
        selectedPath = path
        return true
    }

    /// When the next path will have gone unasked for too long.
    public var nextTimeout: MediaTime? {
        // Asked for at every tick: without an array in between.
        var earliest: MediaTime?
        for path in paths { earliest = min(earliest ?? path.lastChecked, path.lastChecked) }
        return earliest.map { $0 + ICETimes.consent }
    }

    /// Forgets paths that nobody asked over. If the selected one is among them, the one asked over last takes its place.
    public mutating func handleTimeout(now: MediaTime) {
        paths.removeAll { $0.lastChecked + ICETimes.consent <= now }
        if let selectedPath, !isValidated(selectedPath) {
            self.selectedPath = paths.max { $0.lastChecked < $1.lastChecked }?.path
        }
    }

    /// A socket is gone: a TCP connection was closed.
    public mutating func remove(socket: UInt32) {
        paths.removeAll { $0.path.socket == socket }
        if let selectedPath, !isValidated(selectedPath) {
            self.selectedPath = paths.max { $0.lastChecked < $1.lastChecked }?.path
        }
    }
}

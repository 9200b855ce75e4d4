/// The ICE agent of a transport, in either role.
enum TransportAgent {
    case lite(ICELiteAgent)
    case controlling(ICEControllingAgent)

    var local: ICECredentials {
        switch self {
        case .lite(let agent): agent.local
        case .controlling(let agent): agent.local
        }
    }

    var selectedPath: Path? {
        switch self {
        case .lite(let agent): agent.selectedPath
        case .controlling(let agent): agent.selectedPath
        }
    }

    var hasPath: Bool {
        switch self {
        case .lite(let agent): agent.hasPath
        case .controlling(let agent): agent.validatedPath != nil
        }
    }

    /// Whether all pairs have failed. Always false for a lite agent, because another check can always arrive.
    var hasFailed: Bool {
        if case .controlling(let agent) = self { agent.hasFailed } else { false }
    }

    func isValidated(_ path: Path) -> Bool {
        switch self {
        case .lite(let agent): agent.isValidated(path)
        case .controlling(let agent): agent.isValidated(path)
        }
    }

    var nextTimeout: MediaTime? {
        switch self {
        case .lite(let agent): agent.nextTimeout
        case .controlling(let agent): agent.nextTimeout
        }
    }

    mutating func setRemote(_ remote: ICECredentials) {
        switch self {
        case .lite(var agent):
            agent.setRemote(remote)
            self = .lite(agent)
        case .controlling(var agent):
            agent.setRemote(remote)
            self = .controlling(agent)
        }
    }

    mutating func restart(local: ICECredentials, remote: ICECredentials) {
        switch self {
        case .lite(var agent):
            agent.restart(local: local, remoteUfrag: remote.ufrag)
            agent.setRemote(remote)
            self = .lite(agent)
        case .controlling(var agent):
            agent.restart(local: local, remote: remote)
            self = .controlling(agent)
        }
    }

    mutating func remove(socket: UInt32) {
        switch self {
        case .lite(var agent):
            agent.remove(socket: socket)
            self = .lite(agent)
        case .controlling(var agent):
            agent.remove(socket: socket)
            self = .controlling(agent)
        }
    }

    mutating func add(_ path: Path, priority: UInt32) {
        guard case .controlling(var agent) = self else { return }
        agent.add(path, priority: priority)
        self = .controlling(agent)
    }

    /// Checks a path from which media arrived before a check validated it. Only a lite agent does this.
    mutating func check(
        _ path: Path, now: MediaTime, sink: any DatagramSink, using random: inout some RandomNumberGenerator
    ) {
        guard case .lite(var agent) = self else { return }
        agent.check(path, now: now, sink: sink, using: &random)
        self = .lite(agent)
    }

    mutating func handle(
        _ datagram: UnsafeRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink,
        using random: inout some RandomNumberGenerator
    ) -> ICEOutcome {
        switch self {
        case .lite(var agent):
            defer { self = .lite(agent) }
            return agent.handle(datagram, on: path, now: now, sink: sink)
        case .controlling(var agent):
            defer { self = .controlling(agent) }
            return agent.handle(datagram, on: path, now: now, sink: sink, using: &random)
        }
    }

    mutating func handleTimeout(
        now: MediaTime, sink: any DatagramSink, using random: inout some RandomNumberGenerator
    ) {
        switch self {
        case .lite(var agent):
            agent.handleTimeout(now: now)
            self = .lite(agent)
        case .controlling(var agent):
            agent.handleTimeout(now: now, sink: sink, using: &random)
            self = .controlling(agent)
        }
    }
}

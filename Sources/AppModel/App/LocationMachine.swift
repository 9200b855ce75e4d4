/// What the location service of the system is asked to do, and what its callers are told.
public enum LocationEffect: Equatable, Sendable {
    /// Shows the system's question.
    case requestPermission
    /// Answers everyone who asked for the permission.
    case answer(PermissionStatus)
    case startUpdates, stopUpdates
    /// Tells what became of the location.
    case report(LocationReport)
}

/// What is known about the location of the device.
public enum LocationReport: Equatable, Sendable {
    case position(DevicePosition)
    /// It cannot be determined now. A position may still follow.
    case unavailable
    /// The permission is gone, and no position follows.
    case forbidden(PermissionStatus)
}

/// Why the system has no location.
public enum LocationFailure: Equatable, Sendable {
    /// The system goes on trying.
    case notYet
    case forbidden
    case other

    /// - Parameter code: the code of the system's error (`CLError.Code`); nil for an error of another kind.
    public init(code: Int?) {
        switch code {
        case 0: self = .notYet
        case 1: self = .forbidden
        default: self = .other
        }
    }
}

/// The location of the device: asks for the permission once, however many callers there are, and stops when it is withdrawn.
///
/// Invariant: updates run only while they are wanted and allowed.
public struct LocationMachine: Equatable, Sendable {
    private enum State: Equatable {
        case stopped
        /// Updates run. Next: `waiting`, `measured`, or `stopped`.
        case searching
        /// The system said once that it goes on trying. Next: `measured`, or `stopped`.
        case waiting
        /// A position was reported. Next: `stopped`.
        case measured
    }

    private var state = State.stopped
    /// Whether the system shows its question, or will.
    private var isAsking = false

    public init() {}

    // MARK: What callers want

    /// A caller asks for the permission, which has this status now. It is answered together with all others that ask.
    public mutating func ask(_ permission: PermissionStatus) -> [LocationEffect] {
        guard permission == .notAsked else { return [.answer(permission)] }
        guard !isAsking else { return [] }
        isAsking = true
        return [.requestPermission]
    }

    /// Starts updates, or tries again: the system searches again only after a stop.
    public mutating func start(_ permission: PermissionStatus) -> [LocationEffect] {
        let stopping = stop()
        guard permission == .allowed else { return stopping + [.report(.forbidden(permission))] }
        state = .searching
        return stopping + [.startUpdates]
    }

    public mutating func stop() -> [LocationEffect] {
        guard state != .stopped else { return [] }
        state = .stopped
        return [.stopUpdates]
    }

    // MARK: What the system says

    /// The permission has changed. The system also says it at the launch, before the person has decided.
    public mutating func permissionChanged(to permission: PermissionStatus) -> [LocationEffect] {
        var effects: [LocationEffect] = []
        if isAsking, permission != .notAsked {
            isAsking = false
            effects.append(.answer(permission))
        }
        return permission == .allowed ? effects : effects + forbid(permission)
    }

    /// New positions, from the oldest to the newest; nil for one that is not valid.
    public mutating func measured(_ positions: [DevicePosition?]) -> [LocationEffect] {
        guard state != .stopped, let newest = positions.compactMap(\.self).last else { return [] }
        state = .measured
        return [.report(.position(newest))]
    }

    /// The system could not determine the location.
    ///
    /// - Parameter permission: the status now.
    public mutating func failed(_ failure: LocationFailure, _ permission: PermissionStatus) -> [LocationEffect] {
        switch failure {
        // The new status may arrive only after the error.
        case .forbidden: forbid(permission == .allowed ? .refused : permission)
        // Said once, it only means that the search takes its time. Indoors it may never end.
        case .notYet where state == .searching: wait()
        // The last position is still good enough: the server keeps about 2 km.
        case .notYet, .other: state == .searching || state == .waiting ? [.report(.unavailable)] : []
        }
    }

    private mutating func wait() -> [LocationEffect] {
        state = .waiting
        return []
    }

    private mutating func forbid(_ permission: PermissionStatus) -> [LocationEffect] {
        guard state != .stopped else { return [] }
        state = .stopped
        return [.stopUpdates, .report(.forbidden(permission))]
    }
}

/// An effect of ``LocationMachine``: a command to the system's location service, or an answer to the machine's
/// callers.
public enum LocationEffect: Equatable, Sendable {
    /// Shows the system's permission prompt.
    case requestPermission
    /// Reports the status of the permission to all callers that requested it.
    case answer(PermissionStatus)
    case startUpdates, stopUpdates
    /// Reports a position or an error to the caller.
    case report(LocationReport)
}

/// A position of the device, or the reason there is none.
public enum LocationReport: Equatable, Sendable {
    case position(DevicePosition)
    /// The position cannot be determined now. A position may still follow.
    case unavailable
    /// The permission was withdrawn. No position follows.
    case forbidden(PermissionStatus)
}

/// Why the system has no position.
public enum LocationFailure: Equatable, Sendable {
    /// The system keeps trying.
    case notYet
    case forbidden
    case other

    /// Translates an error of the system's location service.
    ///
    /// - Parameter code: the code of the system's error (`CLError.Code`); nil for an error of another kind.
    public init(code: Int?) {
        switch code {
        case 0: self = .notYet
        case 1: self = .forbidden
        default: self = .other
        }
    }
}

/// Manages the device's location: requests the permission once for all callers, and stops when it is withdrawn.
///
/// Invariant: updates run only while they are requested and allowed.
public struct LocationMachine: Equatable, Sendable {
    /// Whether updates run, and what the system has reported since they started.
    private enum State: Equatable {
        case stopped
        /// Updates run, and the system has reported nothing yet. Next: `waiting`, `measured`, or `stopped`.
        case searching
        /// The system reported once that it keeps trying. Next: `measured`, or `stopped`.
        case waiting
        /// A position was reported. Next: `stopped`.
        case measured
    }

    private var state = State.stopped
    /// Whether a permission request is pending.
    private var isAsking = false

    public init() {}

    // MARK: Requests from callers

    /// Requests the permission, or answers immediately if `permission`, its current status, is already decided. All
    /// callers that ask while a request is pending are answered together.
    public mutating func ask(_ permission: PermissionStatus) -> [LocationEffect] {
        guard permission == .notAsked else { return [.answer(permission)] }
        guard !isAsking else { return [] }
        isAsking = true
        return [.requestPermission]
    }

    /// Starts updates, or reports that they are not allowed. Stops running updates first, because the system searches
    /// again only after a stop.
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

    // MARK: Events from the system

    /// Handles a change to the permission. The system also reports the permission at launch, before the user has
    /// decided.
    public mutating func permissionChanged(to permission: PermissionStatus) -> [LocationEffect] {
        var effects: [LocationEffect] = []
        if isAsking, permission != .notAsked {
            isAsking = false
            effects.append(.answer(permission))
        }
        return permission == .allowed ? effects : effects + forbid(permission)
    }

    /// Reports the newest valid position. `positions` is sorted from oldest to newest; an invalid one is nil.
    public mutating func measured(_ positions: [DevicePosition?]) -> [LocationEffect] {
        guard state != .stopped, let newest = positions.compactMap(\.self).last else { return [] }
        state = .measured
        return [.report(.position(newest))]
    }

    /// Handles a failure of the system to determine the location.
    ///
    /// - Parameter permission: the current status.
    public mutating func failed(_ failure: LocationFailure, _ permission: PermissionStatus) -> [LocationEffect] {
        switch failure {
        // The error may arrive before the new status, so `permission` may still be `allowed`.
        case .forbidden: forbid(permission == .allowed ? .refused : permission)
        // The first `notYet` only means that the search takes time, so report nothing yet. Report the second one,
        // because indoors the search may never end.
        case .notYet where state == .searching: wait()
        // After a position was reported, report nothing. That position is still good enough, because the server rounds
        // positions to about 2 km.
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

import Wire

/// Decides what to do when storage fails: try again, give up on the changes, or stop the server.
///
/// Another process holds a lock only for a while, and PostgreSQL comes back, so storage that is busy or cannot be reached is
/// retried for a long time. A full disk or an I/O error is retried for a short time. If such an error persists, the server must
/// stop, because it cannot store anything. If another server has taken over the database, the server stops at once. Any other
/// error is caused by the changes themselves.
struct StorageTrouble: Equatable {
    /// What to do after a failure.
    enum Decision: Equatable {
        /// Try the same changes again after this time.
        case retry(after: Duration)
        /// Stop trying: these changes cannot be stored, or storage was busy for too long.
        case giveUp
        /// Stop the server, because nothing can be stored.
        case stop
    }

    static let retryPause: Duration = .milliseconds(100)

    /// How long busy storage is retried.
    let busyLimit: Duration
    /// How long a full disk or an I/O error is retried.
    let faultLimit: Duration
    private var busySince: SuspendingClock.Instant?
    private var faultySince: SuspendingClock.Instant?

    /// Whether storage currently fails with an error that affects all changes and is not temporary. The server is then
    /// not ready.
    var isUnavailable: Bool { faultySince != nil }

    init(busyLimit: Duration, faultLimit: Duration) {
        (self.busyLimit, self.faultLimit) = (busyLimit, faultLimit)
    }

    mutating func succeeded() { (busySince, faultySince) = (nil, nil) }

    mutating func failed(_ error: StorageError, at now: SuspendingClock.Instant) -> Decision {
        guard error.concernsEverything else { return .giveUp }
        // Do not retry: the server itself has closed the storage.
        if error.code == .closed { return .giveUp }
        if error.code == .fenced { return .stop }
        if error.isTemporary {
            let since = busySince ?? now
            busySince = since
            guard now - since >= busyLimit else { return .retry(after: Self.retryPause) }
            busySince = nil
            return .giveUp
        }
        let since = faultySince ?? now
        faultySince = since
        return now - since < faultLimit ? .retry(after: Self.retryPause) : .stop
    }
}

extension StorageError {
    /// True if another process holds the database, too many commits are waiting, or PostgreSQL cannot be reached. Trying again
    /// later can help.
    var isTemporary: Bool { code == .busy || code == .overloaded || code == .unreachable }

    /// True if any other change would fail as well.
    var concernsEverything: Bool {
        switch code {
        case .busy, .overloaded, .unreachable, .fenced, .diskFull, .inputOutput, .notAccessible, .corrupt, .closed: true
        default: false
        }
    }
}

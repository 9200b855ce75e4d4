import Wire

/// Decides what to do when storage fails: try again, give up on the changes, or stop the server.
///
/// A lock that another process holds goes away, so busy storage is retried for a long time. A full disk or an I/O error is
/// retried for a short time; if it persists, the server must stop, because it could store nothing any more. Any other error
/// concerns the changes themselves.
struct StorageTrouble: Equatable {
    enum Decision: Equatable {
        /// Try the same changes again after this time.
        case retry(after: Duration)
        /// The changes cannot be stored.
        case giveUp
        /// Nothing can be stored.
        case stop
    }

    static let retryPause: Duration = .milliseconds(100)

    /// How long busy storage is retried.
    let busyLimit: Duration
    /// How long a full disk or an I/O error is retried.
    let faultLimit: Duration
    private var since: Timestamp?
    /// Whether storage has failed in a way that concerns everything. The server is not ready then.
    private(set) var isUnavailable = false

    init(busyLimit: Duration, faultLimit: Duration) {
        (self.busyLimit, self.faultLimit) = (busyLimit, faultLimit)
    }

    mutating func succeeded() { (since, isUnavailable) = (nil, false) }

    mutating func failed(_ error: StorageError, at now: Timestamp) -> Decision {
        guard error.concernsEverything else { return .giveUp }
        let elapsed = now - (since ?? now)
        since = since ?? now
        if error.isTemporary {
            guard elapsed < busyLimit else {
                since = nil
                return .giveUp
            }
            return .retry(after: Self.retryPause)
        }
        isUnavailable = true
        return elapsed < faultLimit ? .retry(after: Self.retryPause) : .stop
    }
}

extension StorageError {
    /// Another process holds the database, or too much waits. Trying again later helps.
    var isTemporary: Bool { code == .busy || code == .overloaded }

    /// Whether any other change would fail as well.
    var concernsEverything: Bool {
        switch code {
        case .busy, .overloaded, .diskFull, .inputOutput, .notAccessible, .corrupt, .closed: true
        default: false
        }
    }
}

/// Durations on which all nodes of a cluster and the ledger have to agree.
public enum Terms {
    /// How long a life is alive after a renewal, by the ledger's clock.
    public static let leaseDuration = Duration.seconds(3)
    /// How long after a renewal was sent its node may act, by the node's clock: 3 s minus 2 %, because the rates of two clocks may
    /// differ by 2 %.
    public static let leaseValidity = Duration.milliseconds(2940)
    /// The time between renewals.
    public static let renewalInterval = Duration.milliseconds(500)
    /// The most that a failover of the ledger to an asynchronous standby may lose. What others rely on, such as a fence, counts
    /// only when it is this old.
    public static let settling = Duration.seconds(1)
    /// How long after a start or a failover of the ledger no life is fenced. Renewals that were lost are repeated in this time.
    public static let settlingOfServer = Duration.seconds(5)
    /// How long lives may take to register their places under a new epoch.
    public static let registrationTime = Duration.seconds(15)
}

/// The answer to ``Ledger/begin(node:former:)``.
public enum Beginning: Hashable, Sendable {
    /// The life has begun.
    case begun(NodeTag)
    /// Another life has this node number, and cannot be fenced for at least this long: two servers are configured with one number,
    /// or the former process has just ended.
    case held(by: NodeTag, for: Duration)
}

/// The answer to ``Ledger/renew(_:)``.
public enum Renewal: Hashable, Sendable {
    /// The life is alive for another ``Terms/leaseDuration``.
    case renewed
    /// The life is over. `heir` fenced it; nil if the ledger no longer has its row.
    case fenced(heir: NodeTag?)
}

/// A state of Redis under which places are claimed.
public struct Epoch: Hashable, Sendable {
    /// From 1, increased for each epoch.
    public let number: UInt64
    /// Identifies what Redis remembers: `run_id` and `master_replid`, with a colon between them. `run_id` alone is not enough: a
    /// primary that became a replica and then a primary again has kept it, but has lost claims.
    public let store: String

    public init(number: UInt64, store: String) { (self.number, self.store) = (number, store) }
}

/// What the ledger contains at one moment.
public struct LedgerView: Hashable, Sendable {
    /// The row of a life.
    public struct Life: Hashable, Sendable {
        /// Whether a life may act.
        public enum State: Hashable, Sendable {
            /// Not fenced. The lease expires after this duration, or has expired if it is negative.
            case unfenced(expiresIn: Duration)
            /// Fenced by the heir. Its places are void after this duration, or are void if it is not positive: the later of
            /// `void_from` and `judge.since` + ``Terms/settlingOfServer``, minus now.
            case fenced(heir: NodeTag, voidIn: Duration)
        }

        /// Which life it is.
        public var tag: NodeTag
        /// Whether it may act, by the ledger's clock at the time of the view.
        public var state: State
        /// The number of the epoch under which it last registered its places. Nil if it never has, and so has no places.
        public var epoch: UInt64?
        /// What an operator has requested of it through another node (``NodeRequests``), until it has noted that this is carried out.
        public var requested: NodeRecord.State?

        public init(tag: NodeTag, state: State, epoch: UInt64?, requested: NodeRecord.State? = nil) {
            (self.tag, self.state, self.epoch, self.requested) = (tag, state, epoch, requested)
        }
    }

    /// The reading of the ledger's clock: the time since 1970. Leases only use differences between two readings.
    public var clock: Duration
    /// How long this server has been the ledger: `judge.since`.
    public var age: Duration
    /// The lives that are not fenced, and the last 64 that were. A life that is missing is over, and its places are void, if the
    /// view was requested after its tag was known.
    public var lives: [Life]
    /// The current epoch. Nil if none has begun.
    public var epoch: Epoch?
    /// How long ago the epoch began, but not longer than ``age``.
    public var epochAge: Duration

    public init(clock: Duration, age: Duration, lives: [Life], epoch: Epoch?, epochAge: Duration) {
        (self.clock, self.age, self.lives) = (clock, age, lives)
        (self.epoch, self.epochAge) = (epoch, epochAge)
    }
}

import Wire

/// A token bucket. It can hold `burst` tokens, and is refilled with `perSecond` tokens per second.
public struct Budget: Equatable, Sendable {
    /// The size and refill rate of a bucket.
    public struct Rate: Equatable, Sendable {
        public var perSecond: Double
        public var burst: Double
        public init(perSecond: Double, burst: Double) { (self.perSecond, self.burst) = (perSecond, burst) }

        /// Creates a rate of `count` tokens per minute, with a burst of `count` tokens.
        public init(perMinute count: Int) { self.init(perSecond: Double(count) / 60, burst: Double(count)) }

        /// The refill rate in tokens per minute, rounded. Setting it also sets the burst to the same number.
        public var perMinute: Int {
            get { Int((perSecond * 60).rounded()) }
            set { self = Self(perMinute: newValue) }
        }
    }

    private var level: Double
    private var at: Timestamp

    public init(_ rate: Rate, now: Timestamp) {
        level = rate.burst
        at = now
    }

    private func refilled(_ rate: Rate, now: Timestamp) -> Double {
        let elapsed = Double(max(0, (now - at).wholeMilliseconds)) / 1000
        return min(rate.burst, level + elapsed * rate.perSecond)
    }

    /// Returns true if the bucket is full. It then behaves like a new one and need not be kept.
    public func isFull(_ rate: Rate, now: Timestamp) -> Bool { refilled(rate, now: now) >= rate.burst }

    /// Takes `cost` tokens, but at most `burst`, and returns nil. If there are not enough tokens, takes none and
    /// returns how long to wait for them.
    public mutating func take(_ rate: Rate, cost: Double = 1, now: Timestamp) -> Duration? {
        level = refilled(rate, now: now)
        at = max(at, now)
        // A cost above the burst could never be paid, so charge at most a full bucket.
        let cost = min(cost, rate.burst)
        if level >= cost {
            level -= cost
            return nil
        }
        return Self.time(for: cost - level, rate)
    }

    /// Takes `cost` tokens even if there are not enough. The shortfall becomes a debt, which refilling pays off first.
    ///
    /// Use this for costs that are known only afterwards. Check ``wait(_:now:beyond:)`` before the next spending.
    public mutating func spend(_ rate: Rate, cost: Double, now: Timestamp) {
        level = refilled(rate, now: now) - cost
        at = max(at, now)
    }

    /// The number of tokens in the bucket; negative for a debt.
    public func tokens(_ rate: Rate, now: Timestamp) -> Double { refilled(rate, now: now) }

    /// Returns how long to wait until the debt is at most `debt` tokens, or nil if that is already the case. With a
    /// negative `debt`, the wait is for tokens in the bucket: -1 waits until it contains at least one.
    public func wait(_ rate: Rate, now: Timestamp, beyond debt: Double = 0) -> Duration? {
        let missing = -debt - refilled(rate, now: now)
        return missing > 0 ? Self.time(for: missing, rate) : nil
    }

    private static func time(for tokens: Double, _ rate: Rate) -> Duration {
        .milliseconds(Int64((tokens / max(rate.perSecond, 0.001) * 1000).rounded(.up)))
    }
}

extension Budget? {
    /// Takes tokens as `Budget.take` does. If the budget is nil, first creates a full one.
    public mutating func take(_ rate: Budget.Rate, cost: Double = 1, now: Timestamp) -> Duration? {
        var budget = self ?? Budget(rate, now: now)
        defer { self = budget }
        return budget.take(rate, cost: cost, now: now)
    }
}

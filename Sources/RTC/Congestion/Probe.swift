/// A short period in which more is sent than the estimate allows, to determine whether the path carries it.
///
/// Without probes, the estimate could never significantly exceed the needs of the current layers, because nothing
/// larger is ever sent. All packets sent in this period count, both media and padding.
struct Probe: Sendable {
    /// The maximum length of a probe. 120 ms is long enough to tell the bitrate from a burst.
    private static let longest = MediaInterval.milliseconds(120)
    /// The maximum queue, in seconds, that a probe may cause if the path carries no more than the estimate.
    private static let queue = 0.06
    /// The minimum number of packets for a valid result.
    private static let fewestPackets = 5
    /// The minimum bitrate of a probe, so that enough packets are sent. Padding packets are short.
    static let slowest = Bitrate.kilobits(150)
    /// How long after the end of the probe its last packets may still be reported.
    private static let reportTimeout = MediaInterval.seconds(2)
    /// The minimum fraction of a probe's packets that must arrive.
    private static let sufficient = 0.8
    /// If less than this fraction of the sent bitrate arrives, the path was full.
    private static let full = 0.9
    /// The fraction of the arriving bitrate that becomes the result if the path was full.
    private static let margin = 0.95

    let target: Bitrate
    let startedAt: MediaTime
    /// How long the probe sends.
    let length: MediaInterval
    private let first: Int64
    private(set) var last: Int64?
    private var (sentBytes, packets) = (0, 0)
    private var arrivedBytes = 0
    private var (firstBytes, lastBytes) = (0, 0)
    private var (firstSent, lastSent) = (MediaTime(nanoseconds: 0), MediaTime(nanoseconds: 0))
    private var (firstArrival, lastArrival) = (MediaInterval.zero, MediaInterval.zero)

    /// - Parameters:
    ///   - estimate: the current estimate of the path's bitrate.
    ///   - first: the extended number of the first packet that belongs to the probe.
    init(target: Bitrate, estimate: Bitrate, first: Int64, now: MediaTime) {
        (self.target, self.first, startedAt) = (target, first, now)
        let excess = Double((target - estimate).bitsPerSecond) / Double(max(1, estimate.bitsPerSecond))
        length = min(Self.longest, MediaInterval(nanoseconds: Int64(Self.queue / max(excess, 0.1) * 1e9)))
    }

    /// Stops sending once `length` has passed. If too few packets were sent by then, continues for up to three times
    /// the maximum length.
    /// - Parameter next: the extended number of the first packet that does not belong to the probe.
    mutating func endIfDue(before next: Int64, now: MediaTime) {
        guard last == nil, now - startedAt >= length else { return }
        guard next - first > Self.fewestPackets || now - startedAt >= Self.longest * 3 else { return }
        last = next - 1
    }

    var isSending: Bool { last == nil }

    func isOver(now: MediaTime) -> Bool { now - startedAt > length + Self.reportTimeout }

    mutating func add(_ number: Int64, _ packet: SentPackets.Packet, arrival: MediaInterval) {
        guard number >= first, last.map({ number <= $0 }) ?? true else { return }
        if packets == 0 || packet.sentAt < firstSent { (firstSent, firstBytes) = (packet.sentAt, packet.bytes) }
        if packets == 0 { firstArrival = arrival }
        if packets == 0 || packet.sentAt >= lastSent { (lastSent, lastBytes) = (packet.sentAt, packet.bytes) }
        firstArrival = min(firstArrival, arrival)
        lastArrival = max(lastArrival, arrival)
        arrivedBytes += packet.bytes
        packets += 1
    }

    /// Returns the bitrate that the probe measured. Nil until its last packet was reported, if too few of its packets
    /// arrived, or if they were sent or arrived too close together.
    /// - Parameter reported: the highest extended number that feedback has reported.
    func result(reported: Int64) -> Bitrate? {
        guard let last, reported >= last, packets >= Self.fewestPackets,
            Double(packets) >= Self.sufficient * Double(last - first + 1),
            lastSent - firstSent >= .milliseconds(20), lastArrival > firstArrival
        else { return nil }
        let sent = Bitrate(bytes: arrivedBytes - lastBytes, in: lastSent - firstSent)
        let arrived = Bitrate(bytes: arrivedBytes - firstBytes, in: lastArrival - firstArrival)
        return arrived < sent * Self.full ? arrived * Self.margin : min(arrived, sent)
    }
}

/// Decides when to probe, and at which bitrate.
///
/// A result above the estimate becomes the new estimate and is verified: for most of a second, padding fills the path
/// up to the estimate. A path that only absorbed a burst then shows a queue before the bitrate is relied on. Probes
/// without a result are repeated less and less often.
struct Probing: Sendable {
    /// A result that is being verified.
    private struct Verification: Sendable {
        /// The estimate before the probe.
        let former: Bitrate
        let result: Bitrate
        let until: MediaTime
        /// The number of consecutive reports that have shown a queue.
        var queued = 0
    }

    /// The minimum and the maximum time without congestion before a probe. The time grows after probes without a
    /// result.
    private static let shortest = MediaInterval.milliseconds(1500)
    private static let longest = MediaInterval.seconds(3)
    /// How long padding fills the path to verify a result.
    private static let verification = MediaInterval.milliseconds(700)
    /// The time from a verified result until the next probe.
    private static let next = MediaInterval.milliseconds(100)
    /// A queueing delay above `long` in one report, or above `short` in several consecutive reports, refutes a result:
    /// a path that carries the result builds no queue. The threshold for a single report is higher, because jitter or
    /// a busy receiver can delay one report.
    private static let long = MediaInterval.milliseconds(60)
    private static let short = MediaInterval.milliseconds(20)
    /// The number of consecutive reports with a queue that refute a result: the first time, and after an earlier
    /// result was refuted.
    private static let reports = 3
    private static let fewReports = 2
    /// How far probes exceed the estimate: normally, after a success, and after a result was refuted.
    private static let factor = 1.5
    private static let nextFactor = 2.0
    private static let carefulFactor = 1.15

    private(set) var probe: Probe?
    private var interval = Self.shortest
    private var dueAt: MediaTime?
    private var verification: Verification?
    private var succeeded = false
    /// The latest result that was refuted by a queue. A link that lets bursts pass (a token bucket) seems to carry more
    /// each time, and each verification fills its queue. Probes therefore exceed the estimate only slightly until a
    /// result of this size is verified.
    private var refuted: Bitrate?
    private var refutedAt: MediaTime?
    /// How long the queue after a refuted result takes to drain.
    private static let drain = MediaInterval.seconds(1)

    /// Returns whether padding should fill the path up to the estimate now.
    func isVerifying(now: MediaTime) -> Bool { verification.map { now < $0.until } ?? false }

    /// Whether the latest result is still being verified. Verification can outlast its scheduled time, because it ends
    /// only with a report that shows no queue, or with the refutation of the result.
    var isUnverified: Bool { verification != nil }

    /// Returns whether a result was refuted so recently that its queue is still draining.
    func hasRefuted(now: MediaTime) -> Bool { refutedAt.map { now - $0 < Self.drain } ?? false }

    /// Cancels the probe and the verification of the latest result, and schedules the next probe. Must be called when
    /// a queue grows.
    mutating func congested(now: MediaTime) {
        if probe != nil || isUnverified || succeeded { interval = min(interval * 2, Self.longest) }
        (probe, verification, succeeded) = (nil, nil, false)
        dueAt = now + interval
    }

    /// Checks whether a report confirms or refutes the latest result. Must be called for each report, with the minimum
    /// queueing delay in it.
    /// - Returns: the estimate before the probe, if the report refutes the probe's result.
    mutating func verify(queue: MediaInterval, now: MediaTime) -> Bitrate? {
        guard var verification else { return nil }
        verification.queued = queue > Self.short ? verification.queued + 1 : 0
        self.verification = verification
        if queue > Self.long || verification.queued >= (refuted == nil ? Self.reports : Self.fewReports) {
            (refuted, refutedAt) = (verification.result, now)
            congested(now: now)
            return verification.former
        }
        if now >= verification.until, verification.queued == 0 {
            if let refuted, verification.result >= refuted { self.refuted = nil }
            self.verification = nil
        }
        return nil
    }

    /// Starts a probe if one is due.
    /// - Parameter wanted: the bitrate above the estimate that would be used if the path carried it.
    mutating func begin(wanted: Bitrate, estimate: Bitrate, next number: Int64, now: MediaTime) {
        if let probe, probe.isOver(now: now) { failed(now: now) }
        guard probe == nil, !isUnverified else { return }
        guard let dueAt else { return self.dueAt = now + Self.shortest }
        guard now >= dueAt else { return }
        let factor = refuted != nil ? Self.carefulFactor : succeeded ? Self.nextFactor : Self.factor
        probe = Probe(
            target: min(wanted, max(estimate * factor, Probe.slowest)), estimate: estimate, first: number, now: now)
    }

    mutating func cancel() { probe = nil }

    mutating func endIfDue(before number: Int64, now: MediaTime) { probe?.endIfDue(before: number, now: now) }

    /// Makes the next probe due now, because earlier results are no longer relevant.
    mutating func retry(now: MediaTime) { (interval, dueAt, refuted, refutedAt) = (Self.shortest, now, nil, nil) }

    mutating func add(_ number: Int64, _ packet: SentPackets.Packet, arrival: MediaInterval) {
        probe?.add(number, packet, arrival: arrival)
    }

    /// Returns the result of the probe once it was completely reported, and starts to verify the result. Nil if there
    /// is no such probe, or if its result is not clearly above the estimate.
    mutating func takeResult(reported: Int64, estimate: Bitrate, now: MediaTime) -> Bitrate? {
        guard let probe, let result = probe.result(reported: reported) else { return nil }
        guard result > estimate * 1.05 else {
            failed(now: now)
            return nil
        }
        self.probe = nil
        interval = Self.shortest
        succeeded = true
        verification = Verification(former: estimate, result: result, until: now + Self.verification)
        dueAt = now + Self.verification + Self.next
        return result
    }

    private mutating func failed(now: MediaTime) {
        (probe, succeeded) = (nil, false)
        interval = min(interval * 2, Self.longest)
        dueAt = now + interval
    }
}

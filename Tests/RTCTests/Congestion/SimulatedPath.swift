import TestSupport

@testable import RTC

/// A link with a queue, in steps of a millisecond, shared by a sender under congestion control and a TCP-like flow. A seed
/// determines the whole run.
final class SimulatedPath {
    struct Conditions {
        /// The bitrate of the link at a time in milliseconds, in kilobits per second.
        var rate: (Int) -> Double
        /// The time in milliseconds for which the queue has room, at the link's bitrate.
        var queue = 200.0
        /// The delay of each direction without a queue, in milliseconds.
        var delay = 25
        /// A further delay of up to this many milliseconds, random for each packet.
        var jitter = 0
        /// The part of the packets that is lost at random.
        var loss = 0.0
        /// The part of the feedback that is lost, and that arrives late, by up to 400 ms and out of order.
        var lostFeedback = 0.0
        var lateFeedback = 0.0
        /// How many bytes may pass at once after a pause (the burst of a token bucket).
        var burst = 1500
        /// The times in milliseconds between which the TCP-like flow sends.
        var tcpFrom: Int?
        var tcpUntil: Int?
        /// The times, in milliseconds, at which the receiver, or a radio link before it, holds everything back. What was held
        /// back arrives within some milliseconds after that, and a report is sent in the middle of it.
        var isStalled: (Int) -> Bool = { _ in false }
        /// A further delay from this time on, as after a change of the network.
        var shift: (from: Int, milliseconds: Int)?
        /// Whether the sender sends audio all the time.
        var hasAudio = true
        /// The size of a packet of padding.
        var paddingBytes = 1200

        init(_ rate: Double) { self.rate = { _ in rate } }
        init(steps: [(from: Int, rate: Double)]) { rate = { time in steps.last { $0.from <= time }?.rate ?? 0 } }
    }

    /// What happened in one interval of 100 ms.
    struct Sample {
        var at: Double
        /// The estimate in kilobits per second.
        var link = 0.0
        var estimate = 0.0
        var arrived = 0.0
        var tcp = 0.0
        /// The longest wait in the queue, in milliseconds.
        var delay = 0.0
    }

    private struct Packet {
        enum Kind { case media(UInt16), tcp(Int) }
        var kind: Kind
        var bytes: Int
        var queuedAt: Double
    }

    private let conditions: Conditions
    private var random: SeededGenerator
    private(set) var control = CongestionControl()
    private var receiver = TransportFeedback()
    private var queue: [Packet] = []
    private var (head, queued) = (0, 0)
    private var credit = 0.0
    private var arriving: [(at: Double, packet: Packet)] = []
    private var held: [Packet] = []
    private var returning: [(at: Double, bytes: [UInt8])] = []
    private var tcp: SimulatedTCP
    private var time = 0
    /// What the source would send if it could, in kilobits per second.
    private let source: Double
    private var mediaBytes = 0
    private(set) var samples: [Sample] = []
    private var sample = Sample(at: 0)
    private(set) var (sentPackets, lostPackets) = (0, 0)

    init(_ conditions: Conditions, source: Double = 3000, seed: UInt64 = 1, cubic: Bool = false) {
        (self.conditions, self.source) = (conditions, source)
        random = SeededGenerator(seed: seed)
        tcp = SimulatedTCP(isCubic: cubic)
    }

    func clock(_ milliseconds: Double) -> MediaTime {
        MediaTime(nanoseconds: 5_000_000_000 + Int64(milliseconds * 1e6))
    }
    private var now: MediaTime { clock(Double(time)) }

    func run(seconds: Int) {
        for _ in 0..<seconds * 1000 {
            send()
            if let from = conditions.tcpFrom, time >= from, time < conditions.tcpUntil ?? .max { sendTCP() }
            serve()
            deliver()
            if time % 100 == 99 { note() }
            time += 1
        }
    }

    private func note() {
        sample.link = conditions.rate(time)
        let estimate = Double((control.estimate ?? .kilobits(Int64(source))).bitsPerSecond) / 1000
        sample.estimate = min(estimate, source)
        samples.append(sample)
        sample = Sample(at: Double(time + 1) / 1000)
    }

    // MARK: Sending

    private func send() {
        if time % 20 == 7, conditions.hasAudio { put(120) }
        if time % 33 == 0 { sendFrame() }
        guard time % 20 == 0 else { return }
        control.handleTimeout(now: now)
        let media = min(source, Double(control.estimate?.bitsPerSecond ?? .max) / 1000)
        var padding = control.padding(
            wanted: .kilobits(Int64(source * 1.1)), media: .kilobits(Int64(media)), now: now)
        while padding > 0 {
            put(conditions.paddingBytes)
            control.padded(bytes: conditions.paddingBytes)
            padding -= conditions.paddingBytes
        }
    }

    private func sendFrame() {
        let budget = min(source, Double(control.budget(now: now)?.bitsPerSecond ?? .max) / 1000) - 48
        let size = max(60, budget) * 33 / 8 * Double.random(in: 0.7...1.3, using: &random)
        var left = Int(size)
        while left > 0 {
            put(min(left, 1200) + 40)
            left -= 1200
        }
    }

    private func put(_ bytes: Int) {
        sentPackets += 1
        enqueue(Packet(kind: .media(control.sent(bytes: bytes, at: now)), bytes: bytes, queuedAt: Double(time)))
    }

    private func sendTCP() {
        while let number = tcp.next() {
            enqueue(Packet(kind: .tcp(number), bytes: 1500, queuedAt: Double(time)))
        }
    }

    // MARK: The link

    private func enqueue(_ packet: Packet) {
        let room = conditions.rate(time) * conditions.queue / 8
        guard Double(queued + packet.bytes) <= max(room, 3000) else {
            if case .media = packet.kind { lostPackets += 1 }
            return
        }
        queue.append(packet)
        queued += packet.bytes
    }

    private func serve() {
        let perMillisecond = conditions.rate(time) / 8
        credit += perMillisecond
        while head < queue.count, credit >= Double(queue[head].bytes) {
            let packet = queue[head]
            head += 1
            queued -= packet.bytes
            credit -= Double(packet.bytes)
            let at = Double(time + 1) - min(1, credit / perMillisecond)
            sample.delay = max(sample.delay, at - packet.queuedAt)
            guard Double.random(in: 0..<1, using: &random) >= conditions.loss else {
                if case .media = packet.kind { lostPackets += 1 }
                continue
            }
            let jitter = conditions.jitter > 0 ? Double.random(in: 0...Double(conditions.jitter), using: &random) : 0
            let shift = conditions.shift.map { time >= $0.from ? $0.milliseconds : 0 } ?? 0
            arriving.append((at + Double(conditions.delay + shift) + jitter, packet))
        }
        if head == queue.count {
            (queue, head) = ([], 0)
            credit = min(credit, Double(conditions.burst))
        }
    }

    private func deliver() {
        let due = arrivals()
        for (at, packet) in due {
            switch packet.kind {
            case .media(let number):
                sample.arrived += Double(packet.bytes) * 8 / 100
                // The receiver's clock is not ours.
                receiver.receive(number, at: MediaTime(nanoseconds: clock(at).nanoseconds + 77_777_000_000))
            case .tcp(let number):
                sample.tcp += Double(packet.bytes) * 8 / 100
                tcp.arrived(number, acknowledgedAt: at + Double(conditions.delay))
            }
        }
        tcp.advance(to: Double(time))
        if !conditions.isStalled(time), time % 50 == 0 || conditions.isStalled(time - 2) { report() }
        for feedback in returning where feedback.at <= Double(time) {
            parsing(feedback.bytes) { memory in
                guard var compound = RTCPCompound(memory), case .transportFeedback(let report) = compound.next() else {
                    return
                }
                control.receive(report, now: now)
            }
        }
        returning.removeAll { $0.at <= Double(time) }
    }

    /// Returns the packets that arrive in this millisecond.
    private func arrivals() -> [(at: Double, packet: Packet)] {
        let due = arriving.filter { $0.at <= Double(time) }.sorted { $0.at < $1.at }
        arriving.removeAll { $0.at <= Double(time) }
        guard !held.isEmpty || conditions.isStalled(time) else { return due }
        held += due.map(\.packet)
        guard !conditions.isStalled(time) else { return [] }
        let released = held.prefix(3).map { (at: Double(time), packet: $0) }
        held.removeFirst(released.count)
        return released
    }

    private func report() {
        for _ in 0..<8 {
            let bytes = written { _ = receiver.writeFeedback(sender: 1, media: 2, to: &$0) }
            guard !bytes.isEmpty else { return }
            guard Double.random(in: 0..<1, using: &random) >= conditions.lostFeedback else { continue }
            var at = Double(time + conditions.delay)
            if Double.random(in: 0..<1, using: &random) < conditions.lateFeedback {
                at += Double.random(in: 0...400, using: &random)
            }
            returning.append((at, bytes))
        }
    }

    // MARK: Results

    /// Returns the mean of a value between two times in seconds.
    func mean(_ value: (Sample) -> Double, from: Double, to: Double) -> Double {
        let chosen = samples.filter { $0.at >= from && $0.at < to }
        return chosen.map(value).reduce(0, +) / Double(max(1, chosen.count))
    }

    /// Returns the smallest value between two times in seconds.
    func least(_ value: (Sample) -> Double, from: Double, to: Double) -> Double {
        samples.filter { $0.at >= from && $0.at < to }.map(value).min() ?? 0
    }

    /// Returns the largest value between two times in seconds.
    func most(_ value: (Sample) -> Double, from: Double, to: Double) -> Double {
        samples.filter { $0.at >= from && $0.at < to }.map(value).max() ?? 0
    }
}

/// A bulk transfer with TCP's congestion control: Reno (RFC 5681) or CUBIC (RFC 9438), without timeouts.
struct SimulatedTCP {
    var isCubic: Bool
    private var window = 10.0
    private var threshold = Double.infinity
    private var (sent, inFlight) = (0, 0)
    private var expected = 0
    private var recovery = 0
    private var acknowledgements: [(at: Double, lost: Int, number: Int)] = []
    private var (peak, reducedAt) = (0.0, 0.0)
    private var heardAt = 0.0

    init(isCubic: Bool) { self.isCubic = isCubic }

    mutating func next() -> Int? {
        guard Double(inFlight) < window else { return nil }
        (sent, inFlight) = (sent + 1, inFlight + 1)
        return sent - 1
    }

    mutating func arrived(_ number: Int, acknowledgedAt: Double) {
        guard number >= expected else { return }
        acknowledgements.append((acknowledgedAt, number - expected, number))
        expected = number + 1
    }

    mutating func advance(to time: Double) {
        while let next = acknowledgements.first, next.at <= time {
            acknowledgements.removeFirst()
            inFlight -= 1 + next.lost
            heardAt = time
            if next.lost > 0, next.number > recovery {
                (recovery, peak, reducedAt) = (sent, window, time)
                window = max(2, window * (isCubic ? 0.7 : 0.5))
                threshold = window
            } else {
                grow(time)
            }
        }
        // A timeout: everything in flight was lost.
        if inFlight > 0, time - heardAt > 2000 { (inFlight, window, heardAt, expected) = (0, 2, time, sent) }
    }

    private mutating func grow(_ time: Double) {
        guard window >= threshold else { return window += 1 }
        guard isCubic else { return window += 1 / window }
        let k = cubeRoot(peak * 0.3 / 0.4)
        let seconds = (time - reducedAt) / 1000 - k
        let target = 0.4 * seconds * seconds * seconds + peak
        window += max(0.01, target - window) / window
    }

    private func cubeRoot(_ value: Double) -> Double {
        var root = max(value, 1e-9)
        for _ in 0..<60 { root = (2 * root + value / (root * root)) / 3 }
        return root
    }
}

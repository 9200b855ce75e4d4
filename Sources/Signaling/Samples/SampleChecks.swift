import DequeModule
import Wire

/// Decides which samples of cameras are judged, in which order, and how long to wait for a verdict.
///
/// Owns the samples that wait, not the program that judges them, and not what a verdict does (`RouletteState+Samples`). Invariants: the
/// number of samples in memory is bounded; of one camera, at most one sample is being judged and one waits, so verdicts about it
/// arrive in the order of its samples; each question is answered, failed or abandoned exactly once.
public struct SampleChecks: Sendable {
    /// How much is judged, and how fast.
    public struct Settings: Equatable, Sendable {
        /// The time between two samples that clients are asked to send.
        public var interval: Duration
        /// How long to wait for a verdict.
        public var timeout: Duration
        /// Maximum number of samples that wait. Another one replaces the oldest.
        public var maxWaiting: Int
        /// Maximum number of samples that are being judged at the same time.
        public var maxQuestions: Int

        /// Creates settings. At least one sample can wait, and one can be judged.
        public init(interval: Duration, timeout: Duration, maxWaiting: Int, maxQuestions: Int) {
            (self.interval, self.timeout) = (interval, timeout)
            (self.maxWaiting, self.maxQuestions) = (max(1, maxWaiting), max(1, maxQuestions))
        }
    }

    /// A sample to judge.
    public struct Question: Equatable, Sendable {
        /// The number of the question, from 1. It is never used again.
        public var number: UInt64
        /// Whose camera it is.
        public var source: SampleSource
        /// The image.
        public var jpeg: [UInt8]

        /// Creates a question from its parts.
        public init(number: UInt64, source: SampleSource, jpeg: [UInt8]) {
            (self.number, self.source, self.jpeg) = (number, source, jpeg)
        }
    }

    /// How a question ended.
    public enum Answer: Equatable, Sendable {
        /// The program has decided.
        case judged(SampleJudgment)
        /// The answer is no verdict.
        case invalid
        /// There is no answer, for example because the program ended.
        case failed
    }

    /// Something that happened.
    public enum Event: Equatable, Sendable {
        /// A sample that `admit` has accepted.
        case sample(SampleSource, [UInt8])
        /// The question with this number was answered.
        case answered(UInt64, Answer)
        /// Whether questions can be asked. At first they can not. When they can no longer be, all that were asked have failed.
        case available(Bool)
    }

    /// What the shell must do.
    public enum Effect: Equatable, Sendable {
        /// Ask the program.
        case ask(Question)
        /// Nobody waits for the answer to this question any more.
        case abandon(UInt64)
        /// Pass this verdict to the rules.
        case judged(SampleSource, SampleJudgment)
        /// Count what became of a sample.
        case count(Outcome)
    }

    /// What became of a sample, for metrics.
    public enum Outcome: Hashable, Sendable, CaseIterable {
        /// The verdict.
        case ok, warn, blur, end
        /// There was no verdict in time.
        case late
        /// The answer was no verdict.
        case invalid
        /// There was no answer.
        case failed
        /// A newer sample took its place before it could be judged, or it waited too long.
        case dropped

        init(_ verdict: SampleVerdict) {
            switch verdict {
            case .ok: self = .ok
            case .warn: self = .warn
            case .blur: self = .blur
            case .end: self = .end
            }
        }
    }

    /// No sample waits longer, also with a long interval: people learn that images are in memory for at most a minute after a chat.
    private static let longestWait = Duration.seconds(60)

    private let settings: Settings
    private var isAvailable = false
    private var lastNumber: UInt64 = 0
    /// The oldest first, with the time until which they may wait. They do not stay in memory while nothing judges them.
    private var waiting: Deque<(source: SampleSource, jpeg: [UInt8], until: Timestamp)> = []
    /// The questions that were asked, with the time until which they may be answered.
    private var asked: [UInt64: (source: SampleSource, until: Timestamp)] = [:]
    /// When each camera's latest sample arrived. Older entries than the interval are removed.
    private var arrivals: [SampleSource: Timestamp] = [:]
    private var arrivalsCheckAt: Timestamp?

    /// Creates a check without samples, whose program has not started.
    public init(_ settings: Settings) { self.settings = settings }

    /// Accepts a sample, or throws `rate_limited` if the same camera has just sent one.
    public mutating func admit(_ source: SampleSource, now: Timestamp) throws(WireError) {
        let pause = settings.interval / 2
        if let last = arrivals[source], now - last < pause {
            throw WireError(
                .rateLimited, "Too many samples. Send one every \(settings.interval.roundedText).", retryable: true,
                retryAfter: pause - (now - last))
        }
        if let at = arrivalsCheckAt, at <= now {
            arrivals = arrivals.filter { now - $0.value < pause }
            arrivalsCheckAt = nil
        }
        arrivals[source] = now
        if arrivalsCheckAt == nil { arrivalsCheckAt = now + pause }
    }

    /// Handles an event, and returns what must be done, in order.
    public mutating func handle(_ event: Event, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        dropOld(now, &effects)
        switch event {
        case .sample(let source, let jpeg): add(source, jpeg, now, &effects)
        case .answered(let number, let answer):
            // It was answered before, or too late.
            guard let question = asked.removeValue(forKey: number) else { return effects }
            switch answer {
            case .judged(let judgment):
                effects += [.count(Outcome(judgment.verdict)), .judged(question.source, judgment)]
            case .invalid: effects.append(.count(.invalid))
            case .failed: effects.append(.count(.failed))
            }
        case .available(let isAvailable):
            self.isAvailable = isAvailable
            if !isAvailable {
                effects += asked.map { _ in Effect.count(.failed) }
                asked = [:]
            }
        }
        ask(now, &effects)
        return effects
    }

    /// When the next question is due, or a sample has waited too long; nil if nothing was asked and none waits.
    public var nextTimeout: Timestamp? {
        // Those that wait are in the order of their turns. A newer sample of a camera keeps its turn, but may wait longer.
        (asked.values.map(\.until) + waiting.map(\.until)).min()
    }

    /// Abandons the questions that are due, and drops samples that waited too long. Returns what must be done, in order.
    public mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        dropOld(now, &effects)
        for number in asked.filter({ $0.value.until <= now }).keys.sorted() {
            asked[number] = nil
            effects += [.abandon(number), .count(.late)]
        }
        ask(now, &effects)
        return effects
    }

    /// Drops samples that waited too long. A chat that still runs has sent a newer one, or will soon.
    private mutating func dropOld(_ now: Timestamp, _ effects: inout [Effect]) {
        let before = waiting.count
        waiting.removeAll { $0.until <= now }
        effects += Array(repeating: .count(.dropped), count: before - waiting.count)
    }

    private mutating func add(_ source: SampleSource, _ jpeg: [UInt8], _ now: Timestamp, _ effects: inout [Effect]) {
        let until = now + min(settings.interval * 2, Self.longestWait)
        if let index = waiting.firstIndex(where: { $0.source == source }) {
            // It keeps its turn, with the newer sample.
            (waiting[index].jpeg, waiting[index].until) = (jpeg, until)
            return effects.append(.count(.dropped))
        }
        if waiting.count >= settings.maxWaiting {
            waiting.removeFirst()
            effects.append(.count(.dropped))
        }
        waiting.append((source, jpeg, until))
    }

    /// Asks about as many waiting samples as possible.
    private mutating func ask(_ now: Timestamp, _ effects: inout [Effect]) {
        while isAvailable, asked.count < settings.maxQuestions {
            let busy = Set(asked.values.map(\.source))
            guard let index = waiting.firstIndex(where: { !busy.contains($0.source) }) else { return }
            let next = waiting.remove(at: index)
            lastNumber += 1
            asked[lastNumber] = (next.source, now + settings.timeout)
            effects.append(.ask(Question(number: lastNumber, source: next.source, jpeg: next.jpeg)))
        }
    }
}

import RTC
import Wire

/// What a bot says in the text chat. Each of its lines says whose it is, and lines that do get no answer: two bots would
/// never come to an end.
struct Conversation {
    /// What every line begins with.
    static let sign = "[bot] "
    /// In characters: of what somebody wrote, as much is repeated.
    static let mostRepeated = 300
    /// Lines that can be said at once, and then one in each interval: the server takes more, and people want fewer.
    static let burst = 5
    static let interval = MediaInterval.seconds(1)

    private let line: String?
    private var allowance = Self.burst
    private var countedAt: MediaTime?

    /// - Parameter line: said when somebody comes, besides that this is a bot.
    init(saying line: String?) { self.line = line }

    /// To somebody who has come; nil when there was too much to be said lately.
    mutating func greeting(now: MediaTime) -> String? {
        guard spend(now) else { return nil }
        let introduction = "Hello! I am a program that shows a film and repeats what you write."
        return Self.sign + (line.map { "\(introduction) \($0)" } ?? introduction)
    }

    /// To what somebody wrote; nil when nothing is to be said.
    mutating func answer(to text: String, now: MediaTime) -> String? {
        let text = printable(text).split(separator: " ").joined(separator: " ")
        guard !text.isEmpty, !text.hasPrefix(Self.sign), spend(now) else { return nil }
        let part = text.prefix(Self.mostRepeated)
        return "\(Self.sign)You wrote: \(part)\(part.count < text.count ? "…" : "")"
    }

    private mutating func spend(_ now: MediaTime) -> Bool {
        let last = countedAt ?? now
        let earned = max(0, (now - last).nanoseconds / Self.interval.nanoseconds)
        if countedAt == nil || allowance >= Self.burst {
            countedAt = now
        } else {
            countedAt = last + Self.interval * earned
        }
        allowance = Int(min(Int64(Self.burst), Int64(allowance) + earned))
        guard allowance > 0 else { return false }
        allowance -= 1
        return true
    }
}

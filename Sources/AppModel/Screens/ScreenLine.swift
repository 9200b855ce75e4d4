/// One element of a screen. A screen lists its elements in the order in which people and VoiceOver read them.
public enum ScreenLine: Equatable, Sendable {
    case title(String)
    case text(String)
    /// A video, or the placeholder shown instead.
    case picture(String)
    case field(String, value: String, hint: String = "")
    case toggle(String, isOn: Bool)
    case choice(String, value: String)
    case row(String, detail: String = "")
    case button(String, isEnabled: Bool = true)

    /// The element as a line of text. Tests compare the lines of a screen with a stored file.
    public var description: String {
        switch self {
        case .title(let text): "# \(text)"
        case .text(let text): text
        case .picture(let text): "<\(text)>"
        case .field(let label, let value, let hint): "\(label): \(value.isEmpty ? "(\(hint))" : "\"\(value)\"")"
        case .toggle(let label, let isOn): "[\(isOn ? "x" : " ")] \(label)"
        case .choice(let label, let value): "\(label): \(value)"
        case .row(let title, let detail): detail.isEmpty ? "- \(title)" : "- \(title) · \(detail)"
        case .button(let label, let isEnabled): isEnabled ? "(\(label))" : "(\(label), off)"
        }
    }
}

/// A person, a call or a device in a list, as text.
public struct ListRow<ID: Hashable & Sendable>: Equatable, Identifiable, Sendable {
    public var id: ID
    public var title: String
    public var detail: String
    public var isMissed = false
    public var accessibilityText: String { detail.isEmpty ? title : "\(title), \(detail)" }
}

/// A screen that can be rendered as text.
@MainActor public protocol Screen: AnyObject {
    var lines: [ScreenLine] { get }
}

/// Wraps a name in Unicode isolates for use inside a sentence. Otherwise, right-to-left text in the name would change
/// the order of the sentence.
func isolated(_ name: String) -> String { "\u{2068}\(name)\u{2069}" }

func counted(_ count: Int, _ one: String, _ other: String) -> String { "\(count) \(count == 1 ? one : other)" }

extension String {
    /// Returns as many whole characters as fit into the given number of bytes.
    func prefix(bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var (end, size) = (startIndex, 0)
        while end < endIndex {
            size += self[end].utf8.count
            if size > bytes { break }
            formIndex(after: &end)
        }
        return String(self[..<end])
    }
}

extension Duration {
    /// The duration as text, such as 0:07, 12:30 or 1:02:03.
    var clockText: String {
        let seconds = max(0, components.seconds)
        let two: (Int64) -> String = { $0 < 10 ? "0\($0)" : "\($0)" }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        let rest = two(seconds % 60)
        return hours > 0 ? "\(hours):\(two(minutes)):\(rest)" : "\(minutes):\(rest)"
    }

    /// The duration for a countdown, in seconds: rounded up, and limited to about one day.
    var wholeSeconds: Int {
        let seconds = max(0, components.seconds)
        return Int(min(seconds, 86_400)) + (components.attoseconds > 0 ? 1 : 0)
    }
}

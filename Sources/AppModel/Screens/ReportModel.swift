import Confab
import Observation

/// The reason for a report. The raw values are those of the protocol.
public enum ReportReason: String, CaseIterable, Identifiable, Sendable {
    case sexual, minor, harassment, violence, spam, other

    public var id: String { rawValue }
    public var text: String {
        switch self {
        case .sexual: "Nudity or sexual behavior"
        case .minor: "Appears to be underage"
        case .harassment: "Harassment or hate"
        case .violence: "Threats or violence"
        case .spam: "Spam or a scam"
        case .other: "Something else"
        }
    }
}

/// The sheet for reporting a stranger.
@MainActor @Observable public final class ReportModel: Screen {
    /// The progress of the report.
    public enum Status: Equatable, Sendable { case choosing, sending, sent, failed(String) }

    /// The maximum number of chat messages that the server accepts in a report.
    static let maxLines = 20
    public let partnerName: String
    /// The most recent messages of the chat, which are sent with the report.
    public let chat: [ChatEntry]
    public var reason: ReportReason?
    public var alsoBlocks = true
    public private(set) var status = Status.choosing
    private let send: @MainActor (ReportReason, _ blocks: Bool) -> Void

    init(partnerName: String, chat: [ChatEntry], send: @escaping @MainActor (ReportReason, Bool) -> Void) {
        (self.partnerName, self.chat, self.send) = (partnerName, chat.suffix(Self.maxLines), send)
    }

    public var isSent: Bool { status == .sent }
    public var title: String { "Report \(isolated(partnerName))" }
    /// The label of the button that closes the sheet. A report that is being sent cannot be canceled.
    public var closeText: String { isSent || status == .sending ? "Close" : "Cancel" }
    public var canSend: Bool { reason != nil && status != .sending && status != .sent }
    public let attachedText =
        "The last messages of your chat and both IP addresses are sent to the operators of this server, "
        + "who keep them for a limited time."
    public var statusText: String {
        switch status {
        case .choosing: reason == nil ? "Choose a reason." : ""
        case .sending: "Sending…"
        case .sent: "Thank you. Your report was sent."
        case .failed(let message): message.isEmpty ? "The report could not be sent. Try again." : message
        }
    }

    public func submit() {
        guard canSend, let reason else { return }
        status = .sending
        send(reason, alsoBlocks)
    }

    func finished(_ trouble: ConfabError?) {
        guard status == .sending else { return }
        status = trouble.map { .failed($0.message) } ?? .sent
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [.title(title)]
        guard status != .sent else { return lines + [.text(statusText), .button(closeText)] }
        lines.append(.text("What happened?"))
        lines += ReportReason.allCases.map { .toggle($0.text, isOn: $0 == reason) }
        lines.append(.toggle("Also block this person", isOn: alsoBlocks))
        lines.append(.text(attachedText))
        lines += chat.map { .row("\($0.sender) \($0.text)") }
        if !statusText.isEmpty { lines.append(.text(statusText)) }
        return lines + [.button("Send report", isEnabled: canSend), .button(closeText)]
    }
}

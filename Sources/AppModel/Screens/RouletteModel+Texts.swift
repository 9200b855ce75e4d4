import Confab
import Foundation

/// The text on the screen for chats with strangers. Keep it identical to that on the web page.
extension RouletteModel {
    var name: String { partnerName.isEmpty ? "your partner" : partnerName }
    /// The partner's name for the beginning of a sentence, or "Your partner" if there is no name.
    private var who: String { partnerName.isEmpty ? "Your partner" : isolated(partnerName) }
    private var whom: String { partnerName.isEmpty ? "your partner" : isolated(partnerName) }

    /// Why the partner's video is hidden.
    var hiddenText: String { "This video is hidden because it may break the rules." }

    public var statusText: String {
        switch status {
        case .idle: idleText
        case .waiting(let until?) where until > now:
            "You skipped several chats quickly. The search continues in "
                + "\(counted(Int(until.timeIntervalSince(now).rounded(.up)), "second", "seconds"))."
        case .waiting: searchText
        case .matched where mode == .text: "You are chatting with \(whom). Have fun!"
        case .matched where isPartnerBlurred, .talking where isPartnerBlurred: hiddenText
        case .matched: "You are connected with \(whom). Waiting for video…"
        case .talking:
            mode == .text ? "You are chatting with \(whom). Have fun!" : "You are talking with \(whom). Have fun!"
        case .partnerAway: "\(who) lost their connection and may be back in a moment. Wait, or press Next."
        case .noStream: "No audio or video from \(whom) yet. Wait a moment, or press Next."
        }
    }

    private var idleText: String {
        if let trouble { return trouble.message }
        if !isConnected { return "Not connected to the server." }
        if hasLeftApp { return "The \(canReport ? "chat" : "search") ended because you left the app." }
        switch lastEnding {
        case .banned: return "The operators of this server ended this chat."
        case .stopped: return "The chat ended because you continued elsewhere."
        case nil, .partnerLeft, .partnerNext, .next, .blocked, .connectionLost: break
        }
        return asksForDevices
            ? "Check your camera first. Nothing is sent until you press Start." : "Ready when you are."
    }

    /// The error shown during a search or a chat.
    public var noticeText: String { isIdle ? "" : trouble?.message ?? "" }
    /// Whether the shown error is one that the user can fix in the system's settings.
    public var offersSettings: Bool { trouble == .cameraNeeded }

    private var searchText: String {
        switch lastEnding {
        case .partnerLeft: "\(who) left. Looking for someone else…"
        case .partnerNext: "\(who) moved on. Looking for someone else…"
        case .blocked: "You blocked \(whom). Looking for someone else…"
        case .connectionLost: "The connection was lost and the chat ended. Looking for someone else…"
        case .next, .banned, .stopped: "Looking for someone else…"
        case nil: "Looking for someone to talk to…"
        }
    }

    public var keepText: String { keeping.text(who, whom) }

    public var peopleText: String {
        guard let peopleOnline else { return "" }
        return peopleOnline <= 1 ? "No one else is online yet" : "\(peopleOnline) people online"
    }

    public var interestsText: String {
        sharedInterests.isEmpty ? "" : "You both like \(sharedInterests.map(isolated).joined(separator: ", "))"
    }

    /// A hint about the chat. If the partner has no text chat, it says so. Otherwise, until the first message, it says
    /// that messages are not stored. Empty once there are messages.
    public var chatHint: String {
        guard hasChat else { return "\(who) uses an app without text chat. You can still talk." }
        return chat.isEmpty ? "Say hello. Messages are not stored unless one of you reports the chat." : ""
    }

    public var typingText: String { isPartnerTyping ? "\(who) is typing…" : "" }
    public var addressText: String {
        "On some servers, your partner can see your IP address in video chats. Text chats hide it."
    }

    /// Whether the self-view is shown before a chat.
    public var showsPreview: Bool { !asksForDevices && own != nil }
    /// Whether the report sheet is open.
    public var isReporting: Bool { report != nil }

    public var partnerPicture: String {
        guard isInChat else { return "no partner yet" }
        if mode == .text { return "text chat" }
        return status == .talking && partner != nil ? "video of \(name)" : "no video"
    }

    public var ownPicture: String {
        own == nil && !isCameraOff ? "no video" : camera.text(isOff: isCameraOff)
    }

    public var lines: [ScreenLine] {
        if let report { return report.lines }
        var lines: [ScreenLine] = [.picture(partnerPicture)]
        if mode == .video { lines.append(.picture(ownPicture)) }
        lines.append(.text(statusText))
        if !noticeText.isEmpty { lines.append(.text(noticeText)) }
        if offersSettings { lines.append(.button("Open Settings")) }
        return lines + (isIdle ? setupLines : chatLines)
    }

    private var setupLines: [ScreenLine] {
        var lines: [ScreenLine] = []
        if !peopleText.isEmpty { lines.append(.text(peopleText)) }
        lines += [.toggle("Video", isOn: mode == .video), .toggle("Text only", isOn: mode == .text)]
        lines.append(.field("Interests", value: interestDraft, hint: "chess, jazz, gardening"))
        lines += interests.map { .row($0) }
        lines.append(.text(addressText))
        lines.append(.button("Start", isEnabled: canStart))
        return lines + afterwardsLines
    }

    private var chatLines: [ScreenLine] {
        var lines: [ScreenLine] = []
        if isInChat {
            if !interestsText.isEmpty { lines.append(.text(interestsText)) }
            lines += chat.flatMap(\.screenLines)
            if !chatHint.isEmpty { lines.append(.text(chatHint)) }
            if !typingText.isEmpty { lines.append(.text(typingText)) }
            if hasChat {
                lines += [
                    .field("Message", value: draft, hint: "Type a message…"), .button("Send", isEnabled: canSend),
                ]
            }
        }
        lines += [.button("Next", isEnabled: canNext), .button("Stop")]
        if mode == .video {
            lines += [
                .toggle("Mute", isOn: isMuted), .toggle("Camera off", isOn: isCameraOff),
                .button("Switch camera", isEnabled: canSwitchCamera),
            ]
        }
        return lines + afterwardsLines
    }

    private var afterwardsLines: [ScreenLine] {
        guard canReport else { return [] }
        var lines: [ScreenLine] = keepText.isEmpty ? [] : [.text(keepText)]
        if canKeep { lines.append(.button("Keep in touch")) }
        return lines + [.button("Report")] + (canBlock ? [.button("Block")] : [])
    }
}

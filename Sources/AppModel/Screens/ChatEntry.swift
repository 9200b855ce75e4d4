import Foundation

/// A line of a chat.
public struct ChatEntry: Equatable, Identifiable, Sendable {
    public var id: Int
    public var isOwn: Bool
    /// What was written, or the name of the file.
    public var text: String
    public var isSent = true
    /// Who wrote it, if not this person.
    public var name: String
    public var file: ChatFile?

    public init(
        id: Int, isOwn: Bool, text: String, isSent: Bool = true, name: String = "Partner", file: ChatFile? = nil
    ) {
        (self.id, self.isOwn, self.text, self.isSent) = (id, isOwn, text, isSent)
        (self.name, self.file) = (name, file)
    }

    public var sender: String { isOwn ? "You:" : "\(name):" }
    /// What VoiceOver says about a message that could not be sent.
    var notSentText: String { "Not sent: \(text)" }
    /// What VoiceOver says about a message that arrived.
    var arrivedText: String { file.map { "\(sender) file \(text), \($0.sizeText)" } ?? "\(sender) \(text)" }

    /// The line and the buttons for it.
    var screenLines: [ScreenLine] {
        let detail = isSent ? file?.detailText ?? "" : "not sent"
        return [.row("\(sender) \(text)", detail: detail)] + (isSent ? [] : [.button("Send again")])
            + (file?.screenLines ?? [])
    }
}

/// A file in the chat of a room.
public struct ChatFile: Equatable, Identifiable, Sendable {
    public enum State: Equatable, Sendable {
        /// It is on the server.
        case offered
        case downloading(percent: Int)
        /// It is on this device, until the person leaves the room.
        case saved(URL)
        case failed(String)
    }

    public var id: String
    /// In bytes.
    public var size: Int
    public var state = State.offered

    public init(id: String, size: Int) { (self.id, self.size) = (id, size) }

    /// The size, as on the web page.
    var sizeText: String {
        let size = max(0, size)
        guard size >= 1_000_000 else { return "\(size / 1000 + (size % 1000 == 0 ? 0 : 1)) kB" }
        let tenths = size / 100_000 + (size % 100_000 >= 50_000 ? 1 : 0)
        return "\(tenths / 10).\(tenths % 10) MB"
    }

    /// The size, and what became of a download.
    public var detailText: String {
        switch state {
        case .offered, .saved: sizeText
        case .downloading(let percent): "\(sizeText) · \(percent)%"
        case .failed(let message): "\(sizeText) · \(message)"
        }
    }

    public var canDownload: Bool {
        switch state {
        case .offered, .failed: true
        case .downloading, .saved: false
        }
    }
    /// Where it is on this device, to share it or to save it.
    public var savedFile: URL? { if case .saved(let url) = state { url } else { nil } }

    fileprivate var screenLines: [ScreenLine] {
        // The system writes the label of the button that shares.
        savedFile == nil ? canDownload ? [.button("Download")] : [] : [.button("Share…")]
    }
}

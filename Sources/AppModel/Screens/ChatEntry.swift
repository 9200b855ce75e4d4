import Confab
import Foundation

/// An entry of a chat: a message or a file.
public struct ChatEntry: Equatable, Identifiable, Sendable {
    public var id: Int
    public var isOwn: Bool
    /// The text of the message, or the name of the file.
    public var text: String
    public var isSent = true
    /// The sender's name, for messages from others.
    public var name: String
    public var file: ChatFile?

    public init(
        id: Int, isOwn: Bool, text: String, isSent: Bool = true, name: String = "Partner", file: ChatFile? = nil
    ) {
        (self.id, self.isOwn, self.text, self.isSent) = (id, isOwn, text, isSent)
        (self.name, self.file) = (name, file)
    }

    public var sender: String { isOwn ? "You:" : "\(name):" }
    /// The VoiceOver announcement for a message that could not be sent.
    var notSentText: String { "Not sent: \(text)" }
    /// The VoiceOver announcement for a received message.
    var arrivedText: String { file.map { "\(sender) file \(text), \($0.sizeText)" } ?? "\(sender) \(text)" }

    /// The entry, followed by its buttons, as elements of a screen.
    var screenLines: [ScreenLine] {
        let detail = isSent ? file?.detailText ?? "" : "not sent"
        return [.row("\(sender) \(text)", detail: detail)] + (isSent ? [] : [.button("Send again")])
            + (file?.screenLines ?? [])
    }
}

/// A file in a room's chat.
public struct ChatFile: Equatable, Identifiable, Sendable {
    /// Whether the file is on the server, being downloaded, or stored on this device.
    public enum State: Equatable, Sendable {
        /// Available on the server.
        case offered
        case downloading(percent: Int)
        /// Stored on this device until the user leaves the room.
        case saved(URL)
        case failed(String)
    }

    public let file: SharedFile
    public var state = State.offered

    init(_ file: SharedFile) { self.file = file }

    public var id: RoomFileID { file.id }

    /// The file's size as text. Keep it identical to the text on the web page.
    var sizeText: String {
        let size = max(0, file.size)
        guard size >= 1_000_000 else { return "\(size / 1000 + (size % 1000 == 0 ? 0 : 1)) kB" }
        let tenths = size / 100_000 + (size % 100_000 >= 50_000 ? 1 : 0)
        return "\(tenths / 10).\(tenths % 10) MB"
    }

    /// The file's size, followed by the progress of the download or the error, if there is one.
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
    /// The URL of the downloaded file, which can be shared or saved; nil if the file is not on this device.
    public var savedFile: URL? { if case .saved(let url) = state { url } else { nil } }

    fileprivate var screenLines: [ScreenLine] {
        // The system provides the label of the share button.
        savedFile == nil ? canDownload ? [.button("Download")] : [] : [.button("Share…")]
    }
}

import Foundation
import OpenTokCompat
import UIKit

/// Text only: sends signals to everyone, and welcomes each new participant with a private signal.
final class Signaling: UIViewController {
    private var session: OTSession?
    private let input = UITextField(frame: .zero)
    private let messages = UITextView(frame: .zero)

    func join(_ apiKey: String, _ sessionId: String, _ token: String) {
        let settings = OTSessionSettings()
        settings.connectionEventsSuppressed = false
        session = OTSession(apiKey: apiKey, sessionId: sessionId, delegate: self, settings: settings)
        session?.connect(withToken: token, error: nil)
    }

    override func viewDidLoad() {
        super.viewDidLoad()
        let send = UIAction(title: "Send") { [weak self] _ in self?.send() }
        let row = UIStackView(arrangedSubviews: [messages, input, UIButton(type: .system, primaryAction: send)])
        row.frame = view.bounds
        row.distribution = .fillEqually
        view.addSubview(row)
    }

    private func send() {
        guard session?.sessionConnectionStatus == .connected else { return }
        var error: OTError?
        session?.signal(withType: "chat", string: input.text, connection: nil, error: &error)
        if let error { messages.text += error.localizedDescription }
        input.text = ""
    }
}

extension Signaling: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {
        messages.text = "You are \(session.connection?.connectionId ?? "")\n"
    }

    func sessionDidDisconnect(_ session: OTSession) {}

    func session(_ session: OTSession, didFailWithError error: OTError) { messages.text += error.localizedDescription }

    func session(_ session: OTSession, streamCreated stream: OTStream) {}

    func session(_ session: OTSession, streamDestroyed stream: OTStream) {}

    func session(_ session: OTSession, connectionCreated connection: OTConnection) {
        session.signal(
            withType: "welcome", string: connection.data, connection: connection, retryAfterReconnect: false,
            error: nil)
    }

    func session(_ session: OTSession, connectionDestroyed connection: OTConnection) {
        messages.text += "\(connection.connectionId) left, here since \(connection.creationTime)\n"
    }

    func session(
        _ session: OTSession, receivedSignalType type: String?, from connection: OTConnection?, with string: String?
    ) {
        let isOwn = connection === session.connection
        messages.text += "\(isOwn ? "You" : connection?.connectionId ?? "Server"): \(string ?? "")\n"
    }
}

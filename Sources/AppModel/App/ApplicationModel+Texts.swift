import Confab
import Foundation

/// The text that concerns the whole app.
extension ApplicationModel {
    /// The text of the connection bar; empty while connected, or before the app connects. The bar also has a Retry
    /// button if `offersRetry` is true.
    public var connectionText: String {
        switch line {
        case .idle, .online: ""
        case .connecting: "Connecting…"
        case .reconnecting: "Connection lost. Reconnecting…"
        case .offline(.noNetwork): "No network. Connect to Wi-Fi or mobile data."
        case .offline(.serverUnreachable): "The server is not responding. Try again in a moment."
        case .offline(.tooOld): WelcomeModel.appTooOldText
        case .offline(.refused(let trouble)): trouble.message
        case .closed(let trouble): trouble?.message ?? "Not connected."
        }
    }

    public var offersRetry: Bool {
        switch line {
        case .offline, .closed: true
        case .idle, .connecting, .online, .reconnecting: false
        }
    }

    public var tabs: [Tab] { Tab.allCases.filter { hasRoulette || $0 != .roulette } }
    /// Returns the number shown on a tab; 0 for none.
    public func badge(of tab: Tab) -> Int { tab == .people ? people.missedCount : 0 }

    /// The screen to show. A call covers everything else.
    public var shown: Shown {
        if calls.isInCall { return .call }
        switch (stage, aboutYou) {
        case (.home, _): return .home
        case (.aboutYou, let aboutYou?): return .aboutYou(aboutYou)
        case (.aboutYou, nil), (.welcome, _): return .welcome
        }
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = connectionText.isEmpty ? [] : [.text(connectionText)]
        if offersRetry { lines.append(.button("Retry")) }
        // A ringing or ended call comes before everything else.
        lines += calls.lines
        switch shown {
        case .call: return lines
        case .welcome: return lines + welcome.lines
        case .aboutYou(let model): return lines + model.lines
        case .home: break
        }
        switch tab {
        case .roulette: return lines + roulette.lines
        case .nearby: return lines + nearby.lines
        case .people: return lines + people.lines
        case .room: return lines + room.lines
        case .settings: return lines + settings.lines
        }
    }

    /// The state of each part of the app, for a bug report. It contains no personal data.
    var diagnostics: [String] {
        let allowed = Permission.allCases.map { "\($0): \(platform.permissions.status(of: $0))" }
        let call = calls.coordinator.current.map { "\($0.direction), \($0.phase)" } ?? "none"
        return [
            "Server: \(settings.server)", "Connection: \(lineName)", "Permissions: \(allowed.joined(separator: ", "))",
            "Call: \(call)", "Call audio: \(calls.coordinator.audio.isEnabled ? "on" : "off")",
            "Chat and room audio: \(sound.isEnabled ? "on" : "off")", "People in the room: \(room.members.count)",
        ]
    }

    private var lineName: String {
        switch line {
        case .idle: "not connected"
        case .connecting: "connecting"
        case .online: "connected"
        case .reconnecting: "reconnecting"
        case .offline(.noNetwork): "no network"
        case .offline(.serverUnreachable): "server not responding"
        case .offline(.tooOld): "app too old"
        case .offline(.refused(let trouble)): "refused, \(trouble.code.rawValue)"
        case .closed(let trouble): "closed, \(trouble?.code.rawValue ?? "no error")"
        }
    }
}

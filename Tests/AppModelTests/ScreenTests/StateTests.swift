import Foundation
import Testing

/// The states that each screen has to draw. Each is a section of `Screens/*.txt`, which a test compares with the model.
@Suite struct StateTests {
    static let states: [(screen: String, states: [String])] = [
        (
            "Welcome",
            [
                "empty", "checking", "wrong address", "not a Confab server", "not responding",
                "local network not allowed", "camera not allowed", "app too old", "server too old",
            ]
        ),
        ("AboutYou", ["not agreed", "agreed", "edited later"]),
        ("Permissions", ["not asked", "refused", "restricted", "no camera", "microphone only", "text only"]),
        (
            "Roulette",
            [
                "preview", "idle", "waiting", "waiting with a pause", "matched without picture", "talking",
                "partner reconnecting", "no stream",
            ]
        ),
        ("Nearby", ["no permission", "locating", "empty", "list", "stale", "error"]),
        ("People", ["person, online", "person, busy", "person, blocked", "contacts, missed badge"]),
        (
            "OutgoingCall",
            [
                "placing", "ringing on 1", "ringing on 2", "push only", "busy", "unreachable", "declined", "unanswered",
                "call_not_allowed", "rate_limited",
            ]
        ),
        ("IncomingCall", ["in the app", "waiting during a call", "answeredElsewhere", "declinedElsewhere"]),
        (
            "InCall",
            [
                "connecting", "active", "audio only", "partner reconnecting", "own line reconnecting",
                "paused by the network", "held", "ended, hungUp", "ended, ended", "ended, connectionLost",
                "ended, failed",
            ]
        ),
        (
            "Room",
            [
                "ready", "waiting to be let in", "connecting to Ada", "full", "not connected, will rejoin", "0 others",
                "1 other", "2 others", "3 others", "pinned", "speaking", "muted by a host", "removed",
                "members see addresses", "file", "file, downloading", "file, downloaded", "file, failed",
            ]
        ),
        ("Settings", ["usual"]),
        ("Report", ["choosing", "reason chosen", "sent", "failed"]),
        (
            "Connection",
            [
                "connecting", "reconnecting", "no network", "server unreachable", "too old", "replaced device",
                "banned", "token expired",
            ]
        ),
    ]

    @Test(arguments: states) func everyStateOfAScreenIsDrawn(screen: String, states: [String]) throws {
        let file = Project.tests.appending(path: "Screens/\(screen).txt")
        let drawn = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("[") }
        for state in states { #expect(drawn.contains("[\(state)]"), "\(screen) does not show: \(state)") }
    }

    /// A section that no test compares would never fail.
    @Test func everySectionHasATest() throws {
        let folder = Project.tests.appending(path: "ScreenTests")
        let tests = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        for (screen, _) in Self.states { #expect(tests.contains("\"\(screen)\""), "no test compares \(screen).txt") }
    }
}

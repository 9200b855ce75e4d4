import Foundation
import Testing

/// The states that each screen has to draw. Each is a section of `Screens/*.txt`, which a test compares with the model.
@Suite struct StateTests {
    static let states: [(screen: String, states: [String])] = [
        (
            "Welcome",
            [
                "empty", "checking", "wrong address", "not a Confab server", "not responding",
                "local network not allowed", "camera not allowed", "app too old",
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
                "preview", "host", "host, asked before removing", "poor connection", "members see addresses", "file",
                "file, downloading", "file, downloaded", "file, failed", "recorded", "recorded and broadcast, asked",
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

    /// A section that no test compares would never fail. A test names its section, or has it among its arguments.
    @Test func everySectionIsCompared() throws {
        // This file names them all.
        let tests = try Self.texts(in: "ScreenTests").filter { $0.file != "StateTests.swift" }
        for (file, text) in try Self.texts(in: "Screens") {
            let screen = String(file.prefix { $0 != "." })
            var compared: Set<String> = []
            for (_, test) in tests { compared.formUnion(Self.sections(of: screen, comparedIn: test)) }
            for line in text.split(separator: "\n") where line.hasPrefix("[") && line.hasSuffix("]") {
                let section = String(line.dropFirst().dropLast())
                // A toggle of a screen is indented.
                #expect(compared.contains(section), "no test compares \(file): \(section)")
            }
        }
    }

    private static func texts(in folder: String) throws -> [(file: String, text: String)] {
        let folder = Project.tests.appending(path: folder)
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .map { ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8)) }
    }

    /// The sections of a screen that the code of tests names.
    static func sections(of screen: String, comparedIn test: String) -> Set<String> {
        var direct: Set<String> = []
        var isIndirect = false
        for match in test.matches(of: /"(\w+)",\s*(?:"([^"\\]*)"\s*\)|([a-z]))/) where match.1 == screen {
            if let section = match.2 { direct.insert(String(section)) } else { isIndirect = true }
        }
        guard isIndirect else { return direct }
        return direct.union(test.matches(of: /"([^"\\\n]*)"/).map { String($0.1) })
    }

    @Test func aSectionWhoseTestIsDeletedIsFound() {
        let named = "Golden.expect(\n    model(.joined), \"Room\",\n    \"0 others\")\nlet other = \"full\""
        #expect(Self.sections(of: "Room", comparedIn: named) == ["0 others"])
        #expect(Self.sections(of: "InCall", comparedIn: named).isEmpty)
        let argument = "@Test(arguments: [\"full\"]) func a(state: String) { Golden.expect(x, \"Room\", state) }"
        #expect(Self.sections(of: "Room", comparedIn: argument).contains("full"))
    }
}

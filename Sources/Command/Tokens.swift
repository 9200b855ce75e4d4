import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

/// The project: the key and secret that sessions and tokens are made with.
struct ProjectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "project", abstract: "The API key and secret.", subcommands: [Show.self]
    )

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the API key and the secret.")
        @OptionGroup var data: DataOptions

        func run() throws {
            let (_, file) = try data.project()
            print("API key:    \(file.apiKey)")
            print("API secret: \(file.apiSecret.revealed)")
        }
    }
}

struct SessionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Make sessions.", subcommands: [Create.self]
    )

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the id of a new session.")
        @OptionGroup var data: DataOptions

        @Option(help: "routed (through the server) or relayed (peer to peer).")
        var media: MediaMode = .routed

        @Flag(help: "Relayed, and never through the server, even where peers cannot reach each other.")
        var relayedOnly = false

        func run() throws {
            let (project, _) = try data.project()
            var generator = SystemRandomNumberGenerator()
            let id = project.makeSessionID(
                mediaMode: relayedOnly ? .relayed : media, relayedOnly: relayedOnly, now: .now, using: &generator
            )
            print(id)
        }
    }
}

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make tokens.", subcommands: [Create.self]
    )

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a token for a session, or for one of your own users."
        )
        @OptionGroup var data: DataOptions

        @Option(help: "The session the token lets into.")
        var session: String?

        @Option(help: "subscriber, publisher, publisheronly or moderator.")
        var role: Role = .publisher

        @Option(name: .customLong("data"), help: "Connection data that everybody in the session sees.")
        var connectionData: String = ""

        @Option(help: "How long it is valid: 90s, 10m, 24h, 30d.")
        var expires: String = "24h"

        @Option(help: "Your own id of a user; the token then proves who somebody is.")
        var user: String?

        @Option(help: "The user's name.")
        var name: String?

        func run() throws {
            let (project, _) = try data.project()
            guard let lifetime = Duration(expires) else {
                throw ValidationError("--expires takes a number and a unit: 90s, 10m, 24h or 30d.")
            }
            switch (session, user) {
            case (let session?, nil): print(try sessionToken(session, project, lifetime))
            case (nil, let user?): print(try userToken(user, project, lifetime))
            default: throw ValidationError("Give --session or --user, one of the two.")
            }
        }

        private func sessionToken(_ text: String, _ project: Project, _ lifetime: Duration) throws -> String {
            guard let session = SessionID(text), project.mediaMode(of: session) != nil else {
                throw ValidationError("This is not a session of this project.")
            }
            guard connectionData.unicodeScalars.count <= Limits.connectionData else {
                throw ValidationError("--data has at most \(Limits.connectionData) characters.")
            }
            try check(lifetime, longest: Project.longestSessionToken)
            var generator = SystemRandomNumberGenerator()
            return project.makeSessionToken(
                SessionTokenClaims(session: session, role: role, data: connectionData, lifetime: lifetime), now: .now,
                using: &generator)
        }

        private func userToken(_ user: String, _ project: Project, _ lifetime: Duration) throws -> String {
            guard !user.isEmpty, user.utf8.count <= Limits.name, name?.utf8.count ?? 0 <= Limits.name else {
                throw ValidationError("--user and --name have at most \(Limits.name) bytes.")
            }
            try check(lifetime, longest: Project.longestUserToken)
            return project.makeUserToken(user: user, name: name, now: .now, lifetime: lifetime)
        }

        private func check(_ lifetime: Duration, longest: Duration) throws {
            guard lifetime > .zero, lifetime <= longest else {
                throw ValidationError(
                    "--expires is at most \(longest.components.seconds / 3600)h for this kind of token.")
            }
        }
    }
}

extension MediaMode: ExpressibleByArgument {}
extension Role: ExpressibleByArgument {}

extension Duration {
    /// `90s`, `10m`, `24h`, `30d`.
    init?(_ text: String) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count >= 0,
            count < 100_000
        else { return nil }
        self = .seconds(count * unit)
    }
}

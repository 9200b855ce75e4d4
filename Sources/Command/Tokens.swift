import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

/// The `confab session` command. Creates session IDs.
struct SessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Create sessions.", subcommands: [Create.self]
    )

    /// Creates a session ID.
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a session and print its ID.")
        @OptionGroup var data: DataOptions

        @Option(help: "Media mode: routed (through the server) or relayed (directly between clients).")
        var media: MediaMode = .routed

        @Flag(help: "Use relayed media and never fall back to routed, even if clients cannot connect to each other.")
        var relayedOnly = false

        @Option(help: "Always record the session, into composed archives of this size, such as 1280x720.")
        var record: CompositionResolution?

        @Option(help: "API key of the project (default: the main project).")
        var project: String?

        func run() async throws {
            let mode = relayedOnly ? .relayed : media
            guard record == nil || mode == .routed else {
                throw ValidationError("Only routed sessions can be recorded. Omit --record, or use --media routed.")
            }
            let project = try await data.project(self.project)
            var generator = SystemRandomNumberGenerator()
            let id = project.makeSessionID(
                mediaMode: mode, relayedOnly: relayedOnly, archive: record, now: .now, using: &generator)
            print(id)
        }
    }
}

/// The `confab token` command. Creates session tokens and user tokens.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Create tokens.", subcommands: [Create.self]
    )

    /// Creates a session token or a user token.
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a token for a session or for one of your users, and print it."
        )
        @OptionGroup var data: DataOptions

        @Option(help: "Session that the token can join.")
        var session: String?

        @Option(help: "Role: subscriber, publisher, publisheronly or moderator.")
        var role: Role = .publisher

        @Option(name: .customLong("data"), help: "Connection data, visible to everyone in the session.")
        var connectionData: String = ""

        @Option(help: "How long the token is valid, for example 90s, 10m, 24h or 30d.")
        var expires: String = "24h"

        @Option(help: "ID of one of your users. Creates a user token, which identifies that person.")
        var user: String?

        @Option(help: "Display name of the user.")
        var name: String?

        @Option(help: "API key of the session's project (default: the main project).")
        var project: String?

        func run() async throws {
            let project = try await data.project(self.project)
            guard let lifetime = Duration(expires) else {
                throw ValidationError("--expires must be a number and a unit, for example 90s, 10m, 24h or 30d.")
            }
            switch (session, user) {
            case (let session?, nil): print(try sessionToken(session, project, lifetime))
            case (nil, let user?) where self.project == nil: print(try userToken(user, project, lifetime))
            case (nil, _?): throw ValidationError("People belong to the main project. Omit --project.")
            default: throw ValidationError("Specify either --session or --user.")
            }
        }

        private func sessionToken(_ text: String, _ project: Project, _ lifetime: Duration) throws -> String {
            guard let session = SessionID(text), project.mediaMode(of: session) != nil else {
                throw ValidationError("--session is not a session ID of this project.")
            }
            guard connectionData.unicodeScalars.count <= Limits.connectionData else {
                throw ValidationError("--data must be at most \(Limits.connectionData) characters long.")
            }
            try check(lifetime, longest: Project.longestSessionToken)
            var generator = SystemRandomNumberGenerator()
            return project.makeSessionToken(
                SessionTokenClaims(session: session, role: role, data: connectionData, lifetime: lifetime), now: .now,
                using: &generator)
        }

        private func userToken(_ user: String, _ project: Project, _ lifetime: Duration) throws -> String {
            guard !user.isEmpty, user.utf8.count <= Limits.name, name?.utf8.count ?? 0 <= Limits.name else {
                throw ValidationError(
                    "--user must not be empty. --user and --name must each be at most \(Limits.name) bytes long.")
            }
            try check(lifetime, longest: Project.longestUserToken)
            return project.makeUserToken(user: user, name: name, now: .now, lifetime: lifetime)
        }

        private func check(_ lifetime: Duration, longest: Duration) throws {
            guard lifetime > .zero, lifetime <= longest else {
                let hours = longest.components.seconds / 3600
                throw ValidationError("--expires must be more than zero and at most \(hours)h for this token.")
            }
        }
    }
}

extension MediaMode: ExpressibleByArgument {}
extension CompositionResolution: ExpressibleByArgument {}
extension Role: ExpressibleByArgument {}

extension Duration {
    /// Parses a number below 100,000 and a unit: `90s`, `10m`, `24h`, `30d`. Returns nil for any other text.
    init?(_ text: String) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count >= 0,
            count < 100_000
        else { return nil }
        self = .seconds(count * unit)
    }
}

import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

/// The `confab project` command. Creates, lists and changes projects, and rotates their API secrets, which sign tokens.
struct ProjectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "project", abstract: "Show, create and change projects, and rotate their API secrets.",
        discussion: """
            A server has a main project, to which people and rooms belong. Create further projects for applications that \
            need separate API keys: each has its own secret and sessions. A running server notices changes within a second.
            """,
        subcommands: [Show.self, List.self, Create.self, Set.self, Rotate.self, Delete.self]
    )

    /// Prints a project's API key, its secret and its other properties.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the API key, the secret and the other properties of a project.")
        @OptionGroup var data: DataOptions
        @Argument(help: "API key of the project (default: the main project).") var key: String?

        func run() async throws {
            let (_, file) = try data.project()
            if let key, key != file.apiKey {
                ProjectCommand.print(try await data.storedProject(key))
            } else {
                Swift.print("API key:    \(file.apiKey)")
                Swift.print("API secret: \(file.apiSecret.revealed)")
                if let previous = file.previous { ProjectCommand.printOverlap(previous.acceptedUntil) }
                if let stored = try await data.storedProjects().project(file.apiKey) {
                    ProjectCommand.printProperties(stored, isRevealed: true)
                }
            }
        }
    }

    /// Lists the projects.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the projects, the main one first.")
        @OptionGroup var data: DataOptions

        func run() async throws {
            let (_, file) = try data.project()
            Swift.print("\(file.apiKey)  main project")
            let stored = try await data.storedProjects()
            for project in stored.projects where project.apiKey != file.apiKey {
                Swift.print("\(project.apiKey)  created \(TimeText.write(project.createdAt))  \(inert(project.name))")
            }
            for project in stored.unreadable {
                Swift.print("\(inert(project.apiKey ?? "unknown key"))  cannot be read. \(project.problem)")
            }
        }
    }

    /// The options that set properties of a project.
    struct Properties: ParsableArguments {
        var isEmpty: Bool {
            name == nil && connections == nil && webhook == nil && application == nil && publicKey == nil
        }

        @Option(help: "Name of the project.") var name: String?
        @Option(help: "Maximum number of connections in the project's sessions; 0 for the server's maximum.")
        var connections: Int?
        @Option(help: "URL to which events of the project's sessions are reported; \"\" for none.") var webhook: String?
        @Option(help: "ID of the application whose private key also signs tokens; \"\" for none.")
        var application: String?
        @Option(help: "PEM file with the application's public key.", completion: .file()) var publicKey: String?

        func changes(_ configuration: ConfabConfiguration) throws -> ProjectChanges {
            var changes = ProjectChanges()
            guard (application ?? "").isEmpty == (publicKey == nil) else {
                throw ValidationError("Specify --application and --public-key together.")
            }
            let key = try publicKey.map { path in
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw ValidationError("Cannot read \(inert(path)). Specify a PEM file with a public key.")
                }
                return text
            }
            do throws(WireError) {
                if let name { try changes.setName(name) }
                if let connections, connections != 0 { try changes.setConnections(connections) }
                if let webhook, !webhook.isEmpty { try changes.setWebhook(webhook, configuration.webhooks) }
                if let application, let key { try changes.setApplication(application, publicKey: key) }
            } catch {
                throw ValidationError(error.message)
            }
            if connections == 0 { changes.maxConnections = .remove }
            if webhook == "" { changes.webhookURL = .remove }
            if application == "" { changes.application = .remove }
            return changes
        }
    }

    /// Creates a project.
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a project and print its API key and secret.")
        @OptionGroup var data: DataOptions
        @OptionGroup var properties: Properties

        func run() async throws {
            let changes = try properties.changes(try data.configuration())
            let (main, _) = try data.project()
            let storage = try data.storage()
            while true {
                var random = SystemRandomNumberGenerator()
                var project = StoredProject(name: "", createdAt: .now, using: &random)
                changes.apply(to: &project)
                guard project.apiKey != main.apiKey,
                    try await storage.addProject(project, recording: .byOperator("project.create", project.apiKey))
                else { continue }
                ProjectCommand.print(project)
                return try await storage.close()
            }
        }
    }

    /// Changes properties of a project.
    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Change properties of a project.")
        @OptionGroup var data: DataOptions
        @Argument(help: "API key of the project.") var key: String
        @OptionGroup var properties: Properties

        func run() async throws {
            guard !properties.isEmpty else { throw ValidationError("Specify at least one property to change.") }
            let changes = try properties.changes(try data.configuration())
            let (main, _) = try data.project()
            let storage = try data.storage()
            let initial = key == main.apiKey ? StoredProject(apiKey: key, secret: nil, createdAt: .now) : nil
            let changed = try await storage.changeProject(
                key, or: initial, recording: .byOperator("project.set", key)
            ) { changes.apply(to: &$0) }
            guard let changed else { throw CommandError.noProject(key) }
            Swift.print("API key:    \(changed.apiKey)")
            ProjectCommand.printProperties(changed, isRevealed: changes.webhookURL != nil)
            try await storage.close()
        }
    }

    /// Replaces the API secret.
    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the API secret of a project and print the new one.",
            discussion: """
                A running server uses the new secret within a second, and nobody is disconnected. Session IDs, identities and \
                everything stored stay valid. Tokens signed by the previous secret are accepted until the overlap ends; the \
                secret before the previous one is refused.
                """
        )
        @OptionGroup var data: DataOptions

        @Option(help: "How long tokens of the previous secret are accepted, for example 0s, 10m, 24h or 30d.")
        var overlap: String = "24h"

        @Argument(help: "API key of the project (default: the main project).") var key: String?

        func run() async throws {
            guard let duration = Duration(overlap), duration <= Project.longestSessionToken else {
                throw ValidationError(
                    "--overlap must be a number and a unit, from 0s to 30d (the longest lifetime of a token).")
            }
            let configuration = try data.configuration()
            guard let key, try openProject(configuration).apiKey != key else {
                return try await rotateMain(configuration, duration)
            }
            let storage = try data.storage()
            let rotated = try await storage.changeProject(
                key, or: nil, recording: .byOperator("project.rotate", key, detail: "overlap \(overlap)")
            ) {
                var random = SystemRandomNumberGenerator()
                $0.rotate(overlap: duration, now: .now, using: &random)
            }
            guard let secret = rotated?.secret else { throw CommandError.noProject(key) }
            say(secret, acceptedUntil: rotated?.previousUntil, duration)
            try await storage.close()
        }

        /// Rotates the secret of the main project. Opens the database only afterwards, because a database without a
        /// project file would prevent the creation of a project.
        private func rotateMain(_ configuration: ConfabConfiguration, _ duration: Duration) async throws {
            let rotation: ProjectFile.Rotation
            do {
                rotation = try ProjectFile.rotate(configuration, overlap: duration, now: .now)
            } catch let error as DataDirectoryError {
                throw CommandError(description: "\(error)")
            }
            say(rotation.file.apiSecret, acceptedUntil: rotation.file.previous?.acceptedUntil, duration)
            if let cutShort = rotation.cutShort {
                say(
                    "The secret before that one is also refused now. It would have been accepted until "
                        + "\(TimeText.write(cutShort)).")
            }
            let storage = try data.storage()
            try await storage.record(
                .byOperator("project.rotate", rotation.file.apiKey, detail: "overlap \(overlap)"))
            try await storage.close()
        }

        private func say(_ secret: SecretText, acceptedUntil end: Timestamp?, _ overlap: Duration) {
            Swift.print(secret.revealed)
            let end = end.map { TimeText.write($0) } ?? ""
            say(
                overlap > .zero
                    ? "Tokens signed by the previous secret are accepted until \(end)."
                    : "Tokens signed by the previous secret are now refused.")
        }

        /// Prints to standard error, because standard output contains only the secret.
        private func say(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }
    }

    /// Deletes a project.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete a project. Its tokens and sessions become invalid, and connected clients are removed.")
        @OptionGroup var data: DataOptions
        @Argument(help: "API key of the project.") var key: String

        func run() async throws {
            let (main, _) = try data.project()
            guard key != main.apiKey else { throw ValidationError("The main project cannot be deleted.") }
            let storage = try data.storage()
            guard try await storage.removeProject(key, recording: .byOperator("project.delete", key)) else {
                throw CommandError.noProject(key)
            }
            try await storage.close()
        }
    }

    // MARK: Printing

    private static func print(_ project: StoredProject) {
        Swift.print("API key:    \(project.apiKey)")
        if let secret = project.secret { Swift.print("API secret: \(secret.revealed)") }
        if let until = project.previousUntil { printOverlap(until) }
        printProperties(project, isRevealed: true)
    }

    private static func printOverlap(_ end: Timestamp) {
        guard end > .now else { return }
        Swift.print("Tokens signed by the previous secret are accepted until \(TimeText.write(end)).")
    }

    private static func printProperties(_ project: StoredProject, isRevealed: Bool) {
        if !project.name.isEmpty { Swift.print("Name:       \(inert(project.name))") }
        if let count = project.maxConnections { Swift.print("Connections: at most \(count)") }
        if let id = project.applicationID { Swift.print("Application: \(id)") }
        if let url = project.webhookURL { Swift.print("Webhook:    \(url)") }
        if isRevealed, let secret = project.webhookSecret { Swift.print("Webhook secret: \(secret.revealed)") }
    }
}

extension CommandError {
    fileprivate static func noProject(_ key: String) -> CommandError {
        CommandError(description: "No project has the API key \(inert(key)). See `confab project list`.")
    }
}

extension DataOptions {
    /// Returns the keys of a project.
    ///
    /// - Parameter key: its API key; nil for the main project.
    func project(_ key: String?) async throws -> Project {
        let (main, _) = try project()
        guard let key, key != main.apiKey else { return main }
        let projects = Projects(main: main, stored: [try await storedProject(key)])
        guard let project = projects[key] else { throw CommandError.noProject(key) }
        return project
    }

    fileprivate func storedProject(_ key: String) async throws -> StoredProject {
        guard let found = try await storedProjects().project(key) else {
            throw CommandError.noProject(key)
        }
        return found
    }

    fileprivate func storedProjects() async throws -> StoredProjects {
        let storage = try storage()
        let projects = try await storage.projects()
        try await storage.close()
        return projects
    }
}

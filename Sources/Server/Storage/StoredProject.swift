import Foundation
import Logging
public import Signaling
public import Wire

/// A project in the database, or the additional properties of the main project, whose secret is in `project.json`.
public struct StoredProject: Hashable, Sendable {
    /// Maximum number of stored projects. A running server reads all of them every second.
    static let maxCount = 1000

    public let apiKey: String
    /// The API secret. Nil for the main project.
    public var secret: SecretText?
    /// The secret before the last rotation; nil if the secret was never rotated.
    public var previousSecret: SecretText?
    /// When the previous secret stops being accepted; nil if there is none.
    public var previousUntil: Timestamp?
    /// A name for the operator; may be empty.
    public var name: String
    public var createdAt: Timestamp
    /// The ID and the public key of the application whose private key may also sign the project's tokens; nil if
    /// there is none.
    public var applicationID: String?
    public var publicKey: String?
    /// The URL to which events of the project's sessions are reported. Nil if they are not reported.
    public var webhookURL: String?
    /// The secret that signs the reports.
    public var webhookSecret: SecretText?
    /// The maximum number of connections in the project's sessions. Nil for the server's maximum.
    public var maxConnections: Int?

    public init(apiKey: String, secret: SecretText?, name: String = "", createdAt: Timestamp) {
        (self.apiKey, self.secret, self.name, self.createdAt) = (apiKey, secret, name, createdAt)
    }

    /// Creates a project with a random API key and secret.
    public init(name: String, createdAt: Timestamp, using random: inout some RandomNumberGenerator) {
        let key = String(UInt64.random(in: 10_000_000...99_999_999, using: &random))
        self.init(
            apiKey: key, secret: SecretText.generated(using: &random), name: name, createdAt: createdAt)
    }

    /// Replaces the secret with a random one. Tokens signed with the replaced secret are accepted until `overlap` has
    /// passed.
    public mutating func rotate(overlap: Duration, now: Timestamp, using random: inout some RandomNumberGenerator) {
        (previousSecret, previousUntil) = (secret, now + max(.zero, overlap))
        secret = SecretText.generated(using: &random)
    }

    /// Sets the URL to which events are reported, and creates the secret that signs the reports if there is none. If
    /// the URL is nil, removes the webhook and its secret.
    public mutating func setWebhook(_ url: String?, using random: inout some RandomNumberGenerator) {
        webhookURL = url
        if url == nil { webhookSecret = nil }
        if url != nil, webhookSecret == nil { webhookSecret = SecretText.generated(using: &random) }
    }

    /// Whether the API key and the secrets are valid. True for the main project, whose secrets are not stored here.
    var isUsable: Bool { secret == nil || keys(nil) != nil }

    /// Returns the project with its keys, for signing and verifying. Returns nil for the main project, and if a key
    /// is invalid.
    func project(serverKey: ServerKey) -> Project? {
        guard var project = keys(serverKey) else { return nil }
        add(to: &project)
        return project
    }

    private func keys(_ serverKey: ServerKey?) -> Project? {
        guard let secret else { return nil }
        let previous = previousSecret.flatMap { secret in
            previousUntil.map { Project.PreviousSecret(secret: secret.revealed, acceptedUntil: $0) }
        }
        return Project(apiKey: apiKey, secret: secret.revealed, serverKey: serverKey, previous: previous)
    }

    /// Adds the additional properties to the project.
    func add(to project: inout Project) {
        if let applicationID, let publicKey {
            project.application = Project.Application(id: applicationID, publicKey: publicKey)
        }
        let webhook = WebhookTarget(storedURL: webhookURL, secret: webhookSecret?.revealed)
        (project.hasWebhook, project.maxConnections) = (webhook != nil, maxConnections)
    }
}

/// The projects in storage.
public struct StoredProjects: Sendable {
    /// A project that cannot be used, for example because its row was edited by hand. Its row stays as it is.
    public struct Unreadable: Hashable, Sendable {
        /// The project's API key; nil if not even the key can be read.
        public var apiKey: String?
        /// A sentence that says what is wrong.
        public var problem: String
    }

    /// The projects that can be used, oldest first, and the additional properties of the main project if it has any.
    public var projects: [StoredProject] = []
    public var unreadable: [Unreadable] = []

    /// Returns the project with this API key; nil if there is none. Throws if it cannot be read.
    public func project(_ apiKey: String) throws(StorageError) -> StoredProject? {
        if let found = unreadable.first(where: { $0.apiKey == apiKey }) { throw StorageError(.corrupt, found.problem) }
        return projects.first { $0.apiKey == apiKey }
    }

    /// Logs which projects cannot be read, except those in `known`.
    func logUnreadable(_ logger: Logger, except known: Set<Unreadable> = []) {
        for project in unreadable where !known.contains(project) {
            logger.error(
                """
                A project cannot be read. The version that the server has read before, if any, stays in use. Repair the \
                project's row in the table project, or delete the project.
                """,
                metadata: ["apiKey": "\(project.apiKey ?? "unreadable")", "error": "\(project.problem)"])
        }
    }
}

extension Projects {
    /// Creates all projects of a server.
    ///
    /// - Parameters:
    ///   - main: the project of `project.json`.
    ///   - stored: the rows of the database, of which one may belong to the main project.
    public init(main: Project, stored: [StoredProject]) {
        var main = main
        stored.first { $0.apiKey == main.apiKey }?.add(to: &main)
        self.init(main: main, others: stored.compactMap { $0.project(serverKey: main.serverKey) })
    }
}

import Wire

/// The projects of a server: API keys with separate secrets and sessions.
///
/// People, rooms, calls and the roulette belong to the main project. The others have only sessions. All have the same
/// server key. A session ID contains the API key of its project and is authenticated, so each ID belongs to exactly one
/// project.
public struct Projects: Sendable, Equatable {
    public var main: Project
    /// The other projects, keyed by API key.
    private var others: [String: Project]
    /// The API keys of the projects with an application, keyed by the application's ID.
    private var applications: [String: String]

    public init(main: Project, others: [Project] = []) {
        self.main = main
        self.others = Dictionary(others.map { ($0.apiKey, $0) }) { first, _ in first }
        self.others[main.apiKey] = nil
        applications = Dictionary(
            ([main] + others).compactMap { project in project.application.map { ($0.id, project.apiKey) } }
        ) { first, _ in first }
    }

    /// Whether the server has projects besides the main one.
    var areSeveral: Bool { !others.isEmpty }

    /// Returns the project with this API key; nil if there is none.
    public subscript(apiKey: String) -> Project? { apiKey == main.apiKey ? main : others[apiKey] }

    /// Returns the project with this API key or application ID; nil if there is none.
    public func project(named name: String) -> Project? { self[name] ?? applications[name].flatMap { self[$0] } }

    /// Returns the project to which a session belongs; nil if this server did not create the session ID.
    public func owner(of session: SessionID) -> Project? {
        guard let key = Project.apiKey(in: session), let project = self[key], project.mediaMode(of: session) != nil
        else { return nil }
        return project
    }
}

import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Signaling
import Wire

/// The HTTP interface for projects, under `/v1/projects` (`docs/rest.md`). For the operator: every request requires a token
/// signed with the API secret of the main project.
enum ProjectsEndpoint: Sendable {
    case list, create, describe, change, rotate, delete

    static let layers = EndpointLayers(point: .operation, authorization: .operators)
    /// Maximum size of a request's body in bytes. A public key of 4,096 bits and the longest URL take less than 4 KiB.
    static let maxBodySize = 16 * 1024
    private static let path = "/v1/projects"

    static let routes: [(HTTPRequest.Method, String, ProjectsEndpoint)] = [
        (.get, path, .list), (.post, path, .create), (.get, path + "/:key", .describe),
        (.patch, path + "/:key", .change), (.delete, path + "/:key", .delete), (.post, path + "/:key/rotate", .rotate),
    ]

    func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        do {
            return try await perform(gateway, request)
        } catch let error as WireError {
            throw error
        } catch let error as StorageError where error.code == .tooMany {
            throw WireError(.rateLimited, error.message)
        } catch let error as StorageError where error.code == .taken {
            throw WireError(.applicationExists, error.message)
        } catch {
            gateway.logger.error("Could not store or read projects", metadata: ["error": "\(error)"])
            throw .storageFailed
        }
    }

    private func perform(_ gateway: Gateway, _ request: GateRequest) async throws -> GateResponse {
        let (storage, now) = (gateway.storage, gateway.runner.wallNow)
        let main = gateway.runner.hubSettings.project.apiKey
        let key = request.path.get("key") ?? ""
        switch self {
        case .list:
            var projects = try await storage.projects().projects
            if !projects.contains(where: { $0.apiKey == main }) { projects.insert(.main(main), at: 0) }
            return OpenTokResponse.object([
                .init(name: "projects", value: .array(projects.map { $0.json(main: main) }))
            ])
        case .describe:
            let found = try await storage.projects().project(key)
            guard let project = found ?? (key == main ? .main(main) : nil) else { throw WireError.projectNotFound }
            return OpenTokResponse.json(project.json(main: main))
        case .create:
            let changes = try changes(request, gateway)
            while true {
                var random = SystemRandomNumberGenerator()
                var project = StoredProject(name: "", createdAt: now, using: &random)
                changes.apply(to: &project)
                guard project.apiKey != main,
                    try await storage.addProject(project, recording: entry("create", project.apiKey, now))
                else { continue }
                await gateway.reloadProjects()
                var response = OpenTokResponse.json(project.json(main: main, revealing: [.api, .webhook]))
                response.status = 201
                return response
            }
        case .change:
            let changes = try changes(request, gateway)
            let initial = key == main ? StoredProject.main(main) : nil
            let changed = try await storage.changeProject(key, or: initial, recording: entry("set", key, now)) {
                changes.apply(to: &$0)
            }
            guard let changed else { throw WireError.projectNotFound }
            await gateway.reloadProjects()
            return OpenTokResponse.json(
                changed.json(main: main, revealing: changes.webhookURL == nil ? [] : [.webhook]))
        case .rotate:
            guard key != main else { throw WireError.projectIsMain }
            let overlap = try overlap(request)
            let rotated = try await storage.changeProject(key, or: nil, recording: entry("rotate", key, now)) {
                var random = SystemRandomNumberGenerator()
                $0.rotate(overlap: overlap, now: now, using: &random)
            }
            guard let rotated else { throw WireError.projectNotFound }
            await gateway.reloadProjects()
            return OpenTokResponse.json(rotated.json(main: main, revealing: [.api]))
        case .delete:
            guard key != main else { throw WireError.projectIsMain }
            guard try await storage.removeProject(key, recording: entry("delete", key, now)) else {
                throw WireError.projectNotFound
            }
            await gateway.reloadProjects()
            return GateResponse(status: 204)
        }
    }

    private func entry(_ action: String, _ key: String, _ now: Timestamp) -> AuditEntry {
        AuditEntry(at: now, actor: AuditEntry.operatorActor, action: "project.\(action)", subject: key)
    }

    private func changes(_ request: GateRequest, _ gateway: Gateway) throws(WireError) -> ProjectChanges {
        try ProjectChanges(
            members: try members(request, allowing: ProjectChanges.names), gateway.configuration.webhooks)
    }

    /// Reads from the request's `overlap` member how long the old secret stays valid after the rotation. Returns 24
    /// hours if the member is missing.
    private func overlap(_ request: GateRequest) throws(WireError) -> Duration {
        let longest = Project.longestSessionToken.components.seconds
        switch try members(request, allowing: ["overlap"])["overlap"] {
        case nil: return .seconds(24 * 3600)
        case .integer(let seconds)? where (0...longest).contains(seconds): return .seconds(seconds)
        default: throw WireError(.malformed, "\"overlap\" must be a number of seconds from 0 to \(longest).")
        }
    }

    /// Reads the JSON object in the body. An empty body counts as an empty object. Refuses unknown members, because a
    /// misspelled one would otherwise be ignored.
    private func members(_ request: GateRequest, allowing names: Set<String>) throws(WireError) -> JSONObject {
        guard !request.body.isEmpty else { return JSONObject() }
        guard case .object(let object)? = try? JSONReader.parse(request.body) else {
            throw WireError(.malformed, "The request body must be a JSON object without duplicate members.")
        }
        guard object.members.allSatisfy({ names.contains($0.name) }) else {
            let known = names.sorted().joined(separator: ", ")
            throw WireError(.malformed, "Unknown member in the request body. Known members are: \(known).")
        }
        return object
    }
}

extension StoredProject {
    /// Returns the main project without additional properties. Its creation time is not known.
    static func main(_ apiKey: String) -> StoredProject {
        StoredProject(apiKey: apiKey, secret: nil, createdAt: Timestamp(milliseconds: 0))
    }

    /// A secret that a response can include.
    fileprivate enum Secret { case api, webhook }

    /// - Parameter secrets: the secrets to include.
    fileprivate func json(main: String, revealing secrets: Set<Secret> = []) -> JSONValue {
        var members: [JSONObject.Member] = []
        func add(_ name: String, _ value: JSONValue?) {
            if let value { members.append(.init(name: name, value: value)) }
        }
        add("apiKey", .string(apiKey))
        if secrets.contains(.api) { add("apiSecret", secret.map { .string($0.revealed) }) }
        add("isMain", .bool(apiKey == main))
        add("name", .string(name))
        if secret != nil { add("createdAt", .integer(createdAt.milliseconds)) }
        add("previousSecretUntil", previousUntil.map { .integer($0.milliseconds) })
        add("maxConnections", maxConnections.map { .integer(Int64($0)) })
        add("applicationId", applicationID.map { .string($0) })
        add("publicKey", publicKey.map { .string($0) })
        add("webhookUrl", webhookURL.map { .string($0) })
        if secrets.contains(.webhook) { add("webhookSecret", webhookSecret.map { .string($0.revealed) }) }
        return .object(JSONObject(members))
    }
}

extension WireError {
    fileprivate static let projectNotFound = WireError(
        .notFound, "No project has this API key. See GET /v1/projects.")
    fileprivate static let projectIsMain = WireError(
        .notPermitted,
        "The main project cannot be rotated or deleted here. To rotate its secret, run confab project rotate on the server."
    )
}

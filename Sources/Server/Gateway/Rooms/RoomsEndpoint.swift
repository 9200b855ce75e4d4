import HTTPTypes
import Hummingbird
import Logging
import NIOHTTP1
import Signaling
import Wire

/// The HTTP interface for rooms, under `/v1/rooms` (`docs/rest.md`). For operators and for applications that embed
/// rooms: every request requires a token signed with the API secret.
///
/// It checks the syntax of requests. The rooms decide everything else.
enum RoomsEndpoint: Sendable {
    case list, create, describe, change, close, makeToken

    static let layers = EndpointLayers(point: .operation, authorization: .operators)
    /// Maximum size of a request's body in bytes. The longest name and password and all options take less than 2 KiB.
    static let maxBodySize = 16 * 1024

    static let routes: [(HTTPRequest.Method, String, RoomsEndpoint)] = [
        (.get, "/v1/rooms", .list), (.post, "/v1/rooms", .create), (.get, "/v1/rooms/:name", .describe),
        (.patch, "/v1/rooms/:name", .change), (.delete, "/v1/rooms/:name", .close),
        (.post, "/v1/rooms/:name/tokens", .makeToken),
    ]

    func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        let action = try action(request)
        let reply = try await gateway.runner.ask(action)
        await record(action, reply, gateway)
        return response(reply, below: BasePath(gateway.configuration))
    }

    // MARK: Requests

    private func action(_ request: GateRequest) throws(WireError) -> OperatorRequest.Action {
        switch self {
        case .list: return try page(request)
        case .create:
            return .create(try RoomCreationRequest(members: try members(request, allowing: ["name", "options"])))
        case .describe: return .describe(try name(request))
        case .change:
            let members = try members(request, allowing: ["options"])
            return .change(try name(request), try RoomChangeRequest(members: members).options)
        case .close: return .close(try name(request))
        case .makeToken:
            let members = try members(request, allowing: ["role", "displayName", "lifetime"])
            return .token(try name(request), try RoomTokenRequest(members: members))
        }
    }

    private func name(_ request: GateRequest) throws(WireError) -> RoomName {
        guard let name = request.path.get("name").flatMap({ RoomName(pathComponent: $0) }) else {
            throw WireError(.roomNotFound, "The room name in the path is not valid. Percent-encode it.")
        }
        return name
    }

    private func page(_ request: GateRequest) throws(WireError) -> OperatorRequest.Action {
        let wanted: Int? = request.query.get("limit").map { Int($0) } ?? Limits.roomsPage
        guard let limit = wanted, (1...Limits.roomsPage).contains(limit) else {
            throw WireError(.malformed, "Invalid \"limit\". Send a number from 1 to \(Limits.roomsPage).")
        }
        let after = request.query.get("after").map { RoomCursor($0) }
        guard after != .some(nil) else {
            throw WireError(
                .malformed, "Invalid \"after\". Send the \"next\" of an earlier page, or omit it for the first page.")
        }
        return .list(after: after ?? nil, limit: limit)
    }

    /// Reads the JSON object in the body. An empty body counts as an empty object.
    ///
    /// Refuses unknown members, because ignoring a misspelled option would create a room that is more open than
    /// intended.
    private func members(_ request: GateRequest, allowing names: Set<String>) throws(WireError) -> JSONObject {
        guard !request.body.isEmpty else { return JSONObject() }
        guard case .object(let object)? = try? JSONReader.parse(request.body) else {
            throw WireError(.malformed, "The request body must be a JSON object without duplicate members.")
        }
        try check(object, allowing: names)
        if case .object(let options)? = object["options"] { try check(options, allowing: RoomChanges.names) }
        return object
    }

    private func check(_ object: JSONObject, allowing names: Set<String>) throws(WireError) {
        for member in object.members where !names.contains(member.name) {
            let known = names.sorted().joined(separator: ", ")
            throw WireError(.malformed, "Unknown member in the request body. Known members are: \(known).")
        }
    }

    // MARK: Responses

    /// Adds an action that creates, changes or closes a room to the audit log.
    private func record(_ action: OperatorRequest.Action, _ reply: OperatorReply, _ gateway: Gateway) async {
        let (name, subject): (String, RoomName)
        switch (action, reply) {
        case (.create, .room(let room)): (name, subject) = ("room.create", room.summary.name)
        case (.change(let room, _), _): (name, subject) = ("room.change", room)
        case (.close(let room), _): (name, subject) = ("room.close", room)
        default: return
        }
        await gateway.record(name, subject.text)
    }

    private func response(_ reply: OperatorReply, below base: BasePath) -> GateResponse {
        let body: [UInt8]
        switch reply {
        case .room(let room): body = room.json
        case .rooms(let list): body = list.json
        case .token(let token): body = token.json
        // Files and sessions have separate endpoints.
        case .closed, .file, .admissible, .streams, .archive, .broadcast, .done: return GateResponse(status: 204)
        case .refused(let error): return GateResponse(error)
        }
        let isNew = self == .create || self == .makeToken
        var response = GateResponse(
            status: isNew ? 201 : 200, type: "application/json", body: body + [UInt8(ascii: "\n")])
        if case .room(let room) = reply, self == .create {
            response.headers.add(
                name: "Location", value: "\(base.text)/v1/rooms/\(room.summary.name.pathComponent)")
        }
        return response
    }
}

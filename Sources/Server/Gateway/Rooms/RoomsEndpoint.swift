import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// The HTTP interface for rooms, under `/v1/rooms` (`docs/rest.md`). For operators and for applications that embed
/// rooms: every request requires a token signed with the API secret.
///
/// It checks the token and the syntax of requests. The rooms decide everything else.
struct RoomsEndpoint: Sendable {
    /// Maximum size of a request's body in bytes. The longest name and password and all options take less than 2 KiB.
    static let maxBodySize = 16 * 1024
    private static let tokenHeader = "X-OPENTOK-AUTH"

    enum Operation: Sendable { case list, create, describe, change, close, makeToken }

    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    private var configuration: ConfabConfiguration { live.current }

    func addRoutes(to router: Router<PersonExport.Context>) {
        router.get("/v1/rooms") { request, context in await respond(to: .list, request, context) }
        router.post("/v1/rooms") { request, context in await respond(to: .create, request, context) }
        router.get("/v1/rooms/:name") { request, context in await respond(to: .describe, request, context) }
        router.patch("/v1/rooms/:name") { request, context in await respond(to: .change, request, context) }
        router.delete("/v1/rooms/:name") { request, context in await respond(to: .close, request, context) }
        router.post("/v1/rooms/:name/tokens") { request, context in await respond(to: .makeToken, request, context) }
    }

    private func respond(
        to operation: Operation, _ request: Request, _ context: PersonExport.Context
    ) async -> Response {
        var answer: EndpointResponse
        do throws(WireError) {
            let headers = HTTPHeaders(request.headers)
            guard configuration.allows(headers) else { throw .forbiddenOrigin }
            try await authorize(headers, configuration.clientAddress(headers, from: context.peer))
            let action = try await self.action(operation, request, context)
            let reply = try await gateway.ask(action)
            await record(operation, action, reply, context.logger)
            answer = EndpointResponse(reply, to: operation, below: BasePath(configuration))
        } catch {
            answer = EndpointResponse(error)
        }
        return answer.response()
    }

    // MARK: Authorization

    /// Checks the request's token. Only failures count against the address's limit, so that an application can create a
    /// token for each of its users.
    private func authorize(_ headers: HTTPHeaders, _ address: IPAddress) async throws(WireError) {
        let token = headers.only(Self.tokenHeader) ?? headers.bearerToken
        let refusal = try await gateway.admit(address, at: .operation) { gateway -> WireError? in
            do throws(WireError) {
                guard let token else { throw .requestTokenMissing }
                try gateway.reception.project.verifyRequestToken(token, now: gateway.runner.wallNow)
                return nil
            } catch {
                guard let wait = gateway.helloDelay(address) else { return error }
                return Gateway.AdmissionPoint.operation.tooOften(retryAfter: wait)
            }
        }
        if let refusal { throw refusal }
    }

    // MARK: Requests

    private func action(
        _ operation: Operation, _ request: Request, _ context: PersonExport.Context
    ) async throws(WireError) -> OperatorRequest.Action {
        switch operation {
        case .list: return try page(request)
        case .create:
            let members = try await members(request, allowing: ["name", "options"])
            return .create(try RoomCreationRequest(members: members))
        case .describe: return .describe(try name(context))
        case .change:
            let members = try await members(request, allowing: ["options"])
            return .change(try name(context), try RoomChangeRequest(members: members).options)
        case .close: return .close(try name(context))
        case .makeToken:
            let members = try await members(request, allowing: ["role", "displayName", "lifetime"])
            return .token(try name(context), try RoomTokenRequest(members: members))
        }
    }

    private func name(_ context: PersonExport.Context) throws(WireError) -> RoomName {
        guard let name = context.parameters.get("name").flatMap({ RoomName(pathComponent: $0) }) else {
            throw WireError(.roomNotFound, "The room name in the path is not valid. Percent-encode it.")
        }
        return name
    }

    private func page(_ request: Request) throws(WireError) -> OperatorRequest.Action {
        let query = request.uri.queryParameters
        let wanted: Int? = query.get("limit").map { Int($0) } ?? Limits.roomsPage
        guard let limit = wanted, (1...Limits.roomsPage).contains(limit) else {
            throw WireError(.malformed, "Invalid \"limit\". Send a number from 1 to \(Limits.roomsPage).")
        }
        let after = query.get("after").map { RoomCursor($0) }
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
    private func members(
        _ request: Request, allowing names: Set<String>
    ) async throws(WireError) -> JSONObject {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: Self.maxBodySize)
        } catch is NIOTooManyBytesError {
            throw WireError(.messageTooLarge, "The request body must not exceed \(Self.maxBodySize) bytes.")
        } catch {
            throw WireError(.malformed, "The request body is incomplete. Send the request again.")
        }
        guard body.readableBytes > 0 else { return JSONObject() }
        guard case .object(let object)? = try? JSONReader.parse(body.readableBytesView) else {
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

    // MARK: The audit log

    /// Adds the action to the audit log. A failure does not undo the action, so it is only logged.
    private func record(
        _ operation: Operation, _ action: OperatorRequest.Action, _ reply: OperatorReply, _ logger: Logger
    ) async {
        let (name, subject): (String, RoomName)
        switch (action, reply) {
        case (.create, .room(let room)): (name, subject) = ("room.create", room.summary.name)
        case (.change(let room, _), _): (name, subject) = ("room.change", room)
        case (.close(let room), _): (name, subject) = ("room.close", room)
        default: return
        }
        let gateway = gateway
        do {
            let (storage, now) = try await gateway.eventLoop.submit {
                (gateway.value.storage, gateway.value.runner.wallNow)
            }.get()
            try await storage.record(
                AuditEntry(at: now, actor: AuditEntry.operatorActor, action: name, subject: subject.text))
        } catch {
            logger.error("Could not store an entry of the audit log", metadata: ["error": "\(error)"])
        }
    }
}

extension EndpointResponse {
    fileprivate init(_ reply: OperatorReply, to operation: RoomsEndpoint.Operation, below base: BasePath) {
        let body: [UInt8]
        switch reply {
        case .room(let room): body = room.json
        case .rooms(let list): body = list.json
        case .token(let token): body = token.json
        // Files have a separate endpoint.
        case .closed, .file, .admissible:
            self.init(status: 204)
            return
        case .refused(let error):
            self.init(error)
            return
        }
        let isNew = operation == .create || operation == .makeToken
        self.init(
            status: isNew ? 201 : 200, contentType: "application/json", body: body + [UInt8(ascii: "\n")])
        if case .room(let room) = reply, operation == .create {
            headers.add(name: "Location", value: "\(base.text)/v1/rooms/\(room.summary.name.pathComponent)")
        }
    }
}

extension WireError {
    fileprivate static let requestTokenMissing = WireError(
        .tokenMalformed,
        "Send a JWT signed with the API secret, as X-OPENTOK-AUTH: <JWT> or Authorization: Bearer <JWT>.")
}

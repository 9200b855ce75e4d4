import Cluster
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ServiceLifecycle
import Signaling
import Synchronization
import Wire

/// Serves the operator's page, `GET /admin`, and its interface, `/admin/api/…`, on a port of its own.
///
/// The page and its scripts contain nothing secret. Every request to the interface needs the token, as a bearer token, so
/// that it is never in a URL, and no page of another site can use it. If the port cannot be opened, `run` throws.
struct AdminEndpoint: Service {
    /// Maximum number of connections. Further ones wait. It fits a few operators with six connections each.
    private static let maxConnections = 32
    /// Maximum size of a request's body in bytes.
    private static let maxBodySize = 4096
    /// Maximum size of the head of a request in bytes. A token has at most 256.
    private static let maxHeadSize = 16 << 10
    /// Sessions, and members of each session, in one response.
    private static let (maxSessions, maxMembers) = (25, 50)
    /// How often to look for changes, for pages that are notified of them. Each gets at most one line in this time.
    private static let lookInterval: Duration = .seconds(1)
    /// After this time, a page must ask again to be notified.
    private static let longestWatch: Duration = .seconds(600)
    /// Archives and broadcasts in one response.
    private static let maxRecordings = 25

    let configuration: ConfabConfiguration
    let live: LiveConfiguration
    let token: SecretText
    let figures: AdminFigureKeeper
    let desk: AdminDesk
    let logger: Logger
    /// Called with the port when it is open.
    let onReady: @Sendable (Int) -> Void

    /// A request to the interface, after its token was checked.
    private struct Call {
        var request: Request
        var context: Routes.Context
        var body: JSONObject
    }

    private typealias Handler = @Sendable (AdminEndpoint, Call) async throws -> GateResponse

    private static let routes: [(HTTPRequest.Method, String, Handler)] = [
        (.get, "/admin/api/overview", { try await $0.overview($1) }),
        (.get, "/admin/api/sessions", { try await $0.sessions($1) }),
        (.get, "/admin/api/reports", { try await $0.reports($1) }),
        (.post, "/admin/api/reports/:id/ban", { try await $0.banReported($1) }),
        (.post, "/admin/api/reports/:id/dismiss", { try await $0.dismiss($1) }),
        (.post, "/admin/api/reports/:id/warn", { try await $0.warn($1) }),
        (.get, "/admin/api/reports/:id/sample", { try await $0.sample($1) }),
        (.get, "/admin/api/bans", { endpoint, _ in try await endpoint.bans() }),
        (.post, "/admin/api/bans", { try await $0.addBan($1) }),
        (.post, "/admin/api/bans/lift", { try await $0.liftBan($1) }),
        (.get, "/admin/api/audit", { endpoint, _ in .audit(try await endpoint.desk.audit()) }),
        (.get, "/admin/api/recordings", { endpoint, _ in try await endpoint.recordings() }),
        (.get, "/admin/api/nodes", { endpoint, _ in try await endpoint.nodes() }),
        (.post, "/admin/api/nodes/:node", { try await $0.changeNode($1) }),
    ]

    func run() async throws {
        let host = configuration.admin.host
        guard let port = configuration.admin.port else { return }
        var logger = logger
        logger[metadataKey: "serves"] = "operators"
        let (ready, onReady) = (self.logger, onReady)
        // As on the public port, so that connections of clients that do nothing do not keep operators out.
        let idleTimeout = configuration.limits.requestHeaderTimeout * 6
        let application = Application(
            router: router(),
            server: .http1(
                configuration: .init(
                    idleTimeout: TimeAmount(idleTimeout),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: Self.maxHeadSize, maxHeaderListSize: Self.maxHeadSize,
                        maxHeaderFieldCount: 100))),
            configuration: .init(
                address: .hostname(host, port: port),
                availableConnectionsDelegate: MaximumAvailableConnections(Self.maxConnections)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                let url = ServerURLs(host: host, port: port, isSecure: false).main + "/admin"
                ready.notice("The operator's page is ready", metadata: ["url": "\(url)"])
                onReady(port)
            },
            logger: logger
        )
        do {
            try await application.run()
        } catch {
            throw AdminPortError(configuration.admin, cause: error)
        }
    }

    // MARK: Routing

    private func router() -> Router<Routes.Context> {
        let router = Router(context: Routes.Context.self, options: .autoGenerateHeadEndpoints)
        let files = WebFiles(directory: configuration.webDirectory)
        let door = AdminDoorKeeper(token)
        // A middleware applies to the routes that are added after it.
        router.add(middleware: AdminHostCheck<Routes.Context>(configuration: configuration))
        for (method, path, handler) in Self.routes {
            router.on(RouterPath(path), method: method) { request, context in
                await respond(to: request, context, door, handler).routed()
            }
        }
        let watchers = AdminWatchers()
        let storage = desk.storage
        let moderation = SharedReading(every: Self.lookInterval) { try await storage.moderationMark() }
        router.get("/admin/api/changes") { request, context in
            await changes(request, context, door, watchers, moderation)
        }
        router.get("/") { _, _ in Response(status: .temporaryRedirect, headers: [.location: "admin"]) }
        router.get("/admin") { request, _ in
            // The router ignores a slash at the end of the path, but the page's references are relative to `/admin`.
            guard request.uri.path.hasSuffix("/") else { return files.adminResponse(to: "/admin") }
            return Response(status: .permanentRedirect, headers: [.location: "../admin"])
        }
        router.get("**") { request, _ in files.adminResponse(to: request.uri.path) }
        return router
    }

    private func respond(
        to request: Request, _ context: Routes.Context, _ door: AdminDoorKeeper, _ handler: Handler
    ) async -> GateResponse {
        let headers = HTTPHeaders(request.headers)
        let address = live.current.clientAddress(headers, from: context.channel.remoteAddress)
        do {
            switch door.check(headers.bearerToken, from: address, now: desk.clock.now) {
            case .admitted: break
            case .missing: throw AdminDoor.Refusal.missing
            case .wrong:
                logger.notice("Wrong token for the operator's page", metadata: ["address": "\(address)"])
                throw AdminDoor.Refusal.wrong
            case .blocked(let wait): throw AdminDoor.Refusal.blocked(for: wait)
            }
            var call = Call(request: request, context: context, body: JSONObject())
            if request.method == .post { call.body = try await body(of: request) }
            return try await handler(self, call)
        } catch let error as WireError {
            return GateResponse(error)
        } catch {
            logger.error("The operator's page could not use the storage", metadata: ["error": "\(error)"])
            return GateResponse(WireError.storageFailed)
        }
    }

    private func body(of request: Request) async throws -> JSONObject {
        let bytes: [UInt8]
        do {
            bytes = Array(try await request.body.collect(upTo: Self.maxBodySize).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw WireError.bodyTooLarge(limit: Self.maxBodySize)
        } catch {
            throw WireError(.malformed, "The request body is incomplete. Send the request again.")
        }
        if bytes.isEmpty { return JSONObject() }
        guard case .object(let object)? = try? JSONReader.parse(bytes) else {
            throw WireError(.malformed, "The request body must be a JSON object without duplicate members.")
        }
        return object
    }

    // MARK: Changes

    /// Responds with a stream of lines, each a JSON object whose member `changed` names the views to load again.
    ///
    /// It carries no data of its own, so that it needs to know nothing of what a page shows, and a line that is late or lost does no
    /// harm.
    private func changes(
        _ request: Request, _ context: Routes.Context, _ door: AdminDoorKeeper, _ watchers: AdminWatchers,
        _ moderation: SharedReading<ModerationMark>
    ) async -> Response {
        var response = await respond(to: request, context, door) { _, _ in
            GateResponse(status: 200, type: "application/x-ndjson")
        }
        guard response.status == 200 else { return response.routed() }
        guard let place = watchers.take() else { return GateResponse(.tooManyWatchers).routed() }
        // Without it, nginx would hold the lines back.
        response.headers.add(name: "X-Accel-Buffering", value: "no")
        if request.method == .head { return response.routed() }
        return response.routed(lines(place, context.channel, moderation))
    }

    private func lines(
        _ place: AdminWatchers.Place, _ channel: any Channel, _ moderation: SharedReading<ModerationMark>
    ) -> ResponseBody {
        ResponseBody { writer in
            // A page that reads nothing would otherwise keep its place.
            let limit = channel.eventLoop.scheduleTask(in: TimeAmount(Self.longestWatch * 2)) {
                channel.close(promise: nil)
            }
            defer { withExtendedLifetime(place) { limit.cancel() } }
            let start = desk.clock.now
            var known: AdminMarks?
            while desk.clock.now - start < Self.longestWatch, !Task.isShuttingDownGracefully {
                guard let marks = try await look(moderation) else { break }
                let views = marks.changes(since: known)
                known = marks
                if !views.isEmpty { try await writer.write(ByteBuffer(bytes: AdminMarks.line(views))) }
                try await Task.sleep(for: Self.lookInterval)
            }
            try await writer.finish(nil)
        }
    }

    /// Returns nil if the server is stopping.
    private func look(_ moderation: SharedReading<ModerationMark>) async throws -> AdminMarks? {
        let gateway = desk.gateway
        let found = try await gateway.eventLoop.submit { () -> AdminMarks? in
            guard !gateway.value.isDraining else { return nil }
            var marks = AdminMarks()
            marks.sessions = gateway.value.runner.hub.overviewMark
            marks.newestSwitch = gateway.value.adminMedia.newestSwitch
            marks.nodes = gateway.value.nodes.map { $0.list.nodes.map(AdminMarks.Node.init) }
            return marks
        }.get()
        guard var marks = found else { return nil }
        marks.sample = figures.newestSample
        marks.moderation = try await moderation.value(at: desk.clock.now)
        return marks
    }

    // MARK: The interface

    private func overview(_ call: Call) async throws -> GateResponse {
        let since = call.request.uri.queryParameters.get("since").flatMap { Int64($0) } ?? .min
        let gateway = desk.gateway
        let node = try await gateway.eventLoop.submit { gateway.value.nodes?.list.asked.nodeName }.get()
        return .overview(
            figures.history, since: Timestamp(milliseconds: since), now: desk.clock.wallNow,
            startedAt: figures.startedAt, certificateTrouble: figures.certificateTrouble, node: node)
    }

    private func sessions(_ call: Call) async throws -> GateResponse {
        let first = max(0, call.request.uri.queryParameters.get("from").flatMap { Int($0) } ?? 0)
        let gateway = desk.gateway
        let (overview, log) = try await gateway.eventLoop.submit {
            (
                gateway.value.runner.hub.sessionOverviews(
                    from: first, limit: Self.maxSessions, members: Self.maxMembers),
                gateway.value.adminMedia
            )
        }.get()
        return .sessions(overview, from: first, pageSize: Self.maxSessions, log)
    }

    private func reports(_ call: Call) async throws -> GateResponse {
        let all = call.request.uri.queryParameters.get("all") == "1"
        let banned = try await desk.bannedSubjects()
        return .reports(
            try await desk.reports(includingClosed: all), openCount: try await desk.storage.openReportCount(),
            banned: banned)
    }

    private func banReported(_ call: Call) async throws -> GateResponse {
        let bans = try await desk.ban(report: try reportID(call), try AdminDesk.BanRequest(call.body))
        return .bans(bans, count: bans.count)
    }

    private func dismiss(_ call: Call) async throws -> GateResponse {
        try await desk.dismiss(report: try reportID(call))
        return GateResponse(status: 204)
    }

    private func warn(_ call: Call) async throws -> GateResponse {
        let text = try AdminDesk.warning(call.body)
        return .warned(try await desk.warn(report: try reportID(call), text))
    }

    private func sample(_ call: Call) async throws -> GateResponse {
        let jpeg = try await desk.sample(report: try reportID(call))
        return GateResponse(status: 200, type: SampleEndpoint.type, body: jpeg)
    }

    private func reportID(_ call: Call) throws(WireError) -> Int64 {
        guard let id = call.context.parameters.get("id").flatMap({ Int64($0) }) else {
            throw WireError(.malformed, "The path must contain the report's number.")
        }
        return id
    }

    private func bans() async throws -> GateResponse {
        let (count, bans) = try await desk.bans()
        return .bans(bans, count: count)
    }

    private func addBan(_ call: Call) async throws -> GateResponse {
        let ban = try await desk.ban(subject: try subject(call), try AdminDesk.BanRequest(call.body))
        return .bans([ban], count: 1)
    }

    private func liftBan(_ call: Call) async throws -> GateResponse {
        try await desk.lift(try subject(call))
        return GateResponse(status: 204)
    }

    private func subject(_ call: Call) throws(WireError) -> BanSubject {
        guard case .string(let text)? = call.body["subject"], let subject = BanSubject(text: text) else {
            throw WireError(
                .malformed,
                "\"subject\" must be an identity (32 hexadecimal digits, as in reports), an IP address or a block of "
                    + "addresses.")
        }
        return subject
    }

    private func nodes() async throws -> GateResponse {
        let gateway = desk.gateway
        return try await gateway.eventLoop.submit { try gateway.value.nodeList() }.get().response
    }

    private func changeNode(_ call: Call) async throws -> GateResponse {
        let name = call.context.parameters.get("node") ?? ""
        return try await desk.change(node: name, try NodeRecord.State(requested: call.body))
    }

    private func recordings() async throws -> GateResponse {
        let gateway = desk.gateway
        let apiKey = try await gateway.eventLoop.submit { gateway.value.runner.hubSettings.project.apiKey }.get()
        return .recordings(
            try await desk.storage.archives(of: apiKey, session: nil, offset: 0, limit: Self.maxRecordings),
            try await desk.storage.broadcasts(of: apiKey, session: nil, offset: 0, limit: Self.maxRecordings))
    }
}

/// Refuses requests whose `Host` is a name that the owner of another page may have chosen.
///
/// Such a page can make its host name resolve to 127.0.0.1 (DNS rebinding), and then use the operator's page as its own. It does not
/// have the token, but it could send wrong ones.
private struct AdminHostCheck<Context: RequestContext>: RouterMiddleware {
    let configuration: ConfabConfiguration

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard configuration.allowsAdmin(host: request.head.authority) else {
            return GateResponse(
                status: 403,
                text:
                    "Use an IP address, localhost, or the name in admin.host or publicURL in the URL. A proxy must send "
                    + "one of them in the header Host.\n"
            ).routed()
        }
        return try await next(request, context)
    }
}

/// The door of the operator's page, shared by its requests.
private final class AdminDoorKeeper: Sendable {
    private let door: Mutex<AdminDoor>

    init(_ token: SecretText) { door = Mutex(AdminDoor(token)) }

    func check(_ claimed: String?, from address: IPAddress, now: Timestamp) -> AdminDoor.Verdict {
        door.withLock { $0.check(claimed, from: address, now: now) }
    }
}

extension AdminDoor {
    /// The errors for requests that are not admitted.
    fileprivate enum Refusal {
        static let missing = WireError(
            .tokenMalformed, "Send the token of the operator's page in a header: Authorization: Bearer <token>.")
        static let wrong = WireError(
            .tokenSignature,
            "Wrong token. Use the one in admin.token, or in the file admin-token in the data directory.")

        static func blocked(for wait: Duration) -> WireError {
            WireError(
                .rateLimited, "Too many wrong tokens came from this address. Try again in \(wait.roundedText).",
                retryable: true, retryAfter: wait)
        }
    }
}

extension WebFiles {
    /// Returns the operator's page or a file that it loads, or a 404 response.
    fileprivate func adminResponse(to path: String) -> Response {
        guard let file = adminFile(path) else {
            return GateResponse(status: 404, text: "Not found. The operator's page is at /admin.\n").routed()
        }
        var headers = Self.headers(of: file, framedBy: [])
        headers[.cacheControl] = "no-store"
        headers[HTTPField.Name("Permissions-Policy")!] = "camera=(), microphone=(), geolocation=()"
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: file.body))
    }
}

/// The port of the operator's page could not be opened.
struct AdminPortError: Error, CustomStringConvertible {
    let description: String

    init(_ configuration: ConfabConfiguration.Admin, cause: any Error) {
        let authority = URLAuthority(host: configuration.host, port: configuration.port ?? 0)
        description =
            "The port for the operator's page, \(authority), could not be opened: \(cause). Set admin.port to a free "
            + "port, or leave it empty to run without the page."
    }
}

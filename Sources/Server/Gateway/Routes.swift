import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Wire

/// The HTTP routes of the public port. Handlers run on the gateway's event loop.
struct Routes: Sendable {
    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    let lan: LocalNetwork?
    let readiness: ReadinessCheck

    /// A request context that also contains the connection's channel.
    struct Context: RequestContext {
        var coreContext: CoreRequestContextStorage
        let channel: any Channel

        init(source: ApplicationRequestContextSource) {
            (coreContext, channel) = (CoreRequestContextStorage(source: source), source.channel)
        }
    }

    /// The routes of all paths, for spans and for the log.
    static let templates = RouteTemplates(
        ["/", "/health", "/live", "/ready", WebSocketUpgrade.path, PersonExport.path, QRCodeDrawing.path]
            + RoomsEndpoint.routes.map(\.1) + ProjectsEndpoint.routes.map(\.1) + NodeEndpoint.routes.map(\.1)
            + NodesEndpoint.routes.map(\.1) + OpenTokEndpoint.routes.map(\.1)
            + [
                RoomFilesEndpoint.path, ArchiveDownload.path, ViewerEndpoint.path, ClientEventEndpoint.path,
                SampleEndpoint.path,
            ]
            + WebFiles.pages
            + [
                "/ca.crt", "/lan", "/whip/:session", "/whip/**", "/whep/:session", "/whep/**", "/socket.io/**",
                "/xirsys/**", "/app/**", "/lib/**", "/v2/js/**",
            ])

    func router() -> Router<Context> {
        let router = Router(context: Context.self, options: .autoGenerateHeadEndpoints)
        let files = WebFiles(directory: live.current.webDirectory, features: live.current.web.features)
        router.get("/health") { _, _ in health() }
        router.get("/live") { _, _ in GateResponse(status: 200, text: "live\n").routed() }
        router.get("/ready") { request, _ in try await ready(request) }
        router.get("/v1/socket") { _, _ in Self.upgradeRequired.routed() }
        add(to: router, .get, PersonExport.path, PersonExport.layers, PersonExport.get)
        add(
            to: router, .post, QRCodeDrawing.path, QRCodeDrawing.layers, maxBody: QRCodeDrawing.maxTextSize,
            QRCodeDrawing.post)
        add(
            to: router, .post, SampleEndpoint.path, SampleEndpoint.layers, maxBody: Limits.sample, SampleEndpoint.post)
        for (method, path, endpoint) in RoomsEndpoint.routes {
            add(to: router, method, path, RoomsEndpoint.layers, maxBody: RoomsEndpoint.maxBodySize, endpoint.respond)
        }
        for (method, path, endpoint) in ProjectsEndpoint.routes {
            add(
                to: router, method, path, ProjectsEndpoint.layers, maxBody: ProjectsEndpoint.maxBodySize,
                endpoint.respond)
        }
        for (method, path, endpoint) in NodeEndpoint.routes {
            add(to: router, method, path, NodeEndpoint.layers, maxBody: NodeEndpoint.maxBodySize, endpoint.respond)
        }
        for (method, path, endpoint) in NodesEndpoint.routes {
            add(to: router, method, path, NodeEndpoint.layers, maxBody: NodeEndpoint.maxBodySize, endpoint.respond)
        }
        for (method, path, endpoint) in OpenTokEndpoint.routes {
            add(
                to: router, method, path, endpoint.layers, maxBody: OpenTokEndpoint.maxBodySize, endpoint.respond)
        }
        for method in [HTTPRequest.Method.get, .post] {
            add(
                to: router, method, ClientEventEndpoint.path, ClientEventEndpoint.layers,
                maxBody: OpenTokEndpoint.maxBodySize, ClientEventEndpoint.respond)
        }
        for method in [HTTPRequest.Method.get, .put] {
            router.on(RouterPath(RoomFilesEndpoint.path), method: method) { await file($0, $1) }
        }
        router.get(RouterPath(ArchiveDownload.path)) { await archive($0, $1) }
        router.get(RouterPath(ViewerEndpoint.path)) { await broadcast($0, $1) }
        for (path, layers) in [
            (PersonExport.path, PersonExport.layers), (RoomFilesEndpoint.path, RoomFilesEndpoint.layers),
            (ClientEventEndpoint.path, ClientEventEndpoint.layers), (SampleEndpoint.path, SampleEndpoint.layers),
            (ViewerEndpoint.path, ViewerEndpoint.layers),
        ] {
            // Answer preflight requests, which browsers send before they send a secret to another origin.
            router.on(RouterPath(path), method: .options) { request, context in
                var response = GateResponse(status: 204)
                let request = gateRequest(request, context)
                layers.share(&response, with: request.headers, .OPTIONS, live.current)
                return response.routed()
            }
        }
        if let lan {
            router.get("/ca.crt") { _, _ in
                GateResponse(
                    status: 200, headers: ["Content-Disposition": "attachment; filename=\"confab-ca.crt\""],
                    type: "application/x-x509-ca-cert", body: lan.material.authorityPEM.utf8
                ).routed()
            }
            router.get("/lan") { request, _ in
                // The router ignores a slash at the end of the path. Redirect, because a browser would resolve the
                // page's relative references against the wrong directory.
                guard request.uri.path.hasSuffix("/") else { return files.page("app/lan/index.html") }
                return Response(status: .permanentRedirect, headers: [.location: "../lan"])
            }
        }
        let base = BasePath(live.current)
        if let location = base.redirection {
            router.get(RouterPath(base.text)) { request, _ in
                let query = request.uri.query.map { "?\($0)" } ?? ""
                return Response(status: .permanentRedirect, headers: [.location: location + query])
            }
        }
        // The router does not try `**` for a path below `/v2`, because it has routes there.
        for path in ["/", "/v2/js/**", "**"] as [RouterPath] {
            router.get(path) { request, _ in
                let origins = live.current.allowedOrigins
                guard files.readsDisk else { return files.response(to: request, framedBy: origins) }
                // A slow disk must not block the event loop.
                return await withTaskExecutorPreference(globalConcurrentExecutor) {
                    files.response(to: request, framedBy: origins)
                }
            }
        }
        return router
    }

    // MARK: Endpoints

    private func add(
        to router: Router<Context>, _ method: HTTPRequest.Method, _ path: String, _ layers: EndpointLayers,
        maxBody: Int = 0, _ handler: @escaping Gateway.Handler
    ) {
        router.on(RouterPath(path), method: method) { request, context in
            let response = await gateway.value.respond(to: gateRequest(request, context), layers) {
                gateway, call async throws(WireError) in
                var call = call
                if maxBody > 0 { call.body = try await Self.body(of: request, limit: maxBody) }
                return try await handler(gateway, call)
            }
            return (response ?? GateResponse(.internalError)).routed()
        }
    }

    private func file(_ request: Request, _ context: Context) async -> Response {
        let (gateway, channel) = (gateway.value, context.channel)
        var body: ResponseBody?
        let response = await gateway.respond(to: gateRequest(request, context), RoomFilesEndpoint.layers) {
            gateway, call async throws(WireError) in
            let files = try RoomFilesEndpoint(gateway, call, over: channel)
            do throws(WireError) {
                if request.method == .put {
                    let length = request.headers[.contentLength].map { Int($0) ?? 0 }
                    return try await files.put(request.body, length: length)
                }
                let response: GateResponse
                (response, body) = try await files.get()
                return response
            } catch {
                guard let redirect = RoomFilesEndpoint.redirect(error, from: request.uri.string) else { throw error }
                return redirect
            }
        }
        return (response ?? GateResponse(.internalError)).routed(body)
    }

    private func archive(_ request: Request, _ context: Context) async -> Response {
        let (gateway, channel) = (gateway.value, context.channel)
        var body: ResponseBody?
        let response = await gateway.respond(to: gateRequest(request, context), ArchiveDownload.layers) {
            gateway, call async throws(WireError) in
            let download = try await ArchiveDownload(gateway, call, onlySize: request.method == .head)
            let response: GateResponse
            (response, body) = try download.get(call.headers, from: call.address, over: channel)
            return response
        }
        return (response ?? GateResponse(.internalError)).routed(body)
    }

    private func broadcast(_ request: Request, _ context: Context) async -> Response {
        let (gateway, channel) = (gateway.value, context.channel)
        var body: ResponseBody?
        let response = await gateway.respond(to: gateRequest(request, context), ViewerEndpoint.layers) {
            gateway, call async throws(WireError) in
            let response: GateResponse
            (response, body) = try await ViewerEndpoint(gateway, call).get(call, over: channel)
            return response
        }
        return (response ?? GateResponse(.internalError)).routed(body)
    }

    private func gateRequest(_ request: Request, _ context: Context) -> GateRequest {
        let headers = HTTPHeaders(request.headers)
        return GateRequest(
            method: HTTPMethod(request.method), headers: headers,
            address: live.current.clientAddress(headers, from: context.channel.remoteAddress),
            path: context.parameters, query: request.uri.queryParameters,
            trace: headers.first(name: HTTPExchange.header).flatMap { TraceID($0) }.map { RequestTrace(id: $0) })
    }

    private static func body(of request: Request, limit: Int) async throws(WireError) -> [UInt8] {
        do {
            return Array(try await request.body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw .bodyTooLarge(limit: limit)
        } catch {
            throw WireError(.malformed, "The request body is incomplete. Send the request again.")
        }
    }

    // MARK: The server's state

    private func health() -> Response {
        let isDraining = gateway.value.isDraining
        let versions =
            #""version":"\#(ConfabServer.version)","openssl":"\#(MediaPlane.openSSLVersion)","#
            + #""srtp":"\#(MediaPlane.srtpImplementation)""#
        // `confab doctor` compares this time with that of its machine. The `Date` of a response would be that of the proxy.
        let time = gateway.value.runner.wallNow.milliseconds
        let json = #"{"status":"\#(isDraining ? "draining" : "ok")",\#(versions),"time":\#(time)}"#
        return GateResponse(status: isDraining ? 503 : 200, type: "application/json", body: (json + "\n").utf8).routed()
    }

    private func ready(_ request: Request) async throws -> Response {
        let keepsClients = request.uri.queryParameters.get("unready") == "404"
        return try await readiness.readiness().response(keepsClients: keepsClients).routed()
    }

    /// The response to a plain request or an unsupported upgrade at the WebSocket's path.
    private static var upgradeRequired: GateResponse {
        var response = GateResponse(
            status: 426,
            text: "Connect with a WebSocket (RFC 6455, version 13, subprotocol \(WebSocketUpgrade.subprotocol)).\n")
        response.headers.add(
            contentsOf: [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")])
        return response
    }
}

extension WebFiles {
    /// Returns the page with this file name, or a 404 response if there is none.
    func page(_ name: String) -> Response {
        guard let file = file("/" + name) else { return Response(status: .notFound) }
        var headers = Self.headers(of: file, framedBy: [])
        headers[HTTPField.Name("Permissions-Policy")!] = "camera=(), microphone=(), geolocation=()"
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: file.body))
    }
}

import HTTPTypes
import Hummingbird
import NIOCore
import Wire

/// The HTTP routes of the public port.
struct Routes: Sendable {
    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    let lan: LocalNetwork?
    let readiness: ReadinessCheck

    func router() -> Router<PersonExport.Context> {
        let router = Router(context: PersonExport.Context.self, options: .autoGenerateHeadEndpoints)
        let export = PersonExport(gateway: gateway, live: live)
        let files = WebFiles(directory: live.current.webDirectory, features: live.current.web.features)
        router.get("/health") { _, _ in try await health() }
        router.get("/ready") { _, _ in try await ready() }
        router.get("/v1/socket") { request, _ in upgradeRequired(request) }
        router.get(PersonExport.path) { request, context in try await export.get(request, context) }
        let drawing = QRCodeDrawing(gateway: gateway, live: live)
        router.post(QRCodeDrawing.path) { request, context in try await drawing.post(request, context) }
        RoomsEndpoint(gateway: gateway, live: live).addRoutes(to: router)
        RoomFilesEndpoint(gateway: gateway, live: live).addRoutes(to: router)
        router.on(PersonExport.path, method: .options) { request, _ in export.options(request) }
        if let lan {
            router.get("/ca.crt") { _, _ in
                Response(
                    status: .ok,
                    headers: [
                        .contentType: "application/x-x509-ca-cert",
                        .contentDisposition: "attachment; filename=\"confab-ca.crt\"",
                        .xContentTypeOptions: "nosniff",
                    ],
                    body: .init(byteBuffer: ByteBuffer(string: lan.material.authorityPEM))
                )
            }
            router.get("/lan") { request, _ in
                // The router ignores a slash at the end, and the page has relative references.
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
        router.get("/") { request, _ in files.response(to: request, framedBy: live.current.allowedOrigins) }
        router.get("**") { request, _ in files.response(to: request, framedBy: live.current.allowedOrigins) }
        return router
    }

    private func health() async throws -> Response {
        let gateway = gateway
        let isDraining = try await gateway.eventLoop.submit { gateway.value.isDraining }.get()
        let status = isDraining ? "draining" : "ok"
        let versions =
            #""version":"\#(ConfabServer.version)","openssl":"\#(MediaPlane.openSSLVersion)""#
        return answer(isDraining ? .serviceUnavailable : .ok, #"{"status":"\#(status)",\#(versions)}"#)
    }

    private func ready() async throws -> Response {
        let readiness = try await readiness.readiness()
        return answer(readiness.isReady ? .ok : .serviceUnavailable, readiness.json)
    }

    private func answer(_ status: HTTPResponse.Status, _ json: String) -> Response {
        Response(
            status: status,
            headers: [.contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff"],
            body: .init(byteBuffer: ByteBuffer(string: json + "\n")))
    }

    /// Answers a plain request or an unsupported upgrade at the WebSocket's path.
    private func upgradeRequired(_ request: Request) -> Response {
        Response(
            status: .upgradeRequired,
            headers: [
                .upgrade: "websocket", .connection: "Upgrade", .secWebSocketVersion: "13",
                .contentType: "text/plain; charset=utf-8", .xContentTypeOptions: "nosniff",
            ],
            body: .init(
                byteBuffer: ByteBuffer(
                    string:
                        "Connect with a WebSocket (RFC 6455, version 13, subprotocol \(WebSocketUpgrade.subprotocol)).\n"
                )
            )
        )
    }
}

extension WebFiles {
    /// Returns a page by its file name.
    func page(_ name: String) -> Response {
        guard let file = file("/" + name) else { return Response(status: .notFound) }
        var headers = Self.headers(of: file, framedBy: [])
        headers[HTTPField.Name("Permissions-Policy")!] = "camera=(), microphone=(), geolocation=()"
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: file.body))
    }
}

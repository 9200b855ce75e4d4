import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// `GET /v1/person`: everything held of whoever shows its secret, as a file to keep.
///
/// It owns who may ask, how often, and from which pages; what is held storage tells. Positions are not in it: they are
/// never stored.
struct PersonExport: Sendable {
    static let path: RouterPath = "/v1/person"

    /// Of a request, with the address that its line comes from.
    struct Context: RequestContext {
        var coreContext: CoreRequestContextStorage
        let peer: SocketAddress?

        init(source: ApplicationRequestContextSource) {
            coreContext = CoreRequestContextStorage(source: source)
            peer = source.channel.remoteAddress
        }

        /// The client's address, past the proxies that the configuration trusts.
        func address(_ headers: HTTPHeaders, _ configuration: ConfabConfiguration) -> IPAddress {
            let peer = peer?.ipAddress.flatMap { IPAddress($0) } ?? .unknown
            return ForwardedAddress.client(peer: peer, headers: headers, trusted: configuration.trustedProxies).address
        }
    }

    let gateway: NIOLoopBound<Gateway>
    let configuration: ConfabConfiguration

    func get(_ request: Request, _ context: Context) async throws -> Response {
        let headers = HTTPHeaders(request.headers)
        var answer: WHIPAnswer
        do throws(WireError) {
            guard configuration.allows(headers) else { throw .forbiddenOrigin }
            answer = WHIPAnswer(status: 200, contentType: "application/json", body: try await export(headers, context))
            answer.headers.add(name: "Content-Disposition", value: "attachment; filename=\"confab-person.json\"")
        } catch {
            answer = WHIPAnswer(error)
        }
        return response(answer, to: headers)
    }

    /// A browser asks before it sends the secret across origins (CORS).
    func options(_ request: Request, _ context: Context) -> Response {
        var answer = WHIPAnswer(status: 204)
        answer.headers.add(name: "Access-Control-Allow-Methods", value: "GET")
        answer.headers.add(name: "Access-Control-Allow-Headers", value: "Authorization")
        answer.headers.add(name: "Access-Control-Max-Age", value: "86400")
        return response(answer, to: HTTPHeaders(request.headers))
    }

    private func export(_ headers: HTTPHeaders, _ context: Context) async throws(WireError) -> [UInt8] {
        let door = try await door(headers, context)
        guard let token = headers.bearerToken else {
            throw WireError(.tokenMalformed, "Send your identity's secret: Authorization: Bearer <secret>.")
        }
        let project = door.reception.project
        let device = try door.reception.identity(token, now: door.now)
        let isSecret = (try? project.verifyIdentitySecret(token)) != nil
        do {
            let found = try await door.storage.visitor(device.id, isVouched: !isSecret, at: door.now)
            guard let visitor = found else {
                throw WireError(.tokenSignature, "This identity was deleted or its device unlinked; nothing is held.")
            }
            let held = try await door.storage.everything(of: visitor.identity, at: door.now)
            return held.json(of: visitor.identity, project, at: door.now)
        } catch let error as WireError {
            throw error
        } catch {
            context.logger.error("A person could not be exported", metadata: ["error": "\(error)"])
            throw WireError(.internalError, "The server has a problem; try again soon.", retryable: true)
        }
    }

    /// What the request is answered with, if its address may ask now.
    private func door(
        _ headers: HTTPHeaders, _ context: Context
    ) async throws(WireError) -> (reception: Reception, storage: any Storage, now: Timestamp) {
        let address = context.address(headers, configuration)
        let gateway = gateway
        do {
            let (reception, storage, now) = try await gateway.eventLoop.submit {
                let gateway = gateway.value
                try gateway.admit(address, at: .export)
                return (gateway.reception, gateway.storage, gateway.runner.now)
            }.get()
            return (reception, storage, now)
        } catch let error as WireError {
            throw error
        } catch {
            throw WireError(.internalError, "The server is stopping.", retryable: true)
        }
    }

    // MARK: Pages of other origins

    /// There is no ambient authority: the secret is all that counts.
    private func response(_ answer: WHIPAnswer, to request: HTTPHeaders) -> Response {
        var headers = answer.headers
        headers.add(name: "Cache-Control", value: "no-store")
        headers.add(name: "X-Content-Type-Options", value: "nosniff")
        if let type = answer.contentType { headers.add(name: "Content-Type", value: type) }
        if configuration.allowedOrigins.isEmpty {
            headers.add(name: "Access-Control-Allow-Origin", value: "*")
        } else {
            headers.add(name: "Vary", value: "Origin")
            if let origin = request.onlyOrigin, configuration.allows(request) {
                headers.add(name: "Access-Control-Allow-Origin", value: origin)
            }
        }
        return Response(
            status: HTTPResponse.Status(code: answer.status), headers: HTTPFields(headers, splitCookie: false),
            body: .init(byteBuffer: ByteBuffer(bytes: answer.body))
        )
    }
}

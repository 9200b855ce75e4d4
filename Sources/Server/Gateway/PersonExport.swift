import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// `GET /v1/person`: lets the owner of an identity secret or user token download all data stored about them, as JSON.
///
/// It enforces authorization, rate limits and allowed origins. The data comes from storage. It contains no locations,
/// because they are never stored.
struct PersonExport: Sendable {
    static let path: RouterPath = "/v1/person"

    /// A request context with the connection and its remote address.
    struct Context: RequestContext {
        var coreContext: CoreRequestContextStorage
        let channel: any Channel
        let peer: SocketAddress?

        init(source: ApplicationRequestContextSource) {
            coreContext = CoreRequestContextStorage(source: source)
            channel = source.channel
            peer = channel.remoteAddress
        }
    }

    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    private var configuration: ConfabConfiguration { live.current }

    func get(_ request: Request, _ context: Context) async throws -> Response {
        let headers = HTTPHeaders(request.headers)
        var answer: EndpointResponse
        do throws(WireError) {
            guard configuration.allows(headers) else { throw .forbiddenOrigin }
            answer = EndpointResponse(
                status: 200, contentType: "application/json", body: try await export(headers, context))
            answer.headers.add(name: "Content-Disposition", value: "attachment; filename=\"confab-person.json\"")
        } catch {
            answer = EndpointResponse(error)
        }
        return answer.response(to: request, configuration)
    }

    func options(_ request: Request) -> Response {
        EndpointResponse.preflight(methods: "GET", headers: "Authorization").response(to: request, configuration)
    }

    private func export(_ headers: HTTPHeaders, _ context: Context) async throws(WireError) -> [UInt8] {
        let address = configuration.clientAddress(headers, from: context.peer)
        let access = try await gateway.admit(address, at: .export) {
            (reception: $0.reception, storage: $0.storage, now: $0.runner.wallNow)
        }
        guard let token = headers.bearerToken else {
            throw WireError(
                .tokenMalformed,
                "Send your identity secret or user token in a header: Authorization: Bearer <secret or token>.")
        }
        let project = access.reception.project
        let device = try access.reception.identity(token, now: access.now)
        let isSecret = (try? project.verifyIdentitySecret(token)) != nil
        do {
            let found = try await access.storage.visitor(device.id, isVouched: !isSecret, at: access.now)
            guard let visitor = found else {
                throw WireError(
                    .tokenSignature,
                    "This identity was deleted, or its device was unlinked. There is no data to export.")
            }
            let held = try await access.storage.everything(of: visitor.identity, at: access.now)
            return held.json(of: visitor.identity, project, at: access.now)
        } catch let error as WireError {
            throw error
        } catch {
            context.logger.error("Could not export a person's data", metadata: ["error": "\(error)"])
            throw WireError.internalError
        }
    }
}

import Logging
import NIOHTTP1
import Signaling
import Wire

/// `GET /v1/person`: lets the owner of an identity secret or user token download all data stored about them, as JSON.
///
/// The data comes from storage. It contains no locations, because they are never stored.
enum PersonExport {
    static let path = "/v1/person"
    static let layers = EndpointLayers(point: .export, sharing: .init(methods: "GET", headers: "Authorization"))

    static func get(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        guard let token = request.headers.bearerToken else {
            throw WireError(
                .tokenMalformed,
                "Send your identity secret or user token in a header: Authorization: Bearer <secret or token>.")
        }
        let (storage, now, project) = (gateway.storage, gateway.runner.wallNow, gateway.reception.project)
        let device = try gateway.reception.identity(token, now: now)
        let isSecret = (try? project.verifyIdentitySecret(token)) != nil
        do {
            let body = try await withTaskExecutorPreference(globalConcurrentExecutor) {
                let found = try await storage.visitor(device.id, isVouched: !isSecret, at: now)
                guard let visitor = found else {
                    throw WireError(
                        .tokenSignature,
                        "This identity was deleted, or its device was unlinked. There is no data to export.")
                }
                return try await storage.everything(of: visitor.identity, at: now)
                    .json(of: visitor.identity, project, at: now)
            }
            return GateResponse(
                status: 200, headers: ["Content-Disposition": "attachment; filename=\"confab-person.json\""],
                type: "application/json", body: body)
        } catch let error as WireError {
            throw error
        } catch {
            gateway.logger.error("Could not export a person's data", metadata: ["error": "\(error)"])
            throw WireError.internalError
        }
    }
}

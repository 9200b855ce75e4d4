import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// `PUT` and `GET /v1/rooms/{name}/files/{id}`: the files in the chat of a room (`protocol/rooms.md`).
///
/// The room decides by the bearer token what a client may do. Files are never displayed under this origin: a browser
/// can only save them.
struct RoomFilesEndpoint: Sendable {
    private static let path: RouterPath = "/v1/rooms/:name/files/:file"

    /// The target of a request, with the parts of the gateway that it needs.
    private struct Target: Sendable {
        var name: RoomName
        var id: RoomFileID
        var key: RoomFileKey
        var address: IPAddress
        var store: RoomFileStore
    }

    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    private var configuration: ConfabConfiguration { live.current }

    func addRoutes(to router: Router<PersonExport.Context>) {
        router.put(Self.path) { request, context in await put(request, context) }
        router.get(Self.path) { request, context in await get(request, context) }
        router.on(Self.path, method: .options) { request, _ in
            EndpointResponse.preflight(methods: "GET, PUT", headers: "Authorization, Content-Type")
                .response(to: request, configuration)
        }
    }

    private func put(_ request: Request, _ context: PersonExport.Context) async -> Response {
        do throws(WireError) {
            try await upload(request, context)
            return EndpointResponse(status: 204).response(to: request, configuration)
        } catch {
            return EndpointResponse(error).response(to: request, configuration)
        }
    }

    private func get(_ request: Request, _ context: PersonExport.Context) async -> Response {
        do throws(WireError) {
            let target = try await target(of: request, context)
            let file = try await ask(.download(target.key), target)
            let transfer = try await beginTransfer(of: file.size, target, context)
            var answer = EndpointResponse(status: 200, contentType: "application/octet-stream")
            answer.headers.add(name: "Content-Disposition", value: Self.disposition(file.name))
            answer.headers.add(name: "Content-Security-Policy", value: "sandbox; default-src 'none'")
            let body = ResponseBody(contentLength: file.size) { writer in
                defer { withExtendedLifetime(transfer) {} }
                try await target.store.read(target.id, size: file.size) { part in
                    // Ask again for each part: a download by a slow client takes long, and the client may have been
                    // removed from the room in the meantime.
                    _ = try await ask(.download(target.key), target)
                    try await writer.write(part)
                }
                try await writer.finish(nil)
            }
            return answer.response(to: request, configuration, body: body)
        } catch {
            return EndpointResponse(error).response(to: request, configuration)
        }
    }

    // MARK: Uploads

    private func upload(_ request: Request, _ context: PersonExport.Context) async throws(WireError) {
        let target = try await target(of: request, context)
        let announced = request.headers[.contentLength].map { Int($0) ?? 0 }
        // Take a place for the transfer before the upload begins, so that a refused upload can be retried.
        let size = min(max(0, announced ?? .max), configuration.rules.roomFileSize)
        let transfer = try await beginTransfer(of: size, target, context)
        defer { withExtendedLifetime(transfer) {} }
        // Measure the disk, because the rules must use the current free space, not the space when the upload was
        // permitted.
        await gateway.measureDisk()
        let file = try await ask(.begin(target.key), target)
        do throws(WireError) {
            if let announced, announced != file.size { throw .otherSize }
            context.channel.triggerUserOutboundEvent(HTTPGate.RouterEvent.bodyWanted, promise: nil)
            try await target.store.receive(request.body, as: target.id, size: file.size) {
                _ = try await ask(.check(target.key), target)
            }
        } catch {
            _ = try? await gateway.ask(.file(target.name, target.id, .end(target.key, isComplete: false)))
            // Delete the file here: if the room ended, it deleted its files, perhaps before this one was created.
            target.store.delete(target.id)
            throw error
        }
        do throws(WireError) {
            _ = try await ask(.end(target.key, isComplete: true), target)
        } catch {
            // Delete the file here for the same reason as above.
            target.store.delete(target.id)
            throw error
        }
    }

    private func beginTransfer(
        of size: Int, _ target: Target, _ context: PersonExport.Context
    ) async throws(WireError) -> TransferHold {
        let channel = context.channel
        return try await gateway.call { gateway throws(WireError) in
            try gateway.beginTransfer(from: target.address, size: size, over: channel)
        }
    }

    private func ask(_ action: RoomFileAction, _ target: Target) async throws(WireError) -> RoomFileInfo {
        guard case .file(let facts) = try await gateway.ask(.file(target.name, target.id, action)) else {
            throw .noFile
        }
        return facts
    }

    private func target(of request: Request, _ context: PersonExport.Context) async throws(WireError) -> Target {
        let headers = HTTPHeaders(request.headers)
        guard configuration.allows(headers) else { throw .forbiddenOrigin }
        let address = configuration.clientAddress(headers, from: context.peer)
        let store = try await gateway.admit(address, at: .file) { $0.runner.roomFiles }
        let name = context.parameters.get("name").flatMap { RoomName(pathComponent: $0) }
        let id = context.parameters.get("file").flatMap { RoomFileID($0) }
        let key = headers.bearerToken.flatMap { RoomFileKey($0) }
        // Give the same answer for every error, so that it does not reveal which files and rooms exist.
        guard let store, let name, let id, let key else { throw .noFile }
        return Target(name: name, id: id, key: key, address: address, store: store)
    }

    // MARK: Names

    private static let plain = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")

    /// Returns the header value (RFC 6266). Everything except plain letters is encoded, so that a name cannot end the
    /// header or its value.
    private static func disposition(_ name: String) -> String {
        let encoded = name.addingPercentEncoding(withAllowedCharacters: plain) ?? "download"
        return "attachment; filename=\"download\"; filename*=UTF-8''\(encoded)"
    }
}

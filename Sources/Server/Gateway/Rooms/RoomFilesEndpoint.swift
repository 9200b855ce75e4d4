import Foundation
import Hummingbird
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// `PUT` and `GET /v1/rooms/{name}/files/{id}`: the files in the chat of a room (`protocol/rooms.md`).
///
/// The room decides by the bearer token what a client may do. Files are never displayed under this origin: a browser
/// can only save them.
struct RoomFilesEndpoint {
    static let path = "/v1/rooms/:name/files/:file"
    static let layers = EndpointLayers(
        point: .file, sharing: .init(methods: "GET, PUT", headers: "Authorization, Content-Type"))

    private let gateway: Gateway
    private let address: IPAddress
    private let channel: any Channel
    private let store: RoomFileStore
    private let name: RoomName
    private let id: RoomFileID
    private let key: RoomFileKey

    init(_ gateway: Gateway, _ request: GateRequest, over channel: any Channel) throws(WireError) {
        // Give the same answer for every error, so that it does not reveal which files and rooms exist.
        guard let store = gateway.runner.roomFiles,
            let name = request.path.get("name").flatMap({ RoomName(pathComponent: $0) }),
            let id = request.path.get("file").flatMap({ RoomFileID($0) }),
            let key = request.headers.bearerToken.flatMap({ RoomFileKey($0) })
        else { throw .noFile }
        (self.gateway, address, self.channel) = (gateway, request.address, channel)
        (self.store, self.name, self.id, self.key) = (store, name, id, key)
    }

    /// Returns the redirect to the node of a cluster that has the room, and with it the files; nil for other errors.
    ///
    /// The URL is relative, because a proxy may serve this server below a path, and of this origin, because browsers send the
    /// `Authorization` header to no other one. The load balancer passes the request on by `at`. If the request already names that
    /// node, the load balancer does not do so, and a redirect would be followed without end.
    ///
    /// - Parameter uri: the URL of the request.
    static func redirect(_ error: WireError, from uri: String) -> GateResponse? {
        guard error.code == .elsewhere, let node = error.at, NodeQuery.name(in: uri) != node else { return nil }
        return GateResponse(status: 307, headers: ["Location": NodeQuery.reference(to: node, from: uri)])
    }

    /// Handles a download. Returns the response and its body, which streams the file from the store.
    func get() async throws(WireError) -> (GateResponse, ResponseBody?) {
        let file = try await ask(.download(key))
        let transfer = try beginTransfer(of: file.size)
        let response = GateResponse(
            status: 200,
            headers: [
                "Content-Disposition": Self.disposition(file.name),
                "Content-Security-Policy": "sandbox; default-src 'none'",
            ], type: "application/octet-stream")
        let endpoint = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let body = ResponseBody(contentLength: file.size) { writer in
            defer { withExtendedLifetime(transfer) {} }
            let endpoint = endpoint.value
            try await endpoint.store.read(endpoint.id, size: file.size) { part in
                // Ask the room again before each part: a slow client may have been removed from the room since the
                // download began.
                _ = try await endpoint.ask(.download(endpoint.key))
                try await writer.write(part)
            }
            try await writer.finish(nil)
        }
        return (response, body)
    }

    func put(_ body: RequestBody, length: Int?) async throws(WireError) -> GateResponse {
        // Take a place for the transfer before the upload begins, so that a refused upload can be retried.
        let transfer = try beginTransfer(of: min(max(0, length ?? .max), gateway.configuration.rules.roomFileSize))
        defer { withExtendedLifetime(transfer) {} }
        // Measure the disk, because the rules must use the current free space, not the space when the upload was
        // permitted.
        _ = try? await gateway.diskMeter?.measure(for: gateway).get()
        let file = try await ask(.begin(key))
        do throws(WireError) {
            if let length, length != file.size { throw .otherSize }
            channel.triggerUserOutboundEvent(HTTPGate.RouterEvent.bodyWanted, promise: nil)
            try await store.receive(body, as: id, size: file.size) { _ = try await ask(.check(key)) }
        } catch {
            _ = try? await gateway.runner.ask(.file(name, id, .end(key, isComplete: false)))
            // Delete the file here: if the room ended, it deleted its files, perhaps before this one was created.
            store.delete(id)
            throw error
        }
        do throws(WireError) {
            _ = try await ask(.end(key, isComplete: true))
        } catch {
            // Delete the file here for the same reason as above.
            store.delete(id)
            throw error
        }
        return GateResponse(status: 204)
    }

    private func beginTransfer(of size: Int) throws(WireError) -> TransferHold {
        try gateway.beginTransfer(from: address, size: size, over: channel)
    }

    private func ask(_ action: RoomFileAction) async throws(WireError) -> RoomFileInfo {
        guard case .file(let file) = try await gateway.runner.ask(.file(name, id, action)) else { throw .noFile }
        return file
    }

    // MARK: Names

    private static let plain = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")

    /// Returns the value of `Content-Disposition` (RFC 6266). Everything except ASCII letters, digits and `-._~` is
    /// encoded, so that a name cannot end the header or its value.
    private static func disposition(_ name: String) -> String {
        let encoded = name.addingPercentEncoding(withAllowedCharacters: plain) ?? "download"
        return "attachment; filename=\"download\"; filename*=UTF-8''\(encoded)"
    }
}

import Broadcasting
import Foundation
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOPosix
import Signaling
import Wire

/// `GET` and `HEAD /broadcasts/{id}/{key}/{file}`: the playlists, segments and parts of a broadcast (HLS).
///
/// Everyone who has the URL may watch, and every page may play it. The same answer is given for a wrong id and a wrong key.
struct ViewerEndpoint {
    static let path = "/broadcasts/:id/:key/:file"
    static let layers = EndpointLayers(
        point: .viewing, sharing: .init(readers: .everyone, methods: "GET", headers: "*"))
    /// When to request a playlist again that is not there yet.
    private static let retry = Duration.seconds(2)
    /// How long a playlist that a request has named by its position can be cached.
    private static let maxAge = 6
    /// How much of a file is in memory while it is sent.
    private static let chunkSize = 256 << 10

    private let gateway: Gateway
    private let origin: HLSOrigin

    init(_ gateway: Gateway, _ request: GateRequest) throws(WireError) {
        guard let id = request.path.get("id").flatMap({ BroadcastID($0) }),
            let key = request.path.get("key").flatMap({ BroadcastKey($0) }),
            let origin = gateway.runner.broadcaster?.origin(of: id, key: key)
        else { throw .noBroadcastFile }
        (self.gateway, self.origin) = (gateway, origin)
    }

    /// Returns the response and its body. Waits until the file or the playlist exists if HLS says so.
    func get(
        _ request: GateRequest, over channel: any Channel
    ) async throws(WireError) -> (GateResponse, ResponseBody?) {
        guard let name = request.path.get("file") else { throw .noBroadcastFile }
        let query = request.query
        switch await origin.respond(to: name, query: { query.get($0) }) {
        case .playlist(let text, let isFinal):
            var response = GateResponse(status: 200, type: "application/vnd.apple.mpegurl", body: text.utf8)
            response.headers.replaceOrAdd(name: "Cache-Control", value: isFinal ? "max-age=\(Self.maxAge)" : "no-cache")
            return (response, nil)
        case .media(let pieces):
            let transfer = try gateway.beginTransfer(
                from: request.address, size: pieces.reduce(0) { $0 + $1.count }, over: channel)
            return (Self.media, Self.body(pieces, transfer))
        case .file(let path):
            let size = try await Self.size(path)
            let transfer = try gateway.beginTransfer(from: request.address, size: size, over: channel)
            return (Self.media, Self.body(path, size, transfer))
        case .notReady:
            throw WireError(
                .notFound, "This broadcast has just started. Try again in \(Self.retry.roundedText).", retryable: true,
                retryAfter: Self.retry)
        case .refused(.badRequest):
            throw WireError(
                .malformed, "_HLS_msn and _HLS_part must be numbers, and at most two segments ahead of the playlist.")
        case .refused(.notFound): throw .noBroadcastFile
        case .refused(.unavailable):
            throw WireError(
                .mediaUnavailable, "The requested segment or part was not ready in time. Load the playlist again.",
                retryable: true, retryAfter: .seconds(1))
        }
    }

    /// A file never changes, so every cache may keep it.
    private static var media: GateResponse {
        var response = GateResponse(status: 200, type: "video/mp4")
        response.headers.replaceOrAdd(name: "Cache-Control", value: "public, max-age=31536000, immutable")
        return response
    }

    private static func body(_ pieces: [[UInt8]], _ transfer: TransferHold) -> ResponseBody {
        ResponseBody(contentLength: pieces.reduce(0) { $0 + $1.count }) { writer in
            defer { withExtendedLifetime(transfer) {} }
            for piece in pieces { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(nil)
        }
    }

    /// Reads the file in chunks while it is sent, because a segment has up to a few megabytes, and many viewers may load it at once. If
    /// it is removed meanwhile, the connection closes.
    private static func body(_ path: String, _ size: Int, _ transfer: TransferHold) -> ResponseBody {
        ResponseBody(contentLength: size) { writer in
            defer { withExtendedLifetime(transfer) {} }
            var offset = 0
            while offset < size {
                let part = try await read(path, at: offset, min(chunkSize, size - offset))
                offset += part.readableBytes
                try await writer.write(part)
            }
            try await writer.finish(nil)
        }
    }

    /// Returns the size of a segment, which may be removed at any time.
    private static func size(_ path: String) async throws(WireError) -> Int {
        let size = try? await NIOThreadPool.singleton.runIfActive {
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        }
        guard let size = size ?? nil else { throw .noBroadcastFile }
        return size
    }

    /// - Returns: at least one byte.
    private static func read(_ path: String, at offset: Int, _ count: Int) async throws -> ByteBuffer {
        try await NIOThreadPool.singleton.runIfActive {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            try file.seek(toOffset: UInt64(offset))
            guard let part = try file.read(upToCount: count), !part.isEmpty else { throw WireError.noBroadcastFile }
            return ByteBuffer(bytes: part)
        }
    }
}

extension WireError {
    fileprivate static let noBroadcastFile = WireError(
        .notFound, "There is no such broadcast or file, or the broadcast has ended. Get its URL from the application.")
}

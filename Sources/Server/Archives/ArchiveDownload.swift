import Foundation
import Hummingbird
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// `GET` and `HEAD /archives/{id}/{file}`: the file of a composed archive, or the ZIP file of an individual one.
///
/// The URL has a signature, which only this server can make, and expires. The same answer is given for every error, so that it
/// does not reveal which archives exist.
struct ArchiveDownload {
    static let path = "/archives/:id/:file"
    static let layers = EndpointLayers(point: .file)
    /// The names of the two kinds of files in URLs.
    static let (composedName, zipName) = ("archive.mp4", "archive.zip")

    private let gateway: Gateway
    private let archive: ArchiveRecord
    private let content: ArchiveContent

    /// Finds the archive of a request, and checks the request's signature.
    ///
    /// - Parameter onlySize: whether the checksums in the ZIP file may be missing, because its content is not sent.
    init(_ gateway: Gateway, _ request: GateRequest, onlySize: Bool) async throws(WireError) {
        guard let files = gateway.archiveFiles, let id = request.path.get("id").flatMap({ ArchiveID($0) }),
            let name = request.path.get("file"),
            let expires = request.query.get("expires").flatMap({ Int64($0) }),
            let signature = request.query.get("signature"),
            let archive = try? await gateway.storage.archive(id),
            let project = gateway.runner.hubSettings.projects[archive.project],
            project.isSigned(id, file: name, expires: expires, signature, now: gateway.runner.wallNow),
            archive.status == .available, name == archive.downloadName
        else { throw .noArchiveFile }
        try gateway.requireHere(archive)
        (self.gateway, self.archive) = (gateway, archive)
        do {
            content = try await ArchiveContent(archive, files, onlySize: onlySize)
        } catch {
            throw .noArchiveFile
        }
    }

    /// Returns the response and its body.
    ///
    /// - Parameter address: the client's, for the limits of transfers.
    func get(
        _ headers: HTTPHeaders, from address: IPAddress, over channel: any Channel
    ) throws(WireError) -> (GateResponse, ResponseBody?) {
        let tag = "\"\(archive.id)-\(content.size)\""
        var response = GateResponse(
            status: 200,
            headers: [
                "Accept-Ranges": "bytes", "ETag": tag,
                "Content-Disposition": "attachment; filename=\"\(archive.id).\(archive.isZIP ? "zip" : "mp4")\"",
                "Content-Security-Policy": "sandbox; default-src 'none'",
            ], type: archive.isZIP ? "application/zip" : "video/mp4")
        response.headers.replaceOrAdd(name: "Cache-Control", value: "private, no-store")
        let range: Range<UInt64>
        switch ByteRange.requested(headers, tag: tag, size: content.size) {
        case .whole: range = 0..<content.size
        case .part(let part):
            response.status = 206
            response.headers.add(
                name: "Content-Range", value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(content.size)")
            range = part
        case .unsatisfiable:
            return (GateResponse(status: 416, headers: ["Content-Range": "bytes */\(content.size)"]), nil)
        }
        let transfer = try gateway.beginTransfer(from: address, size: Int(clamping: range.count), over: channel)
        let content = content
        let body = ResponseBody(contentLength: range.count) { writer in
            defer { withExtendedLifetime(transfer) {} }
            try await content.read(range) { try await writer.write($0) }
            try await writer.finish(nil)
        }
        return (response, body)
    }
}

/// The range of bytes that a request asks for (RFC 9110 §14).
enum ByteRange: Equatable {
    case whole
    case part(Range<UInt64>)
    case unsatisfiable

    /// Reads `Range`. Several ranges, other units and malformed ones count as none (§14.2).
    ///
    /// - Parameters:
    ///   - tag: the entity tag of what is requested. If `If-Range` has another one, the range does not count.
    ///   - size: the size of the whole in bytes.
    static func requested(_ headers: HTTPHeaders, tag: String, size: UInt64) -> ByteRange {
        guard let text = headers.only("Range"), text.hasPrefix("bytes="), !text.contains(",") else { return .whole }
        if let condition = headers.first(name: "If-Range"), condition != tag { return .whole }
        let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } }) else { return .whole }
        switch (UInt64(ends[0]), UInt64(ends[1])) {
        case (let first?, let last?) where first <= last && first < size: return .part(first..<min(size - 1, last) + 1)
        case (let first?, nil) where ends[1].isEmpty && first < size: return .part(first..<size)
        case (nil, let count?) where ends[0].isEmpty && count > 0 && size > 0:
            return .part((size - min(size, count))..<size)
        case (let first?, let last?) where first > last: return .whole
        case (nil, nil) where ends[0].isEmpty && ends[1].isEmpty: return .whole
        default: return .unsatisfiable
        }
    }
}

extension ArchiveRecord {
    var isZIP: Bool { composed == nil }
    /// The name of the file in the URL of a download.
    var downloadName: String { isZIP ? ArchiveDownload.zipName : ArchiveDownload.composedName }
}

extension Gateway {
    /// Returns the URL at which an archive can be downloaded for a while; nil if it cannot. It is absolute only if `publicURL`
    /// is set: otherwise the server does not know under which name clients reach it.
    func downloadURL(of archive: ArchiveRecord, _ project: Project) -> String? {
        if archive.status == .uploaded, let bucket = archiveBucket {
            return bucket.downloadURL(
                bucket.key(of: archive), at: runner.wallNow, lifetime: configuration.archives.downloadLifetime)
        }
        guard archive.status == .available else { return nil }
        let name = archive.downloadName
        let expires = (runner.wallNow + configuration.archives.downloadLifetime).milliseconds / 1000
        let signature = project.signature(of: archive.id, file: name, expires: expires)
        let node = archive.node.isEmpty ? "" : "&at=\(archive.node)"
        let base = "\(configuration.publicURL ?? "")/archives/\(archive.id)"
        return "\(base)/\(name)?expires=\(expires)&signature=\(signature)\(node)"
    }
}

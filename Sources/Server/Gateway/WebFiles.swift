import Crypto
import HTTPTypes
import Hummingbird
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The files of the web app: compiled into the executable, or read from a directory during development.
struct WebFiles: Sendable {
    /// A file with the values of its headers `Content-Type` and `ETag`.
    struct File: Sendable {
        var body: ByteBuffer
        var type: String
        var tag: String
    }

    private let files: [String: File]
    private let directory: String?
    private let features: [Feature]

    /// - Parameters:
    ///   - directory: The `web` directory of a checkout. If nil, serves the embedded files.
    ///   - features: The features whose pages are served. At least one.
    init(directory: String? = nil, features: [Feature] = Feature.allCases) {
        self.directory = directory
        self.features = features
        files = Dictionary(
            uniqueKeysWithValues: embeddedWebFiles.keys.compactMap { name in
                Self.file(name, features) { name in
                    embeddedWebFiles[name].map {
                        Array(UnsafeBufferPointer(start: $0.utf8Start, count: $0.utf8CodeUnitCount))
                    }
                }.map { (name, $0) }
            }
        )
    }

    /// Whether files are read from the disk for each request, and not from the executable.
    var readsDisk: Bool { directory != nil }

    func file(_ path: String) -> File? { Self.name(of: path, features).flatMap(read) }

    private func read(_ name: String) -> File? {
        // Serve only names of embedded files, so that no path from a request reaches the file system.
        guard let directory, files[name] != nil else { return files[name] }
        return Self.file(name, features) { name in
            FileManager.default.contents(atPath: directory + "/" + name).map { Array($0) }
        }
    }

    private static let folders = ["app", "lib", "socket.io", "v2"]

    /// The paths of the SDKs, which pages of other origins load.
    private static let sharedFolders = ["/lib/", "/v2/js/"]

    /// Returns the name of the file at a path; nil if there is none, or if it is the page of a feature that is off.
    static func name(of path: String, _ features: [Feature]) -> String? {
        guard let name = name(of: path) else { return nil }
        if name == frontPage, features.count == 1 { return features[0].page }
        return isOn(name, features) ? name : nil
    }

    private static let frontPage = "app/front/index.html"
    private static let roomPage = "app/room/index.html"

    private static func isOn(_ name: String, _ features: [Feature]) -> Bool {
        if name == roomPage { return features.contains(.rooms) }
        guard let feature = Feature.allCases.first(where: { $0.page == name }) else { return true }
        return features.contains(feature)
    }

    /// The routes of the pages.
    static let pages = ["/strangers", "/nearby", "/rooms", "/room/:name", "/try", "/check", "/sw.js"]

    private static func name(of path: String) -> String? {
        switch path {
        case "/": "app/front/index.html"
        case "/strangers": "app/strangers/index.html"
        case "/nearby": "app/nearby/index.html"
        case "/rooms": "app/rooms/index.html"
        case "/try": "app/try/index.html"
        case "/check": "app/check/index.html"
        // A service worker controls only URLs below its own path, so it must be at the root.
        case "/sw.js": "app/sw.js"
        case "/favicon.ico", "/favicon.svg": "app/favicon.svg"
        default: isRoom(path) ? roomPage : folderFile(path)
        }
    }

    /// Whether the path is that of a room: `/room/` and one segment. The page decodes the name.
    private static func isRoom(_ path: String) -> Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[1] == "room" && !parts[2].isEmpty
    }

    /// Returns the address of a page if the path is that address with an additional slash, as people and programs
    /// write it; otherwise nil.
    ///
    /// The result is relative, because a proxy may serve this server below another path.
    static func redirection(path: String, query: String?, _ features: [Feature]) -> String? {
        guard path.hasSuffix("/") else { return nil }
        let address = String(path.dropLast())
        guard folderFile(address) == nil, name(of: address, features)?.hasSuffix(".html") == true,
            let segment = address.split(separator: "/").last
        else { return nil }
        return "../\(segment)" + (query.map { "?\($0)" } ?? "")
    }

    /// Returns the address of the page whose file has this path; nil if it is not the file of a page. Requests for the
    /// file are redirected to this address, because the page's relative references are right only there.
    static func address(ofPageFile path: String) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1] == "app", parts[3] == "index.html" else { return nil }
        return switch parts[2] {
        case "front": "../../"
        case "room", "rooms": "../../rooms"
        case "strangers", "nearby", "try", "check", "lan": "../../\(parts[2])"
        default: nil
        }
    }

    private static func folderFile(_ path: String) -> String? {
        guard !path.hasPrefix("/\(adminFolder)") else { return nil }
        return folders.contains { path.hasPrefix("/\($0)/") } ? String(path.dropFirst()) : nil
    }

    /// The files of the operator's page, which the public port does not serve.
    private static let adminFolder = "app/admin/"

    /// Returns a file that the port of the operator's page serves: the page and what it loads; nil for any other path.
    func adminFile(_ path: String) -> File? {
        switch path {
        case "/admin": read(Self.adminFolder + "index.html")
        case "/favicon.ico": read("app/favicon.svg")
        case _ where path.hasPrefix("/\(Self.adminFolder)") && !path.hasSuffix(".html"), "/app/favicon.svg",
            _ where path.hasPrefix("/app/shared/"):
            read(String(path.dropFirst()))
        default: nil
        }
    }

    /// Returns a page as it is served. A line such as `<!-- include "../app/shared/head.html" -->` is replaced with
    /// the named file, in whose references `app/` gets the same prefix (here `../`). The first attribute
    /// `data-features` that lists all features is replaced with a list of those that are on.
    private static func page(_ bytes: [UInt8], _ features: [Feature], _ read: (String) -> [UInt8]?) -> [UInt8] {
        let attribute = { (features: [Feature]) in
            "data-features=\"\(features.map(\.rawValue).joined(separator: " "))\""
        }
        let text = String(decoding: bytes, as: UTF8.self)
            .replacing(/<!-- include "([.\/]*)(app\/shared\/\w+\.html)" -->\n/) { include in
                String(decoding: read(String(include.2)) ?? [], as: UTF8.self)
                    .replacing("=\"app/", with: "=\"\(include.1)app/")
            }
        return Array(text.replacing(attribute(Feature.allCases), with: attribute(features), maxReplacements: 1).utf8)
    }

    private static func file(_ name: String, _ features: [Feature], _ read: (String) -> [UInt8]?) -> File? {
        guard let original = read(name) else { return nil }
        let bytes = name.hasSuffix(".html") ? page(original, features, read) : original
        let hash = SHA256.hash(data: bytes).prefix(12).map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }
        return File(body: ByteBuffer(bytes: bytes), type: type(of: name), tag: "\"" + hash.joined() + "\"")
    }

    private static func type(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        case "json": "application/json"
        case "webmanifest": "application/manifest+json"
        default: "text/plain; charset=utf-8"
        }
    }

    /// Returns a policy that blocks scripts, connections and other content from other origins, and that allows only
    /// this server and the given origins to show the page in a frame. `'self'` covers WebSockets to the same host and
    /// port too (CSP 3 §6.7.2.8; Safari since 15.4).
    static func contentSecurityPolicy(framedBy origins: [String]) -> String {
        let ancestors = origins.isEmpty ? "'none'" : (["'self'"] + origins).joined(separator: " ")
        return [
            "default-src 'self'", "connect-src 'self'", "img-src 'self' data: blob:",
            "media-src 'self' blob: mediastream:", "style-src 'self'", "script-src 'self'", "base-uri 'none'",
            "form-action 'self'", "frame-ancestors \(ancestors)",
        ].joined(separator: "; ")
    }

    /// Returns the headers that all files have. `framers` are the other origins whose pages may show the file in a
    /// frame; if there are none, no page may.
    static func headers(of file: File, framedBy framers: [String]) -> HTTPFields {
        var headers: HTTPFields = [
            .contentType: file.type, .eTag: file.tag, .cacheControl: "no-cache",
            .contentSecurityPolicy: contentSecurityPolicy(framedBy: framers), .xContentTypeOptions: "nosniff",
        ]
        // Add `X-Frame-Options` for browsers that do not know `frame-ancestors`. It cannot name origins, so omit it if
        // some origins are allowed.
        if framers.isEmpty { headers[HTTPField.Name("X-Frame-Options")!] = "DENY" }
        headers[HTTPField.Name("Referrer-Policy")!] = "no-referrer"
        return headers
    }

    /// Returns the requested file, a redirection to the address of a page, or a 404 response.
    ///
    /// - Parameter origins: the origins whose pages may show the page of a room in a frame. No other page can be
    ///   framed: a visitor could be made to press its buttons without seeing them.
    func response(to request: Request, framedBy origins: [String] = []) -> Response {
        let page = Self.address(ofPageFile: request.uri.path)
        guard page == nil, let file = file(request.uri.path) else {
            if let location = page ?? Self.redirection(path: request.uri.path, query: request.uri.query, features) {
                return Response(status: .permanentRedirect, headers: [.location: location])
            }
            return Response(
                status: .notFound,
                headers: [.contentType: "text/plain; charset=utf-8", .xContentTypeOptions: "nosniff"],
                body: .init(byteBuffer: ByteBuffer(string: "Not found. Check the URL.\n"))
            )
        }
        var headers = Self.headers(of: file, framedBy: Self.isRoom(request.uri.path) ? origins : [])
        // Allow only the page for people nearby to use the location.
        let usesLocation = Self.name(of: request.uri.path, features) == Feature.nearby.page
        let geolocation = usesLocation ? "geolocation=(self)" : "geolocation=()"
        headers[HTTPField.Name("Permissions-Policy")!] = "camera=(self), microphone=(self), \(geolocation)"
        // Let pages of other origins load the SDKs. Their origin is checked when they open the WebSocket.
        if Self.sharedFolders.contains(where: request.uri.path.hasPrefix) { headers[.accessControlAllowOrigin] = "*" }
        if request.headers[.ifNoneMatch] == file.tag { return Response(status: .notModified, headers: headers) }
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: file.body))
    }
}

extension Feature {
    /// The name of the file of the feature's page.
    fileprivate var page: String { "app/\(rawValue)/index.html" }
}

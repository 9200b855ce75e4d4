import Signaling
import Wire

/// A bucket of an S3-compatible service: where it is, and the requests to it.
struct S3Bucket: Sendable {
    /// Signs the requests.
    let signature: S3Signature
    private let isSecure: Bool
    private let host: String
    private let port: Int
    /// The path of the bucket, without a final slash.
    private let base: String
    private let prefix: String

    /// - Returns: nil if no bucket is configured, or its settings are incomplete.
    /// - Throws: if the endpoint cannot be used.
    init?(_ settings: ConfabConfiguration.ArchiveBucket) throws(ConfigurationError) {
        guard let bucket = settings.name, let endpoint = settings.endpoint,
            let accessKey = settings.accessKey,
            let secret = settings.secretKey
        else { return nil }
        let url: WebhookURL
        do throws(InvalidWebhook) {
            url = try WebhookURL(endpoint)
        } catch {
            throw ConfigurationError(
                problems: [
                    .init(key: "recording.bucketEndpoint", message: "is not a URL that the server can use")
                ])
        }
        signature = S3Signature(accessKey: accessKey, secret: secret, region: settings.region)
        (isSecure, port) = (url.isSecure, url.port)
        let path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
        (host, base) =
            settings.pathStyle ? (url.host, "\(path)/\(bucket)") : ("\(bucket).\(url.host)", path)
        prefix = settings.prefix.map { $0 + "/" } ?? ""
    }

    /// Returns the key of an archive's object, as OpenTok's archives have it.
    func key(of archive: ArchiveRecord) -> String {
        "\(prefix)\(archive.project)/\(archive.id)/\(archive.downloadName)"
    }

    private var authority: String {
        let isDefault = port == (isSecure ? 443 : 80)
        return "\(URLAuthority(host: host, port: isDefault ? nil : port))"
    }

    /// Returns the path of an object. Its slashes stay.
    private func path(_ key: String) -> String {
        "\(base)/"
            + key.split(separator: "/").map { S3Signature.encoded(String($0)) }.joined(separator: "/")
    }

    /// Returns a signed request.
    func request(
        _ method: PushRequest.Method, _ key: String, _ query: [(name: String, value: String)] = [],
        body: [UInt8] = [], at time: Timestamp
    ) -> PushRequest {
        let path = path(key)
        let signed = S3Signature.Request(
            method: method.rawValue, host: authority, path: path, query: query,
            bodyHash: S3Signature.hash(body))
        let target = query.isEmpty ? path : "\(path)?\(S3Signature.encoded(query))"
        var request = PushRequest(
            host: host, port: port, path: target, headers: signature.headers(signed, at: time),
            body: body,
            isSecure: isSecure)
        (request.method, request.keepsHeaders) = (method, true)
        return request
    }

    /// Returns a URL with which anyone can download an object for a while.
    func downloadURL(_ key: String, at time: Timestamp, lifetime: Duration) -> String {
        let path = path(key)
        let request = S3Signature.Request(
            method: "GET", host: authority, path: path, bodyHash: S3Signature.unsigned)
        let query = signature.query(request, at: time, lifetime: lifetime)
        return "\(isSecure ? "https" : "http")://\(authority)\(path)?\(query)"
    }
}

import Crypto
import Foundation
import Wire

/// Signs requests to S3 with AWS's Signature Version 4.
///
/// Source: Amazon S3 API Reference, "Authenticating Requests (AWS Signature Version 4)".
struct S3Signature: Sendable {
    /// The hash for a body that is not part of the signature, as in presigned URLs.
    static let unsigned = "UNSIGNED-PAYLOAD"
    private static let algorithm = "AWS4-HMAC-SHA256"

    /// The ID of the access key.
    let accessKey: String
    /// The secret of the access key.
    let secret: SecretText
    /// The region of the bucket.
    let region: String

    /// What is signed.
    struct Request {
        /// The HTTP method.
        var method: String
        /// The host, with the port unless it is the default.
        var host: String
        /// The path, percent-encoded.
        var path: String
        /// The query, not encoded.
        var query: [(name: String, value: String)] = []
        /// More headers to sign, with names in lower case.
        var headers: [(name: String, value: String)] = []
        /// The SHA-256 of the body in hexadecimal digits.
        var bodyHash: String
    }

    /// Returns the headers of the request with its signature, without `host`.
    func headers(_ request: Request, at time: Timestamp) -> [(name: String, value: String)] {
        let stamp = Self.stamp(time)
        var request = request
        request.headers += [("x-amz-content-sha256", request.bodyHash), ("x-amz-date", stamp)]
        let (signature, signed) = sign(request, stamp)
        let authorization =
            "\(Self.algorithm) Credential=\(accessKey)/\(scope(stamp)),SignedHeaders=\(signed),Signature=\(signature)"
        return request.headers + [("authorization", authorization)]
    }

    /// Returns the query, encoded, with which anyone may send this request for a while.
    func query(_ request: Request, at time: Timestamp, lifetime: Duration) -> String {
        let stamp = Self.stamp(time)
        var request = request
        request.bodyHash = Self.unsigned
        request.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(accessKey)/\(scope(stamp))"),
            ("X-Amz-Date", stamp), ("X-Amz-Expires", String(lifetime.wholeMilliseconds / 1000)),
            ("X-Amz-SignedHeaders", "host"),
        ]
        return Self.encoded(request.query) + "&X-Amz-Signature=\(sign(request, stamp).signature)"
    }

    private func scope(_ stamp: String) -> String { "\(stamp.prefix(8))/\(region)/s3/aws4_request" }

    private func sign(_ request: Request, _ stamp: String) -> (
        signature: String, signedHeaders: String
    ) {
        let headers = (request.headers + [("host", request.host)]).sorted { $0.name < $1.name }
        let names = headers.map(\.name).joined(separator: ";")
        let lines = headers.map { "\($0.name):\($0.value)\n" }.joined()
        let canonical = [
            request.method, request.path, Self.encoded(request.query), lines, names, request.bodyHash,
        ]
        .joined(separator: "\n")
        let text = [Self.algorithm, stamp, scope(stamp), Self.hash(Array(canonical.utf8))].joined(
            separator: "\n")
        var key = SymmetricKey(data: Array("AWS4\(secret.revealed)".utf8))
        for part in scope(stamp).split(separator: "/") {
            key = SymmetricKey(data: Self.code(String(part), key))
        }
        return (WebhookSignature.hex(Self.code(text, key)), names)
    }

    private static func code(_ text: String, _ key: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }

    /// Returns the SHA-256 of bytes in hexadecimal digits.
    static func hash(_ bytes: [UInt8]) -> String { WebhookSignature.hex(SHA256.hash(data: bytes)) }

    /// Returns a query, sorted and percent-encoded.
    static func encoded(_ query: [(name: String, value: String)]) -> String {
        query.map { (encoded($0.name), encoded($0.value)) }.sorted { $0 < $1 }.map { "\($0)=\($1)" }
            .joined(separator: "&")
    }

    /// Encodes everything except the unreserved characters of RFC 3986 §2.3.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default: result += "%" + WebhookSignature.hex([byte]).uppercased()
            }
        }
        return result
    }

    /// Returns a time such as `20130524T000000Z`.
    private static func stamp(_ time: Timestamp) -> String {
        let format = Date.ISO8601FormatStyle(
            dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
        return Date(timeIntervalSince1970: TimeInterval(time.milliseconds / 1000)).formatted(format)
    }
}

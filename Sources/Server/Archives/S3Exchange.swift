import Logging
import NIOCore
import Signaling
import Wire

/// Sends the requests of an upload to the service, and turns its responses into answers.
struct S3Exchange: Sendable {
    /// Why a request was given up. The text is for the log, and contains no secret.
    struct Failure: Error, CustomStringConvertible { let description: String }

    /// How often a request is sent before it is given up, and the pause after the first time. Each further pause is twice as long.
    private static let attempts = 5
    private static let firstPause: Duration = .seconds(1)
    /// Maximum number of bytes to read from a response's body. Only errors and short answers have one.
    private static let maxBodySize = 64 << 10

    /// Where the object is.
    let bucket: S3Bucket
    /// The object's key.
    let key: String
    /// Sends the requests, only to permitted addresses.
    let transport: any PushTransport
    /// The time of day, for signatures.
    let now: @Sendable () -> Timestamp
    /// Sleeps between two attempts.
    let pause: @Sendable (Duration) async throws -> Void

    /// How to connect to the service.
    static func settings(_ settings: ConfabConfiguration.ArchiveBucket) -> PushConnections.Settings {
        PushConnections.Settings(
            // A part of 16 MiB takes this long at half a megabit per second.
            timeout: .seconds(300), connectionsPerHost: 2,
            allowsPrivateAddresses: settings.allowPrivateAddresses,
            authorities: settings.authorities, maxBodySize: maxBodySize, allowsHTTP2: false)
    }

    /// - Parameter body: the bytes of a part.
    /// - Throws: ``Failure``, or `CancellationError`.
    func answer(_ request: S3Upload.Request, body: [UInt8] = []) async throws -> S3Upload.Answer {
        try await retrying { try answer(request, await send(message(request, body))) }
    }

    /// Deletes the object, unless there is none.
    ///
    /// - Throws: as `answer`.
    func delete() async throws { try await remove { bucket.request(.delete, key, at: $0) } }

    /// Deletes the parts of an upload that is not completed, unless the service does not know it.
    ///
    /// - Throws: as `answer`.
    func abort(_ upload: String) async throws {
        try await remove { bucket.request(.delete, key, [("uploadId", upload)], at: $0) }
    }

    private func remove(_ request: (Timestamp) -> PushRequest) async throws {
        try await retrying {
            let response = try await send(request(now()))
            switch response.status {
            case 200...299, 404: return
            default: throw S3Text.failure(response)
            }
        }
    }

    /// A problem that may pass.
    fileprivate struct Passing: Error { let reason: String }

    private func retrying<Value>(_ attempt: () async throws -> Value) async throws -> Value {
        var wait = Self.firstPause
        for _ in 1..<Self.attempts {
            do {
                return try await attempt()
            } catch is Passing {
                try await pause(wait)
                wait *= 2
            }
        }
        do {
            return try await attempt()
        } catch let error as Passing {
            throw Failure(description: error.reason)
        }
    }

    private func send(_ request: PushRequest) async throws -> PushResponse {
        do {
            return try await transport.exchange(request)
        } catch let failure as PushFailure {
            switch failure {
            case .addressRefused(let host):
                throw Failure(
                    description: "\(host) has a private address (recording.bucketPrivateAddresses)")
            case .cannotMake(let reason): throw Failure(description: reason)
            case .nameUnknown(let host): throw Passing(reason: "\(host) has no address")
            case .lookupsBusy: throw Passing(reason: "other lookups of host names were running")
            case .timedOut: throw Passing(reason: "the service did not answer in time")
            case .unreachable(let reason): throw Passing(reason: reason)
            }
        }
    }

    private func message(_ request: S3Upload.Request, _ body: [UInt8]) -> PushRequest {
        let time = now()
        switch request {
        case .size: return bucket.request(.head, key, at: time)
        case .create: return bucket.request(.post, key, [("uploads", "")], at: time)
        case .part(let number, let upload, _):
            return bucket.request(
                .put, key, [("partNumber", String(number)), ("uploadId", upload)], body: body, at: time)
        case .complete(let upload, let tags):
            let parts = tags.enumerated().map { index, tag in
                "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(S3Text.escaped(tag))</ETag></Part>"
            }
            let xml = "<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>"
            return bucket.request(.post, key, [("uploadId", upload)], body: Array(xml.utf8), at: time)
        }
    }

    private func answer(_ request: S3Upload.Request, _ response: PushResponse) throws
        -> S3Upload.Answer
    {
        switch (request, response.status) {
        case (.size, 404): return .size(nil)
        case (.size, 200):
            guard let size = response.headers["content-length"].flatMap({ UInt64($0) }) else {
                throw Failure(description: "the service did not report the size of the object")
            }
            return .size(size)
        case (.create, 200):
            guard let upload = S3Text.element("UploadId", in: response.body) else {
                throw Failure(description: "the service began no upload")
            }
            return .created(upload)
        case (.part, 200):
            guard let tag = response.headers["etag"] else {
                throw Failure(description: "the service sent no tag for a part")
            }
            return .stored(tag: tag)
        case (.part, 404), (.complete, 404): return .unknownUpload
        // Completing takes long, so the service sends the status before it knows the result.
        case (.complete, 200), (.complete, 400):
            switch (S3Text.element("Code", in: response.body), response.status) {
            case (nil, 200): return .completed
            // The service has lost a part. It would refuse the same list of parts each time.
            case ("InvalidPart"?, _): return .unknownUpload
            case (_, 200): throw Passing(reason: S3Text.problem(response))
            default: throw S3Text.failure(response)
            }
        // Responses to HEAD have no body, so the service cannot say why.
        case (.size, 400), (.size, 403):
            throw Failure(
                description: "status \(response.status). Check the access key and its secret, the permission "
                    + "s3:ListBucket, recording.bucketRegion, and the clock of this machine")
        default: throw S3Text.failure(response)
        }
    }
}

/// The little XML of S3.
enum S3Text {
    private static let longest = 1_024

    /// Returns the text of the first element with this name that has no attributes; nil if there is none.
    static func element(_ name: String, in body: [UInt8]) -> String? {
        let text = String(decoding: body, as: UTF8.self)
        guard let start = text.firstRange(of: "<\(name)>"),
            let end = text[start.upperBound...].firstRange(of: "</\(name)>")
        else { return nil }
        let content = text[start.upperBound..<end.lowerBound]
        guard content.utf8.count <= longest, !content.contains("<") else { return nil }
        return [
            ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#34;", "\""),
            ("&amp;", "&"),
        ]
        .reduce(String(content)) { $0.replacing($1.0, with: $1.1) }
    }

    static func escaped(_ text: String) -> String {
        [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")].reduce(text) {
            $0.replacing($1.0, with: $1.1)
        }
    }

    /// Returns the error to throw for a response that is none of those that were expected.
    fileprivate static func failure(_ response: PushResponse) -> any Error {
        switch response.status {
        case 408, 429, 500...599: return S3Exchange.Passing(reason: problem(response))
        // Redirects are not followed: the target would get a request that is signed for another host.
        case 300...399:
            let region = response.headers["x-amz-bucket-region"].map {
                ", which is in the region \(LogText.escaped($0))"
            }
            let text = "The service redirects to another endpoint for this bucket\(region ?? "")."
            return S3Exchange.Failure(
                description: "\(problem(response)). \(text) Set recording.bucketRegion and recording.bucketEndpoint")
        default: return S3Exchange.Failure(description: problem(response))
        }
    }

    /// Describes an error. Other elements of the response are left out, because they contain the access key.
    static func problem(_ response: PushResponse) -> String {
        let texts = ["Code", "Message"].compactMap { element($0, in: response.body) }
        return LogText.escaped((["status \(response.status)"] + texts).joined(separator: ": "))
    }
}

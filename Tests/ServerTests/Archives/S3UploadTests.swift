import Testing
import Wire

@testable import Server

@Suite("Uploads to S3") struct S3UploadTests {
    // MARK: Signatures

    /// Amazon S3 API Reference, "Signature Calculations for the Authorization Header" and "Authenticating Requests: Using Query
    /// Parameters", examples.
    private static let signer = S3Signature(
        accessKey: "AKIAIOSFODNN7EXAMPLE",
        secret: SecretText("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1")
    private static let time = Timestamp(milliseconds: 1_369_353_600_000)
    private static let host = "examplebucket.s3.amazonaws.com"

    private static func signature(_ request: S3Signature.Request) -> Substring? {
        signer.headers(request, at: time).first { $0.name == "authorization" }?.value.split(
            separator: "Signature="
        ).last
    }

    @Test("the signatures are those of AWS's examples")
    func examples() {
        let get = S3Signature.Request(
            method: "GET", host: Self.host, path: "/test.txt", headers: [("range", "bytes=0-9")],
            bodyHash: S3Signature.hash([]))
        #expect(
            Self.signature(get) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
        let list = S3Signature.Request(
            method: "GET", host: Self.host, path: "/", query: [("max-keys", "2"), ("prefix", "J")],
            bodyHash: S3Signature.hash([]))
        #expect(
            Self.signature(list) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
        let lifecycle = S3Signature.Request(
            method: "GET", host: Self.host, path: "/", query: [("lifecycle", "")],
            bodyHash: S3Signature.hash([]))
        #expect(
            Self.signature(lifecycle)
                == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    }

    @Test("a presigned URL has the signature of AWS's example")
    func presigned() {
        let request = S3Signature.Request(
            method: "GET", host: Self.host, path: "/test.txt", bodyHash: S3Signature.unsigned)
        let query = Self.signer.query(request, at: Self.time, lifetime: .seconds(86400))
        #expect(
            query.hasSuffix(
                "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
            "\(query)")
        #expect(
            query.contains(
                "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"))
    }

    // MARK: The state machine

    @Test("an object is sent in parts, completed, and confirmed")
    func whole() {
        var upload = S3Upload(size: 25, partSize: 10)
        #expect(upload.first == .size)
        #expect(upload.handle(.size(nil)) == .send(.create))
        #expect(upload.handle(.created("u")) == .send(.part(1, of: "u", 0..<10)))
        #expect(upload.handle(.stored(tag: "a")) == .send(.part(2, of: "u", 10..<20)))
        #expect(upload.handle(.stored(tag: "b")) == .send(.part(3, of: "u", 20..<25)))
        #expect(upload.handle(.stored(tag: "c")) == .send(.complete("u", tags: ["a", "b", "c"])))
        #expect(upload.handle(.completed) == .send(.size))
        #expect(upload.handle(.size(25)) == .done)
    }

    @Test("after a restart it continues with the parts that the bucket has, in their size")
    func resumed() throws {
        var first = S3Upload(size: 25, partSize: 10)
        for answer in [.size(nil), .created("u"), .stored(tag: "a")] as [S3Upload.Answer] {
            _ = first.handle(answer)
        }
        let progress = try #require(first.progress)
        guard case .object(let members) = try JSONReader.parse(progress.json) else {
            throw WireError.internalError
        }
        var second = S3Upload(size: 25, progress: try S3Upload.Progress(members: members), partSize: 20)
        #expect(second.handle(.size(nil)) == .send(.part(2, of: "u", 10..<20)))
        var other = S3Upload(size: 26, progress: try S3Upload.Progress(members: members))
        #expect(other.handle(.size(nil)) == .send(.create), "its parts are of an object of another size")
    }

    @Test("an object that is there already is not sent again, and one of another size is replaced")
    func present() {
        var upload = S3Upload(size: 25)
        #expect(upload.handle(.size(25)) == .done)
        upload = S3Upload(size: 25)
        #expect(upload.handle(.size(24)) == .send(.create))
    }

    @Test("an upload that the service has forgotten begins again, once")
    func forgotten() {
        var upload = S3Upload(size: 5, progress: .init(upload: "old", size: 5, partSize: 10))
        #expect(upload.handle(.size(nil)) == .send(.part(1, of: "old", 0..<5)))
        #expect(upload.handle(.unknownUpload) == .send(.size))
        #expect(upload.handle(.size(nil)) == .send(.create))
        #expect(upload.handle(.created("new")) == .send(.part(1, of: "new", 0..<5)))
        #expect(upload.handle(.unknownUpload) == .failed("the service forgets the upload"))
    }

    @Test("an upload that was completed, although the response was lost, is not sent again")
    func completedUnnoticed() {
        var upload = S3Upload(size: 5, progress: .init(upload: "u", size: 5, partSize: 10, tags: ["a"]))
        #expect(upload.handle(.size(nil)) == .send(.complete("u", tags: ["a"])))
        #expect(upload.handle(.unknownUpload) == .send(.size))
        #expect(upload.handle(.size(5)) == .done)
    }

    @Test("nothing counts as uploaded while the bucket shows another size")
    func unconfirmed() {
        for found in [nil, 4] as [UInt64?] {
            var upload = S3Upload(size: 5, progress: .init(upload: "u", size: 5, partSize: 10, tags: ["a"]))
            #expect(upload.handle(.size(nil)) == .send(.complete("u", tags: ["a"])))
            #expect(upload.handle(.completed) == .send(.size))
            guard case .failed = upload.handle(.size(found)) else {
                return #expect(Bool(false), "\(String(describing: found))")
            }
        }
    }

    @Test("parts grow so that an object of any size has at most 10,000")
    func manyParts() {
        let size: UInt64 = 1 << 40
        var upload = S3Upload(size: size)
        _ = upload.handle(.size(nil))
        guard case .send(.part(1, _, let range)) = upload.handle(.created("u")) else {
            return #expect(Bool(false), "no part is sent")
        }
        #expect((size + UInt64(range.count) - 1) / UInt64(range.count) <= 10_000)
    }

    @Test("an error is described by its code and message, without the access key")
    func errors() {
        let body =
            "<?xml?><Error><Code>AccessDenied</Code><Message>a &lt; b</Message><AWSAccessKeyId>AKID</AWSAccessKeyId></Error>"
        let text = S3Text.problem(PushResponse(status: 403, retryAfter: nil, body: Array(body.utf8)))
        #expect(text.hasPrefix("status 403: AccessDenied: a ") && !text.contains("AKID"))
        #expect(S3Text.element("Code", in: Array("<Code>a".utf8)) == nil)
    }
}

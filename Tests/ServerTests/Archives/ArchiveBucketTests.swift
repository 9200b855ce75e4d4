import Foundation
import Logging
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

/// The server's side of a bucket, against a service that checks signatures.
@Suite("Archives in a bucket", .ownThreads, .timeLimit(.minutes(3)))
struct ArchiveBucketTests {
    private static func settings(_ service: S3Service) -> ConfabConfiguration.ArchiveBucket {
        var settings = ConfabConfiguration.ArchiveBucket()
        (settings.name, settings.endpoint, settings.region) = (
            S3Service.bucket, service.endpoint, S3Service.region
        )
        (settings.accessKey, settings.secretKey) = (S3Service.accessKey, SecretText(S3Service.secret))
        (settings.prefix, settings.allowPrivateAddresses) = ("some/where", true)
        return settings
    }

    /// An exchange that keeps its pauses.
    private struct Place {
        let service: S3Service
        let exchange: S3Exchange
        let connections: PushConnections
        let pauses: Pauses

        init(_ change: (inout ConfabConfiguration.ArchiveBucket) -> Void = { _ in }) async throws {
            service = try await S3Service.start()
            var settings = ArchiveBucketTests.settings(service)
            change(&settings)
            let (pauses, bucket) = (Pauses(), try #require(try S3Bucket(settings)))
            (self.pauses, connections) = (pauses, PushConnections(S3Exchange.settings(settings)))
            exchange = S3Exchange(
                bucket: bucket, key: "some/where/a b.zip", transport: connections,
                now: { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) },
                pause: { pauses.add($0) })
        }

        func end() async throws {
            await connections.close()
            try await service.stop()
        }

        /// Uploads bytes in parts of two. Returns the failure; nil if they were uploaded.
        func upload(
            _ bytes: [UInt8], _ upload: inout S3Upload,
            until isEnough: (S3Upload.Request) -> Bool = { _ in false }
        ) async throws -> String? {
            var step = S3Upload.Step.send(upload.first)
            while case .send(let request) = step {
                if isEnough(request) { return "stopped" }
                var body: [UInt8] = []
                if case .part(_, _, let range) = request {
                    body = Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
                }
                step = upload.handle(try await exchange.answer(request, body: body))
            }
            if case .failed(let reason) = step { return reason }
            return nil
        }

        func content() async throws -> (Int, Data) {
            let time = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
            return try await service.get(
                exchange.bucket.downloadURL(exchange.key, at: time, lifetime: .seconds(60)))
        }
    }

    private final class Pauses: Sendable {
        private let state = Mutex<[Duration]>([])
        var all: [Duration] { state.withLock { $0 } }
        func add(_ pause: Duration) { state.withLock { $0.append(pause) } }
    }

    @Test("an object is uploaded in parts, downloaded through a presigned URL, and deleted")
    func life() async throws {
        let place = try await Place()
        let bytes = Array("seven b".utf8)
        var upload = S3Upload(size: 7, partSize: 2)
        #expect(try await place.upload(bytes, &upload) == nil)
        #expect(try await place.content() == (200, Data(bytes)))
        try await place.exchange.delete()
        #expect(try await place.content().0 == 404)
        let requests = try await place.service.requests()
        #expect(
            requests.filter { $0 == "PUT 200" }.count == 4
                && !requests.contains { $0.contains("Signature") })
        try await place.end()
    }

    @Test("after a restart only the missing parts are sent; a forgotten upload begins again")
    func resumed() async throws {
        let place = try await Place()
        let bytes = Array("seven b".utf8)
        var first = S3Upload(size: 7, partSize: 2)
        let stopped = try await place.upload(bytes, &first) {
            if case .part(3, _, _) = $0 { true } else { false }
        }
        #expect(stopped == "stopped" && first.progress?.tags.count == 2)
        var second = S3Upload(size: 7, progress: first.progress, partSize: 2)
        #expect(try await place.upload(bytes, &second) == nil)
        #expect(try await place.service.requests().filter { $0 == "PUT 200" }.count == 4)
        #expect(try await place.content() == (200, Data(bytes)))
        try await place.exchange.delete()
        try await place.service.forget()
        var third = S3Upload(size: 7, progress: first.progress, partSize: 2)
        #expect(try await place.upload(bytes, &third) == nil)
        #expect(try await place.content() == (200, Data(bytes)))
        try await place.end()
    }

    @Test(
        "a service that is busy is asked again, with growing pauses, and given up after the fifth time")
    func busy() async throws {
        let place = try await Place()
        try await place.service.fail(2)
        var upload = S3Upload(size: 1)
        #expect(try await place.upload([7], &upload) == nil)
        #expect(place.pauses.all == [.seconds(1), .seconds(2)])
        try await place.service.fail(5)
        let failure = await #expect(throws: S3Exchange.Failure.self) {
            _ = try await place.exchange.answer(.create)
        }
        #expect(failure?.description == "status 503: SlowDown: Reduce your request rate.")
        try await place.end()
    }

    @Test("an upload of which the service has lost a part begins again")
    func lostPart() async throws {
        let place = try await Place()
        let bytes = Array("seven b".utf8)
        var first = S3Upload(size: 7, partSize: 2)
        _ = try await place.upload(bytes, &first) { if case .complete = $0 { true } else { false } }
        try await place.service.loseParts()
        var second = S3Upload(size: 7, progress: first.progress, partSize: 2)
        #expect(try await place.upload(bytes, &second) == nil)
        #expect(try await place.content() == (200, Data(bytes)))
        try await place.end()
    }

    @Test("deleting is tried again like uploading, and an upload that is aborted leaves no parts")
    func removed() async throws {
        let place = try await Place()
        let bytes = Array("seven b".utf8)
        var upload = S3Upload(size: 7, partSize: 2)
        #expect(try await place.upload(bytes, &upload) == nil)
        try await place.service.fail(2)
        try await place.exchange.delete()
        #expect(place.pauses.all == [.seconds(1), .seconds(2)])
        upload = S3Upload(size: 7, partSize: 2)
        _ = try await place.upload(bytes, &upload) { if case .part(3, _, _) = $0 { true } else { false } }
        let begun = try #require(upload.progress)
        #expect(try await place.service.contents() == "0 1")
        try await place.exchange.abort(begun.upload)
        #expect(try await place.service.contents() == "0 0")
        try await place.exchange.abort(begun.upload)
        try await place.service.fail(5)
        let failure = await #expect(throws: S3Exchange.Failure.self) { try await place.exchange.delete() }
        #expect(failure?.description == "status 503: SlowDown: Reduce your request rate.")
        try await place.end()
    }

    @Test("a response without a reason and a redirect say which settings to check")
    func unexplained() async throws {
        let place = try await Place { $0.secretKey = SecretText("not the secret") }
        let failure = await #expect(throws: S3Exchange.Failure.self) { _ = try await place.exchange.answer(.size) }
        #expect(failure?.description.hasPrefix("status 403. Check the access key and its secret") == true)
        try await place.service.redirect()
        for request in [.size, .create] as [S3Upload.Request] {
            let failure = await #expect(throws: S3Exchange.Failure.self) {
                _ = try await place.exchange.answer(request)
            }
            let text = "which is in the region eu-other-2. Set recording.bucketRegion"
            #expect(failure?.description.contains(text) == true)
        }
        try await place.end()
    }

    @Test("a wrong secret and a private address have a reason, which is no secret")
    func refused() async throws {
        let place = try await Place { $0.secretKey = SecretText("not the secret") }
        let failure = await #expect(throws: S3Exchange.Failure.self) {
            _ = try await place.exchange.answer(.create)
        }
        #expect(failure?.description == "status 403: SignatureDoesNotMatch: signature")
        try await place.end()
        let careful = try await Place { $0.allowPrivateAddresses = false }
        let refusal = await #expect(throws: S3Exchange.Failure.self) {
            _ = try await careful.exchange.answer(.create)
        }
        #expect(
            refusal?.description == "127.0.0.1 has a private address (recording.bucketPrivateAddresses)")
        try await careful.end()
    }

    @Test("a complete archive moves to the bucket: its status, its URL and the local files follow")
    func moved() async throws {
        let service = try await S3Service.start()
        let directory = NSTemporaryDirectory() + "confab-bucket-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await service.fail(2)
        try await TestServer.run(dataDirectory: directory, recorder: TestRecorder.maker(directory)) {
            $0.rules.recordingNotice = .zero
            $0.archives.bucket = Self.settings(service)
        } _: { server in
            let place = try ArchivePlace(server)
            let (_, stream) = try await place.publisher()
            let id = try #require(ArchivePlace.text(try await place.start().object(), "id"))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            let archive = try await place.archive(id, is: "uploaded")
            let url = try #require(ArchivePlace.text(archive, "url"))
            #expect(
                url.hasPrefix(
                    "\(service.endpoint)/recordings/some/where/\(server.project.apiKey)/\(id)/archive.zip?"))
            let (status, data) = try await service.get(url)
            let text = String(decoding: data, as: UTF8.self)
            #expect(
                status == 200 && text.contains("\(stream).webm") && text.contains("not really a video"))
            try await Self.waitUntilGone("\(directory)/recordings/\(id)")
            // The files are gone before the upload has ended, and until then the archive cannot be deleted.
            try await eventually {
                let status = try await place.ask("DELETE", "/\(id)").status
                return status == 204 ? nil : "the archive is not deleted: \(status)"
            }
            #expect(
                try await service.get(url).0 == 200, "what is in the bucket belongs to the application")
        }
        try await service.stop()
    }

    private static func waitUntilGone(_ folder: String) async throws {
        try await eventually { FileManager.default.fileExists(atPath: folder) ? "\(folder) remains" : nil }
    }

    /// Runs a server with the bucket. Its data directory remains for the next one.
    private func withServer(
        _ directory: String, _ service: S3Service, _ body: @escaping @Sendable (ArchivePlace) async throws -> Void
    ) async throws {
        try await TestServer.run(dataDirectory: directory, recorder: TestRecorder.maker(directory)) {
            $0.rules.recordingNotice = .zero
            $0.archives.bucket = Self.settings(service)
        } _: { server in
            try await body(try ArchivePlace(server))
        }
    }

    @Test("a server that was killed after an upload deletes the local files at its next start")
    func killed() async throws {
        let service = try await S3Service.start()
        let directory = NSTemporaryDirectory() + "confab-bucket-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let archive = Mutex("")
        try await withServer(directory, service) { place in
            _ = try await place.publisher()
            let id = try #require(ArchivePlace.text(try await place.start().object(), "id"))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            _ = try await place.archive(id, is: "uploaded")
            try await Self.waitUntilGone("\(directory)/recordings/\(id)")
            archive.withLock { $0 = id }
        }
        // What it would have left.
        let folder = "\(directory)/recordings/\(archive.withLock { $0 })"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in [ArchiveUploads.progressName, "x.webm"] {
            try Data("{}".utf8).write(to: URL(filePath: "\(folder)/\(name)"))
        }
        try await withServer(directory, service) { _ in try await Self.waitUntilGone(folder) }
        try await service.stop()
    }

    @Test("local files of an archive in the bucket are deleted even without its record, but not those of others")
    func withoutRecord() async throws {
        let service = try await S3Service.start()
        let directory = NSTemporaryDirectory() + "confab-bucket-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await withServer(directory, service) { _ in }
        let folders = (UInt64(1)...2).map { "\(directory)/recordings/\(ArchiveID(high: 1, low: $0))" }
        for (folder, name) in zip(folders, [ArchiveUploads.progressName, ArchiveUploads.uploadedName]) {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            for name in [name, "x.webm"] { try Data("{}".utf8).write(to: URL(filePath: "\(folder)/\(name)")) }
        }
        // The server looks at the folders in this order.
        try await withServer(directory, service) { _ in try await Self.waitUntilGone(folders[1]) }
        #expect(FileManager.default.fileExists(atPath: "\(folders[0])/x.webm"))
        try await service.stop()
    }

    /// Runs `body` with a server on which an archive has been stopped: the upload of this archive has begun, and waits.
    private func whileUploading(
        _ body: @escaping @Sendable (ArchivePlace, S3Service, _ directory: String, _ id: String) async throws -> Void
    ) async throws {
        let service = try await S3Service.start()
        let directory = NSTemporaryDirectory() + "confab-bucket-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await service.fail(3)
        try await withServer(directory, service) { place in
            _ = try await place.publisher()
            let id = try #require(ArchivePlace.text(try await place.start().object(), "id"))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            try await eventually {
                try await service.requests().contains { $0.hasPrefix("SlowDown") } ? nil : "the upload has not begun"
            }
            try await body(place, service, directory, id)
        }
        try await service.stop()
    }

    @Test("nothing remains in the bucket of an archive that is deleted while it is uploaded")
    func deleted() async throws {
        try await whileUploading { place, service, _, id in
            #expect(try await place.ask("DELETE", "/\(id)").status == 204)
            try await eventually {
                let requests = try await service.requests()
                return requests.last == "DELETE 204" ? nil : "\(requests)"
            }
            #expect(try await service.contents() == "0 0")
            #expect(try await place.ask("GET", "/\(id)").status == 404)
        }
    }

    @Test("an archive that another process has uploaded meanwhile stays in the bucket")
    func uploadedByAnother() async throws {
        try await whileUploading { place, service, directory, id in
            let storage = try SQLiteStorage(directory: directory, bounds: StorageBounds())
            let archive = try #require(ArchiveID(id))
            var record = try #require(try await storage.archive(archive))
            record.status = .uploaded
            try await storage.commit([.archiveStored(record)])
            try await storage.close()
            // Archives are uploaded one after another.
            let next = try #require(ArchivePlace.text(try await place.start().object(), "id"))
            #expect(try await place.ask("POST", "/\(next)/stop").status == 200)
            _ = try await place.archive(next, is: "uploaded")
            #expect(try await service.contents() == "2 0")
        }
    }
}

import Foundation
import Synchronization
import Testing

@testable import Server

@Suite("Whether the server is ready") struct ReadinessTests {
    @Test("the answer names the parts that are not ready, in a fixed order")
    func json() {
        #expect(Readiness().json == #"{"status":"ready"}"#)
        #expect(Readiness(failing: [.disk, .storage]).json == #"{"status":"unready","parts":["storage","disk"]}"#)
        #expect(!Readiness(failing: [.media]).isReady)
        let draining = Readiness(isDraining: true)
        #expect(!draining.isReady)
        #expect(draining.json == #"{"status":"draining","parts":[]}"#)
    }

    @Test("a media loop that owes an answer for too long has stopped, and is asked only once")
    func pulse() {
        let start = SuspendingClock.now
        var pulse = MediaHeartbeat()
        #expect(pulse.isResponsive(at: start))
        let (first, second) = (pulse.ask(at: start), pulse.ask(at: start + .seconds(4)))
        #expect(first && !second)
        #expect(pulse.isResponsive(at: start + .seconds(4)))
        #expect(!pulse.isResponsive(at: start + MediaHeartbeat.limit))
        pulse.answered()
        #expect(pulse.isResponsive(at: start + .seconds(60)))
        let third = pulse.ask(at: start + .seconds(60))
        #expect(third)
    }

    @Test("the disk is measured once for many callers, and less than the minimum is too little")
    func disk() async {
        let count = Mutex(0)
        let disk = DiskSpace(directory: "/data", minimum: 100, lifetime: .seconds(3600)) { directory in
            #expect(directory == "/data")
            return count.withLock { count in
                count += 1
                return 99
            }
        }
        // The first caller measures. Those who ask meanwhile do not wait for it.
        _ = await disk.free()
        for _ in 0..<20 { #expect(await !disk.hasRoom()) }
        #expect(await disk.free() == 99)
        #expect(count.withLock { $0 } == 1)
        #expect(await DiskSpace(directory: "/", minimum: 99) { _ in 99 }.hasRoom())
        #expect(await !DiskSpace(directory: "/", minimum: 0) { _ in nil }.hasRoom(), "a disk that gives an error")
    }

    @Test("free space is that of the real file system")
    func measured() throws {
        #expect(try #require(DiskSpace.freeBytes(of: NSTemporaryDirectory())) > 0)
        #expect(DiskSpace.freeBytes(of: "/no/such/directory") == nil)
    }
}

@Suite("GET /ready", .ownThreads, .timeLimit(.minutes(2))) struct ReadyRouteTests {
    @Test("a running server is ready, and one with a full disk is alive but not ready")
    func routes() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let answer = try await place.ask("GET", "/ready")
            #expect(answer.status == 200 && answer.text == "{\"status\":\"ready\"}\n")
            #expect(answer["Cache-Control"] == "no-store" && answer["Content-Type"] == "application/json")
        }
        // More than any disk has.
        try await TestServer.run({ $0.storage.minFreeSpace = .max }) { server in
            let place = try WHIPPlace(server)
            let answer = try await place.ask("GET", "/ready")
            #expect(answer.status == 503 && answer.text == "{\"status\":\"unready\",\"parts\":[\"disk\"]}\n")
            #expect(try await place.ask("GET", "/health").status == 200)
        }
    }
}

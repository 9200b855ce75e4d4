import Foundation
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("Whether the server is ready") struct ReadinessTests {
    @Test("parts that are not ready are named in a fixed order, and a balancer can ask for 404 instead of 503")
    func parts() {
        #expect(Readiness().response(keepsClients: false) == json(200, #"{"status":"ready"}"#))
        let failing = Readiness(failing: [.disk, .storage])
        let text = #"{"status":"unready","parts":["storage","disk"]}"#
        #expect(!failing.isReady)
        #expect(failing.response(keepsClients: false) == json(503, text))
        #expect(failing.response(keepsClients: true) == json(404, text))
        #expect(Readiness().response(keepsClients: true).status == 200)
    }

    private func json(_ status: Int, _ text: String) -> GateResponse {
        GateResponse(status: status, type: "application/json", body: (text + "\n").utf8)
    }

    @Test("a server that holds back new clients answers 404 and says why, whatever else is wrong")
    func holds() {
        for hold in Readiness.Hold.allCases {
            let readiness = Readiness(holds: [hold], failing: [.disk])
            let response = readiness.response(keepsClients: false)
            #expect(!readiness.isReady && response.status == 404)
            #expect(String(decoding: response.body, as: UTF8.self).hasPrefix(hold.rawValue + ": "))
        }
        let both = Readiness(holds: [.full, .draining]).response(keepsClients: false)
        #expect(
            String(decoding: both.body, as: UTF8.self).split(separator: "\n").map { $0.prefix(4) } == ["drai", "full"])
    }

    @Test("a few addresses with many connections do not make a server full, because they lose them to newcomers")
    func flooded() throws {
        var counts = ConnectionCounts(perAddress: 100, total: 100, new: Budget.Rate(perSecond: 1000, burst: 1000))
        func isFull() -> Bool { counts.isFull() }
        for source in ["192.0.2.1", "192.0.2.2"] {
            for _ in 0..<50 {
                let admitted = counts.admit(IPAddress(source), now: Timestamp(milliseconds: 0))
                _ = try #require(admitted)
            }
        }
        #expect(counts.count == 100)
        #expect(!isFull())
    }

    @Test("a server is full when less than a twentieth of its connections is left")
    func full() throws {
        var counts = ConnectionCounts(perAddress: 100, total: 40, new: Budget.Rate(perSecond: 1000, burst: 1000))
        func isFull() -> Bool { counts.isFull() }
        var places: [AddressPlaces.Place] = []
        func connect() throws {
            let admitted = counts.admit(nil, now: Timestamp(milliseconds: 0))
            places.append(try #require(admitted).place)
        }
        for _ in 0..<37 { try connect() }
        #expect(!isFull())
        try connect()
        #expect(isFull())
        counts.release(places[0])
        #expect(!isFull())
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

@Suite("GET /ready", .ownThreads, .timeLimit(.minutes(3))) struct ReadyRouteTests {
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
            #expect(try await place.ask("GET", "/ready?unready=404").status == 404)
            for path in ["/health", "/live"] { #expect(try await place.ask("GET", path).status == 200) }
        }
    }
}

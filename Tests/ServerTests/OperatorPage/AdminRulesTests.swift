import Cluster
import Foundation
import NIOConcurrencyHelpers
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The token of the operator's page") struct AdminDoorTests {
    private let token = SecretText("f00dfeedf00dfeedf00dfeedf00dfeed")
    private let start = Timestamp(milliseconds: 1_000_000)
    private let here = IPAddress("192.0.2.1")!

    @Test("only the whole token opens the page")
    func comparing() {
        var door = AdminDoor(token)
        #expect(door.check(token.revealed, from: here, now: start) == .admitted)
        #expect(door.check(nil, from: here, now: start) == .missing)
        for wrong in ["", "f00d", token.revealed + "0", token.revealed.uppercased(), " " + token.revealed] {
            #expect(door.check(wrong, from: here, now: start) == .wrong, "\(wrong)")
        }
    }

    @Test("after ten wrong tokens, not even the right one of this address is compared, until time has passed")
    func guessing() throws {
        var door = AdminDoor(token)
        for _ in 0..<10 { #expect(door.check("wrong", from: here, now: start) == .wrong) }
        guard case .blocked(let wait) = door.check("wrong", from: here, now: start) else {
            Issue.record("the address is not blocked")
            return
        }
        #expect(wait > .zero && wait <= .seconds(6))
        #expect(door.check(token.revealed, from: here, now: start) == .admitted, "nobody can keep the operator out")
        let there = try #require(IPAddress("192.0.2.2"))
        #expect(door.check("wrong", from: there, now: start) == .wrong)
        #expect(door.check("wrong", from: here, now: start + wait) == .wrong)
    }

    @Test("a request without a token does not count, so that other pages cannot lock an operator out")
    func missing() {
        var door = AdminDoor(token)
        for _ in 0..<100 { #expect(door.check(nil, from: here, now: start) == .missing) }
        #expect(door.check(token.revealed, from: here, now: start) == .admitted)
    }

    @Test("all addresses of an IPv6 /64 count as one")
    func blocks() throws {
        var door = AdminDoor(token)
        for number in 1...10 {
            let address = try #require(IPAddress("2001:db8::\(number)"))
            #expect(door.check("wrong", from: address, now: start) == .wrong)
        }
        let next = try #require(IPAddress("2001:db8::99"))
        guard case .blocked = door.check("wrong", from: next, now: start) else {
            Issue.record("the block is not blocked")
            return
        }
    }

    @Test("guesses from many addresses take a bounded amount of memory")
    func manyAddresses() throws {
        var door = AdminDoor(token)
        for number in 0..<(AdminDoor.maxAddresses + 20) {
            let address = try #require(IPAddress("10.\(number >> 8).\(number & 255).1"))
            _ = door.check("wrong", from: address, now: start)
        }
        // Further addresses share one budget.
        let last = try #require(IPAddress("172.16.0.1"))
        guard case .blocked = door.check("wrong", from: last, now: start) else {
            Issue.record("the shared budget is not used up")
            return
        }
    }

    @Test("the file is created once, for its owner only, and must contain a token")
    func file() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "confab-admin-\(UUID().uuidString)").path
        try PrivateFiles.makeDirectory(directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let made = try AdminTokenFile.open(in: directory)
        #expect(AdminTokenFile.isToken(made.revealed))
        #expect(try AdminTokenFile.open(in: directory) == made)
        let path = directory + "/" + AdminTokenFile.fileName
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        #expect(throws: DataDirectoryError.self) { try AdminTokenFile.open(in: directory) }
        for text in ["", "short\n", String(repeating: "x ", count: 40)] {
            try PrivateFiles.replace(path, contents: Array(text.utf8), suffix: "test")
            let error = #expect(throws: DataDirectoryError.self) { try AdminTokenFile.open(in: directory) }
            #expect(error?.description.contains(path) == true)
        }
    }
}

@Suite("What the operator's page is notified of") struct AdminLiveTests {
    private let start = Timestamp(milliseconds: 1_000_000)

    @Test("a view is named when what it shows has changed, and not before")
    func marks() {
        let empty = AdminMarks()
        #expect(empty.changes(since: empty) == [])
        var marks = AdminMarks(sample: start, sessions: 7)
        #expect(marks.changes(since: empty) == ["overview", "sessions"])
        var next = marks
        next.newestSwitch = start
        #expect(next.changes(since: marks) == ["sessions"])
        marks = next
        next.moderation.openReports = 1
        #expect(next.changes(since: marks) == ["reports", "bans", "audit"])
        marks = next
        next.moderation.newestEntry = 1
        next.sample = start + .seconds(5)
        #expect(next.changes(since: marks) == ["overview", "reports", "bans", "audit"])
        #expect(String(decoding: AdminMarks.line(["a", "b"]), as: UTF8.self) == "{\"changed\":[\"a\",\"b\"]}\n")
    }

    @Test("all pages share one reading, and the next begins after the interval")
    func sharedReading() async throws {
        let count = NIOLockedValueBox(0)
        let reading = SharedReading<Int>(every: .seconds(1)) {
            count.withLockedValue { count in
                count += 1
                return count
            }
        }
        #expect(count.withLockedValue { $0 } == 0, "nobody looks")
        let start = start
        let values: [Int] = try await withThrowingTaskGroup(of: Int.self) { group in
            for page in 0..<AdminWatchers.maxCount {
                group.addTask { try await reading.value(at: start + .milliseconds(100 * Int64(page))) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: 1, count: AdminWatchers.maxCount))
        #expect(try await reading.value(at: start + .seconds(2)) == 2)
        #expect(try await reading.value(at: start + .milliseconds(2999)) == 2)
        #expect(try await reading.value(at: start + .seconds(3)) == 3)
    }

    @Test("a failed reading is not kept beyond the interval")
    func failedReading() async throws {
        let isBroken = NIOLockedValueBox(true)
        let reading = SharedReading<Int>(every: .seconds(1)) {
            if isBroken.withLockedValue({ $0 }) { throw WireError.storageFailed }
            return 7
        }
        await #expect(throws: WireError.self) { try await reading.value(at: start) }
        isBroken.withLockedValue { $0 = false }
        #expect(try await reading.value(at: start + .seconds(1)) == 7)
    }

    @Test("in a cluster, the nodes are named when one has changed, and with each sample")
    func nodes() throws {
        let tag = try #require(NodeTag(node: 1, life: 7))
        func marks(_ condition: NodeCondition, isOutOfService: Bool = false) -> AdminMarks {
            var record = NodeRecord(
                tag: tag, url: "", socketAddress: "", region: "", version: "1.0",
                letters: .init(speaks: 1, reads: 1...1))
            (record.condition, record.isOutOfService) = (condition.rawValue, isOutOfService)
            let list = NodeList(asked: record, lease: .seconds(2), view: nil, age: nil, others: [])
            return AdminMarks(sample: start, nodes: list.nodes.map(AdminMarks.Node.init))
        }
        #expect(AdminMarks().changes(since: nil).contains("nodes") == false)
        #expect(marks(.serving).changes(since: nil).contains("nodes"))
        #expect(marks(.serving).changes(since: marks(.serving)) == [])
        #expect(marks(.draining).changes(since: marks(.serving)) == ["nodes"])
        #expect(marks(.waiting, isOutOfService: true).changes(since: marks(.waiting)) == ["nodes"])
        var later = marks(.serving)
        later.sample = start + .seconds(5)
        #expect(later.changes(since: marks(.serving)) == ["overview", "nodes"])
    }

    @Test("a limited number of pages is notified, and a place is free again when a page leaves")
    func places() throws {
        let watchers = AdminWatchers()
        var places = (0..<AdminWatchers.maxCount).map { _ in watchers.take() }
        #expect(places.allSatisfy { $0 != nil } && watchers.take() == nil)
        places.removeLast()
        #expect(watchers.take() != nil)
        #expect(watchers.take() != nil, "the place before was given back at once")
    }
}

@Suite("The figures of the operator's page") struct AdminHistoryTests {
    private let start = Timestamp(milliseconds: 1_000_000)

    private func totals(cpu: Double? = nil, bytes: UInt64 = 0) -> AdminTotals {
        AdminTotals(cpuSeconds: cpu, bytesIn: bytes, bytesOut: 2 * bytes, packetsForwarded: bytes / 100, switches: 0)
    }

    @Test("rates are per second since the sample before, also if a sample came late")
    func rates() throws {
        var history = AdminHistory()
        history.add(AdminFigures(clients: 1), totals(cpu: 3, bytes: 1000), at: start, wallNow: start)
        let later = start + .seconds(10)
        history.add(AdminFigures(clients: 2), totals(cpu: 8, bytes: 11_000), at: later, wallNow: later)
        let (first, second) = (history.samples[0], history.samples[1])
        #expect(first.cores == nil && first.bitsIn == 0)
        #expect(second.figures.clients == 2 && second.cores == 0.5)
        #expect((second.bitsIn, second.bitsOut, second.packets) == (8000, 16_000, 10))
    }

    @Test("totals that shrink, and a clock that stands still, give no rates")
    func oddities() {
        var history = AdminHistory()
        history.add(AdminFigures(), totals(cpu: 9, bytes: 9000), at: start, wallNow: start)
        history.add(AdminFigures(), totals(cpu: 9, bytes: 9900), at: start, wallNow: start)
        history.add(AdminFigures(), totals(cpu: 1, bytes: 10), at: start + .seconds(5), wallNow: start)
        #expect(history.samples.map(\.bitsIn) == [0, 0, 0])
        #expect(history.samples.map(\.cores) == [nil, nil, 0])
    }

    @Test("the overview says why the server could not get a certificate, until it could")
    func certificateTrouble() {
        let keeper = AdminFigureKeeper(startedAt: start)
        func text() -> String {
            let response = GateResponse.overview(
                keeper.history, since: start, now: start, startedAt: start,
                certificateTrouble: keeper.certificateTrouble, node: nil)
            return String(decoding: response.body, as: UTF8.self)
        }
        #expect(!text().contains("certificateTrouble"))
        keeper.note(certificateTrouble: "The authority says: NXDOMAIN.")
        #expect(text().contains(#""certificateTrouble":"The authority says: NXDOMAIN.""#))
        keeper.note(certificateTrouble: nil)
        #expect(!text().contains("certificateTrouble"))
    }

    @Test("an hour is kept")
    func bounds() {
        var history = AdminHistory()
        for number in 0..<(AdminHistory.maxSamples + 3) {
            let now = start + AdminHistory.interval * number
            history.add(AdminFigures(clients: number), totals(), at: now, wallNow: now)
        }
        #expect(history.samples.count == AdminHistory.maxSamples)
        #expect(history.samples.first?.figures.clients == 3)
        #expect(AdminHistory.interval * AdminHistory.maxSamples == .seconds(3600))
    }

    @Test("changes of layers are kept with their reasons, and qualities until they are good again; both are bounded")
    func media() {
        var log = AdminMediaLog()
        let (session, stream) = (SessionID.unset, StreamID(high: 0, low: 1))
        let (ann, bob) = (ConnectionID(high: 0, low: 1), ConnectionID(high: 0, low: 2))
        for number in 0..<(AdminMediaLog.maxSwitches + 5) {
            let change = SessionNotice.SubscriptionChanged(
                session: session, stream: stream, videoPaused: number.isMultiple(of: 2), reason: .bandwidth)
            log.note(.subscriptionChanged(change, subscriber: number == 7 ? bob : ann), at: start)
        }
        #expect(log.switches.count == AdminMediaLog.maxSwitches)
        #expect(log.lastSwitch(of: bob)?.change.videoPaused == false)
        #expect(log.lastSwitch(of: ConnectionID(high: 0, low: 3)) == nil)
        log.note(.streamQuality(.init(session: session, stream: stream, level: .poor, reason: .loss)), at: start)
        #expect(log.quality(of: stream)?.reason == .loss)
        log.note(.streamQuality(.init(session: session, stream: stream, level: .good, reason: nil)), at: start)
        #expect(log.quality(of: stream) == nil)
        for number in 0...UInt64(AdminMediaLog.maxStreams) {
            let quality = SessionNotice.StreamQuality(
                session: session, stream: StreamID(high: 1, low: number), level: .fair, reason: .delay)
            log.note(.streamQuality(quality), at: start)
        }
        #expect(log.quality(of: StreamID(high: 1, low: 0)) == nil)
        #expect(log.quality(of: StreamID(high: 1, low: UInt64(AdminMediaLog.maxStreams))) != nil)
    }
}

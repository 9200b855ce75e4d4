import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Limits before any request") struct ConnectionLimitTests {
    /// The counts as a reference, because `#expect` cannot mutate values.
    private final class Counts {
        private var counts: ConnectionCounts
        init(perAddress: Int, total: Int, new: Budget.Rate = Budget.Rate(perSecond: 1, burst: 1000)) {
            counts = ConnectionCounts(perAddress: perAddress, total: total, new: new)
        }
        var count: Int { counts.count }
        func admit(_ address: IPAddress?, at seconds: Int64 = 0) -> Bool {
            guard let (place, _) = counts.admit(address, now: Timestamp(milliseconds: seconds * 1000)) else {
                return false
            }
            places[address, default: []].append(place)
            return true
        }
        func release(_ address: IPAddress?) {
            if let place = places[address]?.popLast() { counts.release(place) }
        }
        private var places: [IPAddress?: [AddressPlaces.Place]] = [:]
    }

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    @Test("the connections of one address are limited, and closed ones no longer count")
    func perAddress() throws {
        let counts = Counts(perAddress: 2, total: 10)
        let (ada, bob) = (try address("192.0.2.1"), try address("192.0.2.2"))
        #expect(counts.admit(ada) && counts.admit(ada))
        #expect(!counts.admit(ada))
        #expect(counts.admit(bob))
        counts.release(ada)
        #expect(counts.admit(ada))
        #expect(counts.count == 3)
    }

    @Test("addresses of one IPv6 /64 share a limit")
    func prefix() throws {
        let counts = Counts(perAddress: 1, total: 10)
        #expect(counts.admit(try address("2001:db8::1")))
        #expect(!counts.admit(try address("2001:db8::2")))
        #expect(counts.admit(try address("2001:db8:0:1::1")))
    }

    @Test("connections of trusted proxies count only toward the total limit")
    func total() throws {
        let counts = Counts(perAddress: 1, total: 3)
        #expect(counts.admit(nil) && counts.admit(nil) && counts.admit(nil))
        #expect(!counts.admit(nil))
        #expect(!counts.admit(try address("192.0.2.1")))
        counts.release(nil)
        #expect(counts.admit(try address("192.0.2.1")))
    }

    @Test("new connections of one address have a budget, which closing them does not refill")
    func rate() throws {
        let counts = Counts(perAddress: 10, total: 20, new: Budget.Rate(perSecond: 2, burst: 3))
        let (ada, bob) = (try address("2001:db8::1"), try address("192.0.2.2"))
        for _ in 0..<3 {
            #expect(counts.admit(ada))
            counts.release(ada)
        }
        #expect(!counts.admit(ada))
        #expect(try !counts.admit(address("2001:db8::2")), "a /64 has one budget")
        #expect(counts.admit(bob))
        for _ in 0..<10 { #expect(counts.admit(nil), "a trusted proxy has no budget") }
        #expect(counts.admit(ada, at: 1) && counts.admit(ada, at: 1) && !counts.admit(ada, at: 1))
    }

    @Test("the networks of one customer, an IPv6 /56, have four times the budget of a /64 for new connections")
    func wideRate() throws {
        let counts = Counts(perAddress: 100, total: 1000, new: Budget.Rate(perSecond: 1, burst: 3))
        var admitted = 0
        for network in 0..<64 {
            let address = try address("2001:db8:0:\(String(network, radix: 16))::1")
            for _ in 0..<3 where counts.admit(address) { admitted += 1 }
        }
        #expect(admitted == 12)
        #expect(try counts.admit(address("2001:db8:0:100::1")), "the next /56")
    }

    @Test("the budgets of many addresses take a bounded amount of memory, and active addresses keep theirs")
    func budgets() throws {
        var budgets = NewConnectionBudgets(Budget.Rate(perSecond: 1, burst: 2), limit: 100)
        let start = Timestamp(milliseconds: 0)
        /// Takes one for each number of seconds after the start.
        func take(_ address: IPAddress, at seconds: Int64...) -> [Bool] {
            seconds.map { budgets.take(address, now: start + .milliseconds($0 * 1000)) }
        }
        let busy = try address("192.0.2.1")
        #expect(take(busy, at: 0, 0, 0) == [true, true, false])
        for number in 0..<1000 {
            let (high, low) = (UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF))
            let other = try #require(IPAddress(bytes: [10, 0, high, low]))
            #expect(take(other, at: 0) == [true])
            if number.isMultiple(of: 10) { #expect(take(busy, at: 0) == [false], "after \(number) addresses") }
        }
        #expect(budgets.count <= 200)
        #expect(take(busy, at: 1, 1) == [true, false])
        #expect(take(try address("192.0.2.2"), at: 4, 7, 10) == [true, true, true])
        #expect(budgets.count == 1, "budgets that are full again are forgotten")
    }

    @Test("a ban of an address block of any length applies to its addresses until the ban ends")
    func bans() throws {
        let start = Timestamp(milliseconds: 0)
        func ban(_ text: String, until end: Timestamp? = nil) -> Ban {
            Ban(subject: .address(text), reason: text, createdAt: start, expiresAt: end)
        }
        let bans = AddressBans([
            ban("192.0.2.0/24"), ban("198.51.100.7"), ban("2001:db8::/64"),
            ban("203.0.113.1", until: start + .seconds(1)),
        ])
        #expect(bans.ban(of: try address("192.0.2.9"), at: start)?.reason == "192.0.2.0/24")
        #expect(bans.ban(of: try address("198.51.100.7"), at: start) != nil)
        #expect(bans.ban(of: try address("198.51.100.8"), at: start) == nil)
        #expect(bans.ban(of: try address("2001:db8::ffff"), at: start) != nil)
        #expect(bans.ban(of: try address("2001:db8:0:1::1"), at: start) == nil)
        #expect(bans.ban(of: try address("203.0.113.1"), at: start) != nil)
        #expect(bans.ban(of: try address("203.0.113.1"), at: start + .seconds(2)) == nil)
    }

    @Test("a second server on the same data directory is refused, and the error names the process that uses it")
    func directoryLock() throws {
        let directory = NSTemporaryDirectory() + "confab-lock-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        do {
            let lock = try DirectoryLock(directory: directory)
            let error = #expect(throws: DataDirectoryError.self) { _ = try DirectoryLock(directory: directory) }
            #expect(error.map { "\($0)".contains("process \(getpid())") } ?? false)
            withExtendedLifetime(lock) {}
        }
        _ = try DirectoryLock(directory: directory)
    }
}

@Suite("Failures of the storage") struct StorageTroubleTests {
    private let start = SuspendingClock.now

    /// A reference, because `#expect` cannot mutate values.
    private final class Trouble {
        private var trouble = StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10))
        var isUnavailable: Bool { trouble.isUnavailable }
        func failed(_ error: StorageError, at now: SuspendingClock.Instant) -> StorageTrouble.Decision {
            trouble.failed(error, at: now)
        }
        func succeeded() { trouble.succeeded() }
    }

    @Test("a locked database is retried up to the time limit; then the changes fail, and the server stays ready")
    func busy() {
        let trouble = Trouble()
        let error = StorageError(.busy, "")
        #expect(trouble.failed(error, at: start) == .retry(after: StorageTrouble.retryPause))
        #expect(trouble.failed(error, at: start + .seconds(59)) == .retry(after: StorageTrouble.retryPause))
        #expect(!trouble.isUnavailable)
        #expect(trouble.failed(error, at: start + .seconds(60)) == .giveUp)
    }

    @Test(
        "a full disk makes the server unready at once, and stops the server if it lasts",
        arguments: [
            StorageError.Code.diskFull, .inputOutput, .notAccessible,
        ])
    func full(code: StorageError.Code) {
        let trouble = Trouble()
        #expect(trouble.failed(StorageError(code, ""), at: start) == .retry(after: StorageTrouble.retryPause))
        #expect(trouble.isUnavailable)
        trouble.succeeded()
        #expect(!trouble.isUnavailable)
        _ = trouble.failed(StorageError(code, ""), at: start)
        #expect(trouble.failed(StorageError(code, ""), at: start + .seconds(10)) == .stop)
    }

    @Test("a change that the database rejects fails at once")
    func rejected() {
        let trouble = Trouble()
        #expect(trouble.failed(StorageError(.rejected, ""), at: start) == .giveUp)
        #expect(!trouble.isUnavailable)
    }

    @Test("an I/O error after a long lock is retried for its own time")
    func busyThenFault() {
        let trouble = Trouble()
        _ = trouble.failed(StorageError(.busy, ""), at: start)
        let later = trouble.failed(StorageError(.inputOutput, ""), at: start + .seconds(20))
        #expect(later == .retry(after: StorageTrouble.retryPause))
    }

    @Test("storage that the server closed itself is no fault of the disk")
    func closed() {
        let trouble = Trouble()
        #expect(trouble.failed(.closed, at: start) == .giveUp)
        #expect(!trouble.isUnavailable)
    }
}

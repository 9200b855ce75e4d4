import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Limits before any request") struct ConnectionLimitTests {
    /// The counts as a reference, because `#expect` cannot mutate values.
    private final class Counts {
        private var counts: ConnectionCounts
        init(perAddress: Int, total: Int) { counts = ConnectionCounts(perAddress: perAddress, total: total) }
        var count: Int { counts.count }
        func admit(_ address: IPAddress?) -> Bool { counts.admit(address) }
        func release(_ address: IPAddress?) { counts.release(address) }
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
    private let start = ContinuousClock.now

    /// A reference, because `#expect` cannot mutate values.
    private final class Trouble {
        private var trouble = StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10))
        var isUnavailable: Bool { trouble.isUnavailable }
        func failed(_ error: StorageError, at now: ContinuousClock.Instant) -> StorageTrouble.Decision {
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

import Foundation
import Server
import Signaling
import Testing
import Wire

/// Helpers for the storage suites. They are in a protocol, so other suites can use the same names for other helpers.
protocol StorageFixtures {}

extension StorageFixtures {
    var now: Timestamp { Timestamp(milliseconds: 1_700_000_000_000) }
    var alice: IdentityID { IdentityID(high: 1, low: 1) }
    var bob: IdentityID { IdentityID(high: 1, low: 2) }
    var carol: IdentityID { IdentityID(high: .max, low: 3) }

    func person(_ number: Int) -> IdentityID { IdentityID(high: 2, low: UInt64(number)) }

    func block(_ owner: IdentityID, _ blocked: IdentityID, at time: Timestamp? = nil) -> Change {
        .block(owner: owner, blocked: blocked, at: time ?? now)
    }

    func report(lines: [String] = [], at time: Timestamp? = nil) -> Report {
        Report(
            match: MatchID(high: .max, low: 0), by: alice, against: bob, reason: "rude",
            lines: lines.map { ChatLine(from: bob, text: $0, at: (time ?? now) - .seconds(5)) }, createdAt: time ?? now)
    }

    /// Returns a trigger that makes the database reject blocks of `id`.
    func refusing(_ id: IdentityID) -> String {
        """
        CREATE TRIGGER refuse BEFORE INSERT ON block WHEN NEW.blocked = X'\(id)'
        BEGIN SELECT RAISE(ABORT, 'refused'); END
        """
    }

    func withDirectory(_ body: (String) async throws -> Void) async throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "confab-storage-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: url) }
        try await body(url.path(percentEncoded: false))
    }

    func withStorage(
        _ bounds: StorageBounds = StorageBounds(), _ body: (any Storage) async throws -> Void
    ) async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory, bounds: bounds)
            try await body(storage)
            try await storage.close()
        }
    }

    func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @discardableResult
    func expect(
        _ code: StorageError.Code, at location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async -> StorageError? {
        let error = await #expect(throws: StorageError.self, sourceLocation: location) { try await body() }
        #expect(error?.code == code, sourceLocation: location)
        return error
    }

    func until(_ what: String, _ condition: () async throws -> Bool) async throws {
        try await eventually { try await condition() ? nil : "timed out: \(what)" }
    }
}

/// A gate that records the sizes of transactions, and delays transactions until it is opened.
actor StorageGate {
    private(set) var sizes: [Int] = []
    private var isOpen = false
    private var held: [CheckedContinuation<Void, Never>] = []

    func enter(_ size: Int) async {
        sizes.append(size)
        if !isOpen { await withCheckedContinuation { held.append($0) } }
    }

    func open() {
        isOpen = true
        for continuation in held { continuation.resume() }
        held = []
    }
}

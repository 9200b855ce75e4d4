import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Storage of broadcasts", .ownThreads)
struct StorageBroadcastTests: StorageFixtures {
    private let session = SessionID("2_session")!
    private let other = SessionID("2_other")!

    private func broadcast(
        _ number: UInt64, _ request: BroadcastRequest? = nil, _ change: (inout BroadcastRecord) -> Void = { _ in }
    ) -> BroadcastRecord {
        var usual = BroadcastRequest()
        usual.hls = HLSOutput()
        var broadcast = BroadcastRecord(
            id: BroadcastID(high: 6, low: number), project: "1000", session: session, request: request ?? usual,
            key: BroadcastKey(high: 7, low: number), createdAt: now + .seconds(Int64(number)))
        change(&broadcast)
        return broadcast
    }

    private var full: BroadcastRecord {
        var request = BroadcastRequest()
        request.hls = HLSOutput(isLowLatency: true, hasDVR: false)
        request.rtmp = [
            RTMPOutput(id: "a", serverURL: "rtmps://live.example.com:443/app", streamName: "secret-1"),
            RTMPOutput(id: "", serverURL: "rtmp://example.com/live?token=x", streamName: "secret-2"),
        ]
        (request.streamMode, request.hasAudio, request.hasVideo) = (.manual, true, false)
        (request.resolution, request.tag, request.maxBitrate) = (.largePortrait, "tag \u{1F3A5}", 3_000_000)
        request.layout = CompositionLayout("custom", stylesheet: "stream {}", screenshareType: "pip")
        request.maxDuration = .seconds(90)
        return broadcast(1, request) { broadcast in
            (broadcast.status, broadcast.reason, broadcast.node) = (.stopped, "user initiated", "n2")
            (broadcast.hlsStatus, broadcast.rtmpStatuses) = (.ended, [.offline, .error])
            broadcast.updatedAt = now + .seconds(90)
            broadcast.selection = [SelectedStream(StreamID(high: 1, low: 1), hasAudio: true, hasVideo: false)]
        }
    }

    @Test func `a broadcast is returned as it was stored last`() async throws {
        try await withStorage { storage in
            #expect(try await storage.broadcast(full.id) == nil)
            try await storage.commit([.broadcastStored(broadcast(1))])
            #expect(try await storage.broadcast(full.id) == broadcast(1))
            try await storage.commit([.broadcastStored(full)])
            #expect(try await storage.broadcast(full.id) == full)
            var plain = BroadcastRequest()
            plain.rtmp = [RTMPOutput(id: "", serverURL: "rtmp://example.com/live", streamName: "x")]
            try await storage.commit([.broadcastStored(broadcast(2, plain))])
            #expect(try await storage.broadcast(broadcast(2).id) == broadcast(2, plain), "without HLS")
        }
    }

    @Test func `lists of broadcasts are newest first, in pages, of one project or one of its sessions`() async throws {
        try await withStorage { storage in
            let all = (1...3).map { number in
                broadcast(UInt64(number)) { if number == 2 { $0.session = other } }
            }
            try await storage.commit((all + [broadcast(9) { $0.project = "2000" }]).map { .broadcastStored($0) })
            var page = try await storage.broadcasts(of: "1000", session: nil, offset: 0, limit: 2)
            #expect(page.count == 3 && page.records == [all[2], all[1]])
            page = try await storage.broadcasts(of: "1000", session: nil, offset: 2, limit: 9)
            #expect(page.count == 3 && page.records == [all[0]])
            page = try await storage.broadcasts(of: "1000", session: other, offset: 0, limit: 9)
            #expect(page.count == 1 && page.records == [all[1]])
        }
    }

    @Test func `running broadcasts survive a restart, also from an earlier version`() async throws {
        try await withDatabases { open in
            var storage = try await open()
            let statuses = BroadcastStatus.allCases
            try await storage.commit(
                statuses.indices.map { index in
                    .broadcastStored(broadcast(UInt64(index)) { $0.status = statuses[index] })
                } + [.broadcastStored(broadcast(9) { $0.node = "n2" })])
            try await storage.close()
            storage = try await open()
            #expect(try await storage.runningBroadcasts(of: "").map(\.status) == [.started])
            #expect(try await storage.runningBroadcasts(of: "n2").map(\.id.low) == [9])
            try await storage.close()
        }
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.execute("DROP TABLE broadcast")
            try await storage.execute("DELETE FROM grdb_migrations WHERE identifier LIKE 'v12 %'")
            try await storage.close()
            let upgraded = try SQLiteStorage(directory: directory)
            try await upgraded.commit([.broadcastStored(full)])
            #expect(try await upgraded.broadcast(full.id) == full)
            try await upgraded.close()
        }
    }

    @Test func `broadcasts that ended are deleted after a while`() async throws {
        try await withStorage { storage in
            let kept = [broadcast(1), broadcast(2) { ($0.status, $0.updatedAt) = (.stopped, now + .seconds(99)) }]
            let ended = [broadcast(3) { $0.status = .stopped }, broadcast(4) { $0.status = .failed }]
            try await storage.commit((kept + ended).map { .broadcastStored($0) })
            #expect(try await storage.deleteOld(.broadcasts, olderThan: now + .seconds(50)) == 2)
            for broadcast in kept { #expect(try await storage.broadcast(broadcast.id) == broadcast) }
        }
    }

    @Test func `a broadcast that was edited by hand into nonsense is reported as damaged`() async throws {
        try await withDatabases { open in
            let storage = try await open()
            try await storage.commit([.broadcastStored(full)])
            try await storage.execute("UPDATE broadcast SET status = 'smoke'")
            await expect(.corrupt) { _ = try await storage.broadcast(full.id) }
            #expect(try await storage.runningBroadcasts(of: "n2").isEmpty, "it does not prevent a start")
            try await storage.close()
        }
    }
}

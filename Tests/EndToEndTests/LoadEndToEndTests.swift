import Foundation
import Robots
import Server
import Testing

@Suite("A load of rooms over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct LoadEndToEndTests {
    @Test("measures a room in which only the loudest are heard, and the time until a visitor sees everyone")
    func loudest() async throws {
        // Four members, so that two of them are not heard.
        let report = try await TestServer.run({ $0.media.loudestStreams = 2 }) { server in
            var load = LoadRun(shape: .rooms(1, of: 4), seconds: 1, process: nil)
            (load.settling, load.visits) = (.milliseconds(200), 2)
            return try await load.run(rooms: "http://127.0.0.1:\(server.port)")
        }
        #expect(report.publishers == 4 && report.subscribers == 4)
        #expect(report.expected > 0)
        #expect(report.firstFramesMedian > 0)
    }

    @Test("measures the media on each path between the nodes that its clients connect to") func paths() async throws {
        let report = try await TestServer.run({ _ in }) { server in
            var load = LoadRun(shape: .rooms(1, of: 4), seconds: 1, process: nil)
            (load.settling, load.visits) = (.milliseconds(200), 2)
            // One server twice, so no relay is needed.
            let node = LoadNode(server: "http://127.0.0.1:\(server.port)")
            return try await load.run(rooms: [node, node])
        }
        let paths = try #require(report.paths)
        #expect(paths.map { [$0.from, $0.to] } == [[1, 1], [1, 2], [2, 1], [2, 2]])
        #expect(paths.allSatisfy { $0.packets > 0 && $0.frames > 0 && $0.delayMost > 0 })
        #expect(report.nodes?.map(\.visits) == [1, 1])
    }
}

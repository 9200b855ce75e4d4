import Foundation
import NIOCore
import NIOPosix
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("A restart with connected clients", .ownThreads, .timeLimit(.minutes(2))) struct RestartTests {
    /// A grace period that no test survives: whatever waits for it fails by the time limit.
    private static let endless: Duration = .seconds(3600)

    @Test(
        "every client hears 1001, and clients that do not answer or send nothing do not keep the port from the next server"
    )
    func handover() async throws {
        let directory = NSTemporaryDirectory() + "confab-handover-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let events = Events()
        let port = try TestPorts.next()
        let (clients, silent, idle, identities) = try await TestServer.run(
            dataDirectory: directory,
            {
                $0.port = port
                $0.shutdown.grace = Self.endless
                // These close silent clients too, and must not be what ends the wait.
                $0.rules.pingInterval = Self.endless
                $0.limits.requestHeaderTimeout = Self.endless
            }
        ) { server in
            var clients: [SocketClient] = []
            var identities: [String?] = []
            for _ in 0..<20 {
                let client = try await SocketClient.connect(port: server.port)
                identities.append(try await client.greet().identity)
                clients.append(client)
            }
            let silent = try await SocketClient.connect(port: server.port, answersClose: false)
            try await silent.greet()
            // A connection without a request, and one that keeps its connection after a request.
            let mute = try await Self.connect(server.port)
            let kept = try await Self.connect(server.port)
            try await kept.writeAndFlush(ByteBuffer(string: "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")).get()
            server.stop()
            for client in clients + [silent] { #expect(try await client.hearClose() == 1001) }
            events.note("clients closed")
            return (clients, silent, [mute, kept], identities)
        }
        events.note("server ended")
        try await eventually {
            do {
                try await TestServer.run(dataDirectory: directory, { $0.port = port }) { server in
                    events.note("next server ready")
                    for (client, identity) in zip(clients, identities) {
                        let welcome = try await client.reconnect()
                        #expect(
                            !welcome.resumed && welcome.identity == nil && identity != nil,
                            "the same person, started afresh")
                    }
                    events.note("clients returned")
                }
                return nil
            } catch let error as IOError where error.errnoCode == EADDRINUSE {
                // Another test starts a program, and its child has not yet closed the copy of the first server's socket.
                return "\(error)"
            }
        }
        await silent.drop()
        for channel in idle { channel.close(promise: nil) }
        #expect(events.all == ["clients closed", "server ended", "next server ready", "clients returned"])
    }

    @Test("a server that starts while another one stops waits for the data directory")
    func waiting() async throws {
        let directory = NSTemporaryDirectory() + "confab-lock-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let events = Events()
        let lock = Mutex<DirectoryLock?>(try DirectoryLock(directory: directory))
        _ = try DirectoryLock(directory: directory, timeout: .seconds(60)) { note in
            events.note("waiting")
            #expect(note.contains("process \(getpid())"))
            events.note("released")
            lock.withLock { $0 = nil }
        }
        events.note("taken")
        #expect(events.all == ["waiting", "released", "taken"])
    }

    private static func connect(_ port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: port)
            .get()
    }

    private final class Events: Sendable {
        private let events = Mutex<[String]>([])
        var all: [String] { events.withLock { $0 } }
        func note(_ event: String) { events.withLock { $0.append(event) } }
    }
}

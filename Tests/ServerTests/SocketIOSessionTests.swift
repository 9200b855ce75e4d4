import Cluster
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

@Suite("A Socket.IO session") struct SocketIOSessionTests {
    private final class FlushCounter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private(set) var count = 0

        func flush(context: ChannelHandlerContext) {
            count += 1
            context.flush()
        }
    }

    private static let home = IPAddress("203.0.113.1")!
    private static let away = IPAddress("203.0.113.2")!

    private func project() throws -> Project {
        try #require(Project(apiKey: "45000001", secret: String(repeating: "b", count: 40)))
    }

    @Test("a payload of many packets is flushed once")
    func flushing() async throws {
        let (loop, project) = (MultiThreadedEventLoopGroup.singleton.next(), try project())
        let server = try await ServerBootstrap(group: loop).bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let channel = try await ClientBootstrap(group: loop).connect(to: address).get()
        let event = #"5:1::{"name":"next"}"#
        let payload = String(repeating: "\u{FFFD}\(event.utf8.count)\u{FFFD}\(event)", count: 20)
        let flushes = try await loop.submit { () -> [Int] in
            let gateway = try Gateway.forTests(project, on: loop)
            let (counter, session) = (
                FlushCounter(),
                SocketIOSession(id: "1", address: Self.home, directory: SocketIODirectory(gateway: gateway))
            )
            gateway.register(session)
            let webSocket = WebSocketHandler(gateway: gateway, user: session, messageSize: 64 << 10)
            try channel.pipeline.syncOperations.addHandlers(counter, webSocket)
            let opening = counter.count
            session.posted(Array(payload.utf8))
            defer { session.goAway(.goingAway) }
            return [opening, counter.count - opening]
        }.get()
        #expect(flushes == [1, 1])
        for channel in [channel, server] { channel.close(promise: nil) }
    }

    @Test("on a node of a cluster, ids begin with its name, so that a load balancer knows where they belong")
    func nodes() async throws {
        let (loop, project) = (MultiThreadedEventLoopGroup.singleton.next(), try project())
        for (tag, prefix) in [(NodeTag(node: 12, life: 7), "n12-"), (nil, "")] {
            let (old, new) = try await loop.submit {
                let directory = SocketIODirectory(gateway: try Gateway.forTests(project, on: loop, as: tag))
                let handshake = try directory.handshake(from: Self.home)
                let session = directory.open(.four, .polling, canRecover: true, from: Self.home)
                return (String(handshake.prefix { $0 != ":" }), session.id)
            }.get()
            for id in [old, new] { #expect(id.hasPrefix(prefix) && id.count == 20 + prefix.count, "\(id)") }
        }
    }

    @Test("a client that continues from another address is counted and banned there")
    func moving() async throws {
        let (loop, project) = (MultiThreadedEventLoopGroup.singleton.next(), try project())
        let log = try await loop.submit { () -> [String] in
            let gateway = try Gateway.forTests(project, on: loop) { $0.limits.socketsPerAddress = 1 }
            let directory = SocketIODirectory(gateway: gateway)
            var log: [String] = []
            /// Notes the outcome of a request, and which addresses are full after it.
            func note(_ what: String, _ request: () throws -> String) {
                let outcome: String
                do { outcome = try request() } catch { outcome = (error as? WireError)?.code.rawValue ?? "\(error)" }
                let full = [Self.home, Self.away].filter { !gateway.hasRoom(for: $0) }
                log.append("\(what): \(outcome), full: \(full)")
            }
            func use(_ id: String, from address: IPAddress, moves: Bool = true) throws -> String {
                let session = try directory.session(id, from: address, moves: moves)
                return session.map { "is at \($0.address)" } ?? "unknown"
            }
            let id = try String(directory.handshake(from: Self.home).prefix { $0 != ":" })
            note("a post over a WebSocket") { try use(id, from: Self.away, moves: false) }
            note("a poll") { try use(id, from: Self.away) }
            note("a handshake at the new address") { try directory.handshake(from: Self.away) }
            note("a handshake at the old one") {
                try directory.handshake(from: Self.home).isEmpty ? "empty" : "admitted"
            }
            note("a poll from a full address") { try use(id, from: Self.home) }
            let ban = Ban(subject: .address("203.0.113.2"), reason: "", createdAt: Timestamp(milliseconds: 0))
            gateway.update(bans: [ban], read: gateway.beginReadingBans())
            note("a poll after the ban") { try use(id, from: Self.away) }
            note("a poll from elsewhere") { try use(id, from: Self.home) }
            gateway.drain()
            return log
        }.get()
        #expect(
            log == [
                "a post over a WebSocket: is at 203.0.113.1, full: [203.0.113.1]",
                "a poll: is at 203.0.113.2, full: [203.0.113.2]",
                "a handshake at the new address: too_many_connections, full: [203.0.113.2]",
                "a handshake at the old one: admitted, full: [203.0.113.1, 203.0.113.2]",
                "a poll from a full address: too_many_connections, full: [203.0.113.1, 203.0.113.2]",
                "a poll after the ban: banned, full: [203.0.113.1]",
                "a poll from elsewhere: unknown, full: [203.0.113.1]",
            ])
    }
}

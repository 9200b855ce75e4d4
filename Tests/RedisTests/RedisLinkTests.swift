#if os(Linux)
import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Redis

/// Sockets of the client, as the kernel lists them.
@Suite(.timeLimit(.minutes(1))) struct RedisLinkTests {
    /// The states of the connections to a port of this machine that are open or being opened: `01` is established, `02` waits
    /// for the server (https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html).
    private func openConnections(to port: Int) throws -> [Substring] {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        return table.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 3, let remote = fields[2].split(separator: ":").last, Int(remote, radix: 16) == port
            else { return nil }
            return ["01", "02"].contains(fields[3]) ? fields[3] : nil
        }
    }

    /// A server that accepts no connection.
    private func listener(backlog: Int32) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0).get()
    }

    @Test func `closing ends an attempt to connect`() async throws {
        // The kernel keeps one connection for this server. It lets others wait.
        let server = try await listener(backlog: 0)
        let port = try #require(server.localAddress?.port)
        let only = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
        let observed = try ObservedClient(RedisConfiguration(.servers([try RedisURL("redis://127.0.0.1:\(port)")])))
        try await until("the client waits for the server") { try openConnections(to: port).contains("02") }
        await observed.client.close()
        #expect(try openConnections(to: port) == ["01"], "the other connection")
        try await only.close()
        try await server.close()
    }

    @Test func `closing waits until the connections are closed`() async throws {
        let server = try await listener(backlog: 8)
        let port = try #require(server.localAddress?.port)
        let observed = try ObservedClient(RedisConfiguration(.servers([try RedisURL("redis://127.0.0.1:\(port)")])))
        try await until("the client is connected") { try openConnections(to: port) == ["01"] }
        await observed.client.close()
        #expect(try openConnections(to: port) == [])
        try await server.close()
    }
}
#endif

#if os(Linux)
import Foundation
import Synchronization
import Testing

@testable import Server

@Suite("What is reported to a supervisor", .ownThreads, .timeLimit(.minutes(3))) struct SupervisionTests {
    /// The supervisor's side: a datagram socket. A thread of its own reads it all the time, because the kernel keeps few datagrams
    /// and drops the others.
    private final class Listener: Sendable {
        let path = NSTemporaryDirectory() + "confab-notify-\(UUID().uuidString.prefix(8))"
        private let descriptor: Int32
        private let received = Received()

        /// Shared with the thread, which outlives the listener for a moment.
        private final class Received: Sendable {
            let messages = Mutex<[String]>([])
        }

        init() throws {
            let opened = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            descriptor = opened
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let status = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(opened, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(status == 0)
            Thread.detachNewThread { [received] in
                var buffer = [UInt8](repeating: 0, count: 256)
                while true {
                    let count = recv(opened, &buffer, buffer.count, 0)
                    guard count > 0 else { break }
                    let message = String(decoding: buffer[..<count], as: UTF8.self)
                    received.messages.withLock { $0.append(message) }
                }
                close(opened)
            }
        }

        deinit {
            // Ends the thread, which then closes the socket.
            shutdown(descriptor, Int32(SHUT_RDWR))
            unlink(path)
        }

        /// All messages so far.
        var messages: [String] { received.messages.withLock(\.self) }
    }

    @Test("a server is ready, feeds the watchdog from its event loop, and says that it stops")
    func server() async throws {
        let listener = try Listener()
        let supervisor = try #require(
            Supervisor(environment: ["NOTIFY_SOCKET": listener.path, "WATCHDOG_USEC": "400000"]))
        let fed = try await TestServer.run(supervisor: supervisor) { _ in
            try await eventually {
                let messages = listener.messages
                let feeds = messages.count { $0 == "WATCHDOG=1" }
                return feeds >= 2 && messages.contains("READY=1") ? nil : "only \(messages) arrived"
            }
            return listener.messages
        }
        #expect(Set(fed) == ["READY=1", "WATCHDOG=1"])
        try await eventually {
            let rest = Set(listener.messages.dropFirst(fed.count))
            return rest.subtracting(["WATCHDOG=1"]) == ["STOPPING=1"] ? nil : "only \(rest) arrived"
        }
    }

    @Test("the watchdog's timeout counts only for the process that it is meant for")
    func watchdog() throws {
        let path = "/run/systemd/notify"
        func timeout(_ more: [String: String]) throws -> Duration? {
            let environment = ["NOTIFY_SOCKET": path].merging(more) { $1 }
            return try #require(Supervisor(environment: environment)).watchdogTimeout
        }
        #expect(try timeout([:]) == nil)
        #expect(try timeout(["WATCHDOG_USEC": "30000000"]) == .seconds(30))
        #expect(try timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "\(getpid())"]) == .seconds(30))
        #expect(try timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"]) == nil)
        #expect(try timeout(["WATCHDOG_USEC": "never"]) == nil)
    }

    @Test("without a socket, or with a strange one, there is no supervisor, and one that is gone does no harm")
    func none() throws {
        for environment in [
            [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "/"], ["NOTIFY_SOCKET": "relative"],
            ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 200)],
        ] {
            #expect(Supervisor(environment: environment) == nil, "\(environment)")
        }
        for path in ["/no/such/socket", "@confab-no-such-name"] {
            try #require(Supervisor(environment: ["NOTIFY_SOCKET": path])).tell(.ready)
        }
    }
}
#endif

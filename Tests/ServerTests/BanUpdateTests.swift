import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

/// The server reads all bans again when another process has written to the database, on the loop that carries signaling.
@Suite("A change of bans") struct BanUpdateTests {
    private static let start = Timestamp(milliseconds: 0)
    private static let home = IPAddress("192.0.2.1")!

    /// A connection that counts how often it is expelled. It stays open, so that it can be expelled again.
    private final class Line: GatewayConnection {
        let address = BanUpdateTests.home
        var group = 0
        var slot: AddressBudgets.Slot?
        var excess: Budget?
        var queuedBytes: Int { 0 }
        private(set) var expulsions = 0
        func drop() {}
        func tick() {}
        func expel(_ error: WireError, _ code: CloseCode) { expulsions += 1 }
        func goAway(_: CloseCode) {}
    }

    private static func ban(_ text: String) -> Ban {
        Ban(subject: .address(text), reason: "", createdAt: start)
    }

    @Test("bans that did not change are not compared with the connections again")
    func unchanged() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let project = try #require(Project(apiKey: "45000001", secret: String(repeating: "b", count: 40)))
        let (bans, more) = ([Self.ban("192.0.2.0/24")], [Self.ban("192.0.2.0/24"), Self.ban("198.51.100.7")])
        let expulsions = try await loop.submit { () -> [Int] in
            let gateway = try Gateway.forTests(project, on: loop)
            let line = Line()
            gateway.register(line)
            return [bans, bans, bans, more].map { bans in
                gateway.update(bans: bans, read: gateway.beginReadingBans())
                return line.expulsions
            }
        }.get()
        #expect(expulsions == [1, 1, 1, 2])
    }
}

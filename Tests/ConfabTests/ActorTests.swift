import Foundation
import Testing
import Wire

@testable import Confab

@Suite("Actors over a simulated network")
struct ActorTests {
    private func client(on network: SimulatedNetwork) -> ConfabClient {
        ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()),
            in: network.dependencies)
    }

    @Test("an address that is no server's is refused with a sentence")
    func invalidAddress() async {
        let client = ConfabClient(server: URL(string: "ftp://example.org")!, credential: .anonymous(MemoryIdentity()))
        await #expect(throws: ConfabError.invalidServerURL) { try await client.connect() }
    }

    @Test("a client and its session are released with the application's references")
    func release() async {
        let network = SimulatedNetwork(seed: 1)
        network.breaks = 0
        weak var core: ClientCore?
        weak var session: SessionCore?
        do {
            let client = client(on: network)
            client.core.connectNow()
            network.run(for: .seconds(2))
            let joined = await client.session(SessionID("session")!, token: "token")
            joined.core.connect { _ in }
            network.run(for: .seconds(2))
            #expect(joined.status == .connected)
            (core, session) = (client.core, joined.core)
            #expect(core != nil && session != nil)
        }
        #expect(session == nil)
        #expect(core == nil)
    }

    /// A network whose sockets close before the transport has returned them.
    private struct Refusing: Transport {
        func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
            report(.closed(.abnormal))
            return Socket()
        }
        func run(
            _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
        ) -> @Sendable () -> Void {
            {}
        }
        private struct Socket: TransportSocket {
            func send(_ text: [UInt8]) {}
            func close(_ code: CloseCode) {}
        }
    }

    @Test("a socket that closes while it is opened is not kept")
    func refusedSocket() {
        let network = SimulatedNetwork(seed: 3)
        var dependencies = network.dependencies
        dependencies.transport = Refusing()
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), in: dependencies)
        client.core.connectNow()
        network.run(for: .seconds(10))
        #expect(client.core.socketCount == 0)
    }

    @Test("connecting again fails in time while the server cannot be reached")
    func unreachable() async {
        let network = SimulatedNetwork(seed: 4)
        network.breaks = 0
        let client = client(on: network)
        client.core.connectNow()
        network.run(for: .seconds(2))
        #expect(client.state == .online)
        network.fail(in: 0...0, for: 1_000_000...1_000_000)
        network.run(for: .seconds(120))
        let code = LockedValue<ConfabError.Code?>(nil)
        let begin = network.now
        let connecting = Task {
            do throws(ConfabError) { try await client.connect() } catch { code.withLock { $0 = error.code } }
        }
        while code.withLock({ $0 }) == nil, network.now - begin < .seconds(600) {
            network.run(for: .milliseconds(10))
            await Task.yield()
        }
        #expect(code.withLock { $0 } == .connectFailed)
        connecting.cancel()
    }

    @Test("all iterations end when the client leaves")
    func iterationsEnd() async {
        let network = SimulatedNetwork(seed: 2)
        network.breaks = 0
        let client = client(on: network)
        let (states, notices) = (client.states.makeAsyncIterator(), client.notices.makeAsyncIterator())
        client.core.connectNow()
        network.run(for: .seconds(2))
        #expect(await states.next() == .online)
        await client.leave()
        #expect(await states.next() == .closed(nil))
        #expect(await states.next() == nil)
        while let notice = await notices.next() { #expect(notice == .identityChanged) }
        for await event in client.roulette.events { Issue.record("\(event)") }
        for await event in client.calls.events { Issue.record("\(event)") }
        for await event in client.contacts.events { Issue.record("\(event)") }
        for await event in client.presence.events { Issue.record("\(event)") }
        for await event in client.nearby.events { Issue.record("\(event)") }
        for await error in client.push.failures { Issue.record("\(error)") }
        await #expect(throws: ConfabError.closed) { try await client.connect() }
    }
}

import Testing
import Wire

@testable import Confab

@Suite("A device that belongs to another person")
struct PersonChangeTests {
    private let now = Timestamp(milliseconds: 1_000_000)
    private let person = PersonID(high: 0, low: 9)

    private func machine(identity: String? = "a_old") -> ClientMachine {
        var machine = ClientMachine(
            hello: Hello(), usesToken: false, options: .init(), random: SplitMix(seed: 1))
        machine.identity = identity
        return machine
    }

    /// Connects the machine's newest line, and returns the hello that it sent and the effects of the welcome.
    private func greet(
        _ machine: inout ClientMachine, _ opening: [ClientMachine.Effect]
    ) throws -> (socket: ClientMachine.Socket, hello: Hello, effects: [ClientMachine.Effect]) {
        let socket = try #require(
            opening.compactMap { if case .open(let socket) = $0 { socket } else { nil } }.last)
        let sent = machine.handle(.opened(socket), now: now)
        let bytes = try #require(sent.compactMap { if case .send(let bytes, _) = $0 { bytes } else { nil } }.first)
        guard case .hello(let hello) = try Envelope<ClientMessage>.decode(bytes).message else {
            throw ConfabError(.unexpectedAnswer, "The first message is no hello.")
        }
        var welcome = Welcome()
        welcome.resume = .init(secret: "resume", grace: .seconds(30))
        if hello.identity == nil { welcome.identity = "a_new" }
        let effects = machine.handle(.received(ServerMessage.welcome(welcome).encode(), on: socket), now: now)
        return (socket, hello, effects)
    }

    private func starts(_ effects: [ClientMachine.Effect]) -> [ConnectionEvent.Start] {
        effects.compactMap { if case .line(.connected(_, let start)) = $0 { start } else { nil } }
    }

    @Test("after a link, the server's close begins another connection with the same identity")
    func linked() throws {
        var machine = machine()
        let first = try greet(&machine, machine.handle(.connect, now: now))
        let verb = ClientMessage.presence(.useLink(.init(code: "ABCD-EFGH", label: nil)))
        _ = machine.handle(.request(.init(rawValue: 1), verb), now: now)
        let linked = ServerMessage.presence(.linked(.init(re: 1, person: person)))
        _ = machine.handle(.received(linked.encode(seq: 1, ack: 1), on: first.socket), now: now)
        // This request gets no answer, so that its part may send it again.
        _ = machine.handle(.request(.init(rawValue: 2), .presence(.devices)), now: now)
        let closed = machine.handle(.closed(first.socket, .replaced), now: now)
        let codes = closed.compactMap { effect -> ConfabError.Code? in
            if case .answered(_, .failure(let error)) = effect { error.code } else { nil }
        }
        #expect(codes == [.connectionRestarted])
        #expect(closed.contains { if case .line(.expired) = $0 { true } else { false } })
        #expect(!closed.contains { if case .line(.ended) = $0 { true } else { false } })
        #expect(machine.state == .connecting(attempt: 1))
        let second = try greet(&machine, closed)
        #expect(second.hello.identity == "a_old")
        #expect(second.hello.resume == nil)
        #expect(starts(second.effects) == [.restarted])
        #expect(machine.state == .online)
    }

    @Test("an unlinked device stays the same identity, and a deleted one becomes a new one")
    func unlinkedAndDeleted() throws {
        for (notice, identity) in [(PresenceNotice.unlinked, "a_old"), (.deleted, nil)] {
            var machine = machine()
            let first = try greet(&machine, machine.handle(.connect, now: now))
            let bytes = ServerMessage.presence(notice).encode(seq: 1, ack: 0)
            _ = machine.handle(.received(bytes, on: first.socket), now: now)
            let second = try greet(&machine, machine.handle(.closed(first.socket, .replaced), now: now))
            #expect(second.hello.identity == identity)
            #expect(machine.identity == identity ?? "a_new")
        }
    }

    @Test("after the deletion, a dropped connection is not resumed with the deleted identity")
    func deletedAndDropped() throws {
        var machine = machine()
        let first = try greet(&machine, machine.handle(.connect, now: now))
        let bytes = ServerMessage.presence(.deleted).encode(seq: 1, ack: 0)
        _ = machine.handle(.received(bytes, on: first.socket), now: now)
        _ = machine.handle(.closed(first.socket, .abnormal), now: now)
        let next = try #require(machine.nextTimeout)
        let second = try greet(&machine, machine.handleTimeout(now: next))
        #expect(second.hello.identity == nil)
    }

    @Test("the next replacement closes the client, because the device belongs to its person again")
    func replacedLater() throws {
        var machine = machine()
        let first = try greet(&machine, machine.handle(.connect, now: now))
        let bytes = ServerMessage.presence(.unlinked).encode(seq: 1, ack: 0)
        _ = machine.handle(.received(bytes, on: first.socket), now: now)
        let second = try greet(&machine, machine.handle(.closed(first.socket, .replaced), now: now))
        _ = machine.handle(.closed(second.socket, .replaced), now: now)
        guard case .closed(let error) = machine.state else {
            Issue.record("The client is \(machine.state.word).")
            return
        }
        #expect(error != nil)
    }
}

import Testing
import Wire

@testable import Confab

@Suite("A session's life")
struct SessionMachineTests {
    private let id = SessionID("session")!
    private let own = ConnectionID(high: 1, low: 1)
    private let other = ConnectionID(high: 2, low: 2)
    private let error = ConfabError("token_expired", "Ask for a new token.")

    private func joined(_ others: [ConnectionID] = []) -> SessionMachine.Input {
        var joined = SessionNotice.Joined()
        (joined.session, joined.connection.id) = (id, own)
        joined.connections = others.map { ConnectionInfo(id: $0, createdAt: Timestamp(milliseconds: 0), data: "") }
        return .joined(.success(joined))
    }

    private func statuses(_ effects: [SessionMachine.Effect]) -> [Session.Status] {
        effects.compactMap { if case .status(let status) = $0 { status } else { nil } }
    }

    private func connected() -> SessionMachine {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        _ = machine.handle(joined())
        return machine
    }

    @Test("joining answers the caller before it reports the members")
    func joining() {
        var machine = SessionMachine()
        #expect(machine.handle(.connect) == [.status(.connecting), .join])
        let effects = machine.handle(joined([other]))
        #expect(effects.prefix(2) == [.status(.connected), .joinEnded(nil)])
        #expect(effects.count == 3)
        #expect(machine.connections.map(\.id) == [other])
        #expect(machine.connection?.id == own)
    }

    @Test("a refused join fails, then disconnects, and can be tried again")
    func refused() {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        let effects = machine.handle(.joined(.failure(error)))
        #expect(
            effects == [
                .status(.failed), .event(.failed(error)), .joinEnded(error), .status(.notConnected),
                .event(.disconnected(.networkDisconnected)), .leaveEnded,
            ])
        #expect(machine.handle(.connect) == [.status(.connecting), .join])
    }

    @Test("a resumed connection continues the session")
    func resuming() {
        var machine = connected()
        #expect(machine.handle(.reconnecting) == [.status(.reconnecting)])
        #expect(machine.handle(.resumed) == [.status(.connected)])
    }

    @Test("a lost connection fails before it disconnects")
    func losing() {
        var machine = connected()
        _ = machine.handle(.reconnecting)
        let effects = machine.handle(.lost(error))
        #expect(statuses(effects) == [.failed, .notConnected])
        #expect(machine.connection == nil)
        #expect(machine.handle(.lost(error)).isEmpty)
    }

    @Test("leaving while the connection is being restored happens afterwards")
    func leavingLater() {
        var machine = connected()
        _ = machine.handle(.reconnecting)
        #expect(machine.handle(.disconnect).isEmpty)
        #expect(machine.handle(.resumed) == [.status(.connected), .status(.disconnecting), .leave])
        #expect(
            machine.handle(.leaveAnswered) == [
                .status(.notConnected), .event(.disconnected(.clientDisconnected)), .leaveEnded,
            ])
    }

    @Test("a client that is removed learns the reason, and later messages change nothing")
    func removed() {
        var machine = connected()
        let effects = machine.handle(.notice(.left(.init(session: id, reason: .forceDisconnected))))
        #expect(statuses(effects) == [.disconnecting, .notConnected])
        #expect(effects.contains(.event(.disconnected(.forceDisconnected))))
        let late = SessionNotice.Signal(session: id, from: other, type: nil, data: "late")
        #expect(machine.handle(.notice(.signal(late))).isEmpty)
    }

    @Test("the streams of a member that leaves end before the member does")
    func leavingMember() {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        _ = machine.handle(joined([other]))
        var info = StreamInfo()
        (info.id, info.connection) = (StreamID(high: 3, low: 3), other)
        _ = machine.handle(.notice(.streamCreated(.init(session: id, stream: info))))
        #expect(machine.streams.map(\.id) == [info.id])
        let gone = SessionNotice.ConnectionDestroyed(session: id, connection: other, reason: .networkDisconnected)
        let events = machine.handle(.notice(.connectionDestroyed(gone))).compactMap { effect -> Session.Event? in
            if case .event(let event) = effect { event } else { nil }
        }
        guard events.count == 2 else { return #expect(Bool(false), "\(events)") }
        #expect(events[0] == .streamDestroyed(MediaStream(info), .networkDisconnected))
        if case .connectionDestroyed(let member, .networkDisconnected) = events[1] {
            #expect(member.id == other)
        } else {
            #expect(Bool(false), "\(events[1])")
        }
        #expect(machine.streams.isEmpty && machine.connections.isEmpty)
    }
}

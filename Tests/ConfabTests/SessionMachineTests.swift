import Testing
import Wire

@testable import Confab

/// The life of a session as only Swift has it; `protocol/scripts/session.json` has the rest.
@Suite("A session's life")
struct SessionMachineTests {
    private let id = SessionID("session")!
    private let own = ConnectionID(high: 1, low: 1)
    private let error = ConfabError("token_expired", "Ask for a new token.")

    private func statuses(_ effects: [SessionMachine.Effect]) -> [Session.Status] {
        effects.compactMap { if case .status(let status) = $0 { status } else { nil } }
    }

    private func connected() -> SessionMachine {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        var joined = SessionNotice.Joined()
        (joined.session, joined.connection.id) = (id, own)
        _ = machine.handle(.joined(.success(joined)))
        return machine
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

    private func events(_ effects: [SessionMachine.Effect]) -> [Session.Event] {
        effects.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    @Test("recordings start and stop once each, also those from before the client joined")
    func recordings() {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        var joined = SessionNotice.Joined()
        let (first, second) = (ArchiveInfo(ArchiveID(high: 1, low: 1), name: "Meeting"), ArchiveID(high: 1, low: 2))
        (joined.session, joined.connection.id, joined.archives) = (id, own, [first])
        #expect(events(machine.handle(.joined(.success(joined)))) == [.archiveStarted(Session.Archive(first))])
        let info = ArchiveInfo(second, asks: true)
        let started = SessionNotice.archiveStarted(.init(session: id, info))
        #expect(events(machine.handle(.notice(started))) == [.archiveStarted(Session.Archive(info))])
        #expect(machine.handle(.notice(started)).isEmpty)
        #expect(Session.Archive(info).asksConsent && Session.Archive(first).name == "Meeting")
        let stopped = SessionNotice.archiveStopped(.init(session: id, archive: second))
        #expect(events(machine.handle(.notice(stopped))) == [.archiveStopped(Session.Archive(info))])
        #expect(machine.handle(.notice(stopped)).isEmpty)
    }

    @Test("broadcasts are reported once each, also those that run when the client joins")
    func broadcasts() {
        var machine = SessionMachine()
        _ = machine.handle(.connect)
        var joined = SessionNotice.Joined()
        let (first, second) = (BroadcastInfo(BroadcastID(high: 1, low: 1)), BroadcastID(high: 1, low: 2))
        (joined.session, joined.connection.id, joined.broadcasts) = (id, own, [first])
        #expect(events(machine.handle(.joined(.success(joined)))) == [.broadcastStarted(Session.Broadcast(first))])
        let info = BroadcastInfo(second, asks: true)
        let started = SessionNotice.broadcastStarted(.init(session: id, info))
        #expect(events(machine.handle(.notice(started))) == [.broadcastStarted(Session.Broadcast(info))])
        #expect(machine.handle(.notice(started)).isEmpty)
        #expect(Session.Broadcast(info).asksConsent && !Session.Broadcast(first).asksConsent)
        let stopped = SessionNotice.broadcastStopped(.init(session: id, broadcast: second))
        #expect(events(machine.handle(.notice(stopped))) == [.broadcastStopped(Session.Broadcast(info))])
        #expect(machine.handle(.notice(stopped)).isEmpty)
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
}

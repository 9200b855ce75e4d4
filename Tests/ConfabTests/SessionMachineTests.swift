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

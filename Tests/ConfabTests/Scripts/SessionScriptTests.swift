import Testing
import Wire

@testable import Confab

private struct SessionPlayer: ScriptPlayer {
    private var machine = SessionMachine()
    private var status = Session.Status.notConnected
    private var wasConnected = false

    init(settings: JSONValue) {}
    var nextTimeout: Timestamp? { nil }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue] { [] }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        switch word {
        case "connect": return items(machine.handle(.connect))
        case "reconnecting": return items(machine.handle(.reconnecting))
        case "resumed": return items(machine.handle(.resumed))
        // As in `SessionCore`: while connecting, the join fails, or moves to the new connection.
        case "expired", "restarted":
            return machine.status == .connecting ? [] : items(machine.handle(.lost(.connectionRestarted)))
        default: break
        }
        let sent = (input[word] ?? .null).merged(with: ["re": word == "answer" ? .integer(1) : .null])
        switch try Envelope<ServerMessage>.decode(sent.bytes).message {
        case .session(.joined(let joined)): return items(machine.handle(.joined(.success(joined))))
        case .session(let notice): return items(machine.handle(.notice(notice)))
        case .error(let failure): return items(machine.handle(.joined(.failure(ConfabError(failure.error)))))
        default: return []
        }
    }

    private mutating func items(_ effects: [SessionMachine.Effect]) -> [JSONValue] { effects.compactMap { item($0) } }

    private mutating func item(_ effect: SessionMachine.Effect) -> JSONValue? {
        switch effect {
        case .join: return ["send": "session.join"]
        case .leave: return ["send": "session.leave"]
        case .joinEnded(let error?): return ["failed": "join", "code": .string(error.code.rawValue)]
        case .status(let status):
            defer { (self.status, wasConnected) = (status, wasConnected || status == .connected) }
            switch status {
            case .connected: return [self.status == .reconnecting ? "reconnected" : "connected": .bool(true)]
            case .reconnecting: return ["reconnecting": .bool(true)]
            default: return nil
            }
        case .event(.disconnected(let reason)):
            return wasConnected ? ["disconnected": .string(reason.rawValue)] : nil
        case .event(.connectionCreated(let member)): return ["member": .string("\(member.id)")]
        case .event(.connectionDestroyed(let member, let reason)):
            return ["memberGone": .string("\(member.id)"), "reason": .string(reason.rawValue)]
        case .event(.streamCreated(let stream)): return ["stream": .string("\(stream.id)")]
        case .event(.streamDestroyed(let stream, let reason)):
            return ["streamGone": .string("\(stream.id)"), "reason": .string(reason.rawValue)]
        default: return nil
        }
    }
}

@Test("the scripts of a session", arguments: ScriptFile.scripts("session"))
func sessionScripts(_ script: Script) throws { try script.play(on: SessionPlayer.self) }

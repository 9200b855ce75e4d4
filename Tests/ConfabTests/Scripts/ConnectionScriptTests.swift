import Testing
import Wire

/// A `SignalClient` on sockets that the script opens and closes.
private struct ConnectionPlayer: ScriptPlayer {
    private var line: SignalClient
    private var socket: SignalClient.Socket?
    private var seq: UInt64 = 0
    private var requests: UInt64 = 0

    init(settings: JSONValue) {
        var hello = Hello()
        (hello.identity, hello.name, hello.token) =
            (settings["identity"]?.string, settings["name"]?.string, settings["token"]?.string)
        line = SignalClient(hello: hello, random: LongestDelays())
    }

    var nextTimeout: Timestamp? { line.nextTimeout }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue] { items(line.handleTimeout(now: now)) }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        let event: SignalClient.Event
        switch word {
        case "connect": event = .connect
        case "leave": event = .leave
        case "network": event = .networkChanged
        case "opens": event = .opened(try #require(socket))
        case "closes":
            event = .closed(try #require(socket), CloseCode(rawValue: UInt16(try #require(input["closes"]?.integer))))
        case "text": event = .received(Array(try #require(input["text"]?.string).utf8), on: try #require(socket))
        case "request":
            requests += 1
            let message = input.asMessage(try #require(input["request"]?.string))
            event = .request(.init(rawValue: requests), try Envelope<ClientMessage>.decode(message.bytes).message)
        default: event = .received(numbered(input["server"] ?? .null).bytes, on: try #require(socket))
        }
        let effects = line.handle(event, now: now)
        // A request that moved is sent after the effects of the welcome.
        let isDue = word == "server" && line.nextTimeout.map { $0 <= now } == true
        return items(effects + (isDue ? line.handleTimeout(now: now) : []))
    }

    private mutating func numbered(_ message: JSONValue) -> JSONValue {
        let type = message["type"]?.string ?? ""
        if type == "welcome", message["resumed"]?.bool != true { seq = 0 }
        if ["welcome", "error", "ack", "pong"].contains(type) || message["seq"] != nil { return message }
        seq += 1
        return message.merged(with: ["seq": .integer(Int64(seq))])
    }

    private mutating func items(_ effects: [SignalClient.Effect]) -> [JSONValue] {
        for case .open(let socket) in effects { self.socket = socket }
        return effects.compactMap(item)
    }

    private func item(_ effect: SignalClient.Effect) -> JSONValue? {
        switch effect {
        case .open(let socket): return ["open": .bool(true), "at": socket.node.map { .string($0) } ?? .null]
        case .send(let bytes, _): return try? .message("send", bytes)
        case .close(_, let code): return ["close": .integer(Int64(code.rawValue))]
        case .connected(_, .first): return ["connected": "first"]
        case .connected(_, .resumed): return ["connected": "resumed"]
        case .connected(_, .restarted): return ["connected": "restarted"]
        case .reconnecting: return ["reconnecting": .bool(true)]
        case .expired: return ["expired": .bool(true)]
        case .answered(let id, .error(let failure)): return failed(id, failure.error)
        case .answered(let id, let message):
            return ["answered": .integer(Int64(id.rawValue)), "type": .string(message.type)]
        case .failed(let id, let error): return failed(id, error)
        case .event(let message): return ["event": .string(message.type)]
        case .unreadable: return nil
        case .ended(let ending):
            let error: JSONValue = ending.error.map { .string($0.code.rawValue) } ?? .null
            return ["ended": .integer(Int64(ending.code.rawValue)), "error": error]
        }
    }

    private func failed(_ id: SignalClient.RequestID, _ error: WireError) -> JSONValue {
        [
            "failed": .integer(Int64(id.rawValue)), "code": .string(error.code.rawValue),
            "retryable": .bool(error.retryable),
        ]
    }
}

@Test("the scripts of a connection", arguments: ScriptFile.scripts("connection"))
func connectionScripts(_ script: Script) throws { try script.play(on: ConnectionPlayer.self) }

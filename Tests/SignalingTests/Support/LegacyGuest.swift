import Signaling
import Testing
import Wire

/// A RouletteTok client driven by a test. It parses packets like the iOS client of 2012, and fails where that client
/// would have crashed.
final class LegacyGuest {
    enum Heard: Equatable {
        case initial(Admission)
        case subscribe(Admission)
        case empty
        case disconnectPartner
        case error(String)
    }

    private unowned let stage: Stage
    private(set) var socket = SocketID(rawValue: 0)
    /// Messages that were received but not yet taken.
    private var inbox: [Heard] = []
    private(set) var home = Admission()
    /// The current chat, as this client knows it.
    private(set) var partner: Admission?
    var isBooted = false

    init(on stage: Stage) { self.stage = stage }

    func arrive(address: String = "") {
        socket = stage.connect(self)
        stage.handle(.legacyArrived(LegacyArrival(socket: socket, address: address)))
        guard case .initial(let home)? = take().first else {
            Issue.record("the first event was not initial")
            return
        }
        self.home = home
    }

    func next() { stage.handle(.asked(socket, .next)) }

    func disconnectPartners() { stage.handle(.asked(socket, .disconnectPartners)) }

    /// Closes the socket. For legacy clients, leaving and dropping the connection are the same.
    func vanish(leaving: Bool = false) { stage.disconnect(socket, leaving: leaving) }

    /// Returns everything received since the previous take.
    @discardableResult
    func take() -> [Heard] {
        defer { inbox = [] }
        return inbox
    }

    func receive(_ bytes: [UInt8]) {
        guard let heard = read(bytes) else {
            Issue.record("unreadable: \(String(decoding: bytes, as: UTF8.self))")
            return
        }
        inbox.append(heard)
        switch heard {
        case .subscribe(let admission): partner = admission
        // A client that requested another partner is notified of the end only by the next event.
        case .disconnectPartner, .empty: partner = nil
        case .initial, .error: break
        }
    }

    private func read(_ bytes: [UInt8]) -> Heard? {
        let text = String(decoding: bytes, as: UTF8.self)
        if text.hasPrefix("7:::") { return .error(String(text.dropFirst(4))) }
        // The client splits at this separator and parses the last part as JSON.
        let parts = text.split(separator: ":::", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "5", let json = try? JSONReader.parse(Array(parts[1].utf8)),
            case .object(let event) = json, case .string(let name)? = event["name"]
        else { return nil }
        var argument: JSONObject?
        if let args = event["args"] {
            // The client reads args[0] without checking the count.
            guard case .array(let values) = args, values.count == 1, case .object(let object) = values[0] else {
                return nil
            }
            argument = object
        }
        switch (name, argument) {
        case ("initial", let argument?): return admission(argument).map { .initial($0) }
        case ("subscribe", let argument?): return admission(argument).map { .subscribe($0) }
        case ("empty", nil): return .empty
        case ("disconnectPartner", nil): return .disconnectPartner
        default: return nil
        }
    }

    private func admission(_ object: JSONObject) -> Admission? {
        guard case .string(let session)? = object["sessionId"], case .string(let token)? = object["token"],
            let id = SessionID(session)
        else { return nil }
        return Admission(session: id, token: token)
    }
}

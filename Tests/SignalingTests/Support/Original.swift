import Signaling
import Testing
import Wire

/// A client of RouletteTok as a test plays it. It reads its packets as the iOS client of 2012 did, and so fails where that
/// would have crashed.
final class Original {
    enum Heard: Equatable {
        case initial(Admission)
        case subscribe(Admission)
        case empty
        case disconnectPartner
        case error(String)
    }

    private unowned let stage: Stage
    private(set) var socket = SocketID(rawValue: 0)
    /// What was heard and not yet taken.
    private var inbox: [Heard] = []
    private(set) var home = Admission()
    /// The chat at present, as far as this client knows.
    private(set) var partner: Admission?
    var isBooted = false

    init(on stage: Stage) { self.stage = stage }

    func arrive(address: String = "") {
        socket = stage.connect(self)
        stage.handle(.originalArrived(OriginalArrival(socket: socket, address: address)))
        guard case .initial(let home)? = take().first else {
            Issue.record("the first word was not initial")
            return
        }
        self.home = home
    }

    func next() { stage.handle(.asked(socket, .next)) }

    func disconnectPartners() { stage.handle(.asked(socket, .disconnectPartners)) }

    /// The socket is gone: what that was, a goodbye or a broken line, makes no difference here.
    func vanish(leaving: Bool = false) { stage.disconnect(socket, leaving: leaving) }

    /// Everything heard since the last time.
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
        // Whoever asked for another is told of the end by what he gets.
        case .disconnectPartner, .empty: partner = nil
        case .initial, .error: break
        }
    }

    private func read(_ bytes: [UInt8]) -> Heard? {
        let text = String(decoding: bytes, as: UTF8.self)
        if text.hasPrefix("7:::") { return .error(String(text.dropFirst(4))) }
        // It splits there, and takes what comes last for JSON.
        let parts = text.split(separator: ":::", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "5", let json = try? JSONReader.parse(Array(parts[1].utf8)),
            case .object(let event) = json, case .string(let name)? = event["name"]
        else { return nil }
        var argument: JSONObject?
        if let args = event["args"] {
            // args[0], without a look at the count.
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

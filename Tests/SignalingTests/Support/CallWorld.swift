import Signaling
import TestSupport
import Testing
import Wire

/// Random people with several devices each, who call each other on a stage, and what is known of each from outside: what
/// its devices were told, and what was stored.
///
/// Everything follows from the seed. The first fault ends the run, with the events that led to it.
final class CallWorld {
    /// One device, as its page sees the world.
    final class Device {
        let guest: Guest
        let number: Int
        var isPresent = false
        /// Calls that ring here.
        var rings: Set<CallID> = []
        var outgoing: CallID?
        var active: CallID?
        /// What its page asks about after a fresh start.
        var remembered: [CallID] = []
        var droppedAt: Timestamp?

        init(_ guest: Guest, number: Int) { (self.guest, self.number) = (guest, number) }

        var isLive: Bool { guest.socket != nil }
        var held: [CallID] { rings.sorted() + [outgoing, active].compactMap { $0 } }

        /// Its page is told everything anew.
        func startAfresh() {
            remembered = (remembered + held).suffix(8)
            (isPresent, rings, outgoing, active, droppedAt) = (false, [], nil, nil, nil)
        }
    }

    let seed: UInt64
    let stage: Stage
    let identities: [IdentityID]
    var random: SeededGenerator
    var devices: [Device] = []
    var figures: [String: Int] = [:]
    private(set) var fault: String?
    private(set) var log: [String] = []
    private var lastNumber = 0
    /// Calls that were stored, whether or not they are over.
    var stored: [CallID: StoredCall] = [:]
    /// Who was told in the log of which call.
    var logged: [CallID: [IdentityID]] = [:]
    /// Calls that are over, and when.
    var over: [CallID: Timestamp] = [:]
    /// Who of its two has been in the session of a call, since the last restart.
    var entered: [CallID: Set<IdentityID>] = [:]
    /// Calls of two who called each other that were given up.
    var merged: Set<CallID> = []
    var noted = 0
    /// Clients of pages that were loaded anew: the call of each waits for it until the server gives it up.
    var ghosts: [(person: IdentityID, call: CallID, until: Timestamp)] = []
    /// When the server was started again.
    var restartedAt = Timestamp(milliseconds: 0)
    /// Tokens handed out.
    var tokens: [(call: CallID, session: SessionID, token: String)] = []

    init(seed: UInt64, people: Int, _ adjust: (inout Rules) -> Void = { _ in }) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        stage = Stage(seed: seed &+ 7, adjust)
        var random = random
        identities = (0..<people).map { _ in .random(using: &random) }
    }

    var rules: Rules { stage.rules }
    var now: Timestamp { stage.now }

    func note(_ text: String) {
        log.append("\(now.milliseconds % 100_000_000) \(text)")
        if log.count > 60 { log.removeFirst() }
    }

    func count(_ what: String) { figures[what, default: 0] += 1 }

    func fail(_ text: String) { if fault == nil { fault = text } }

    // MARK: People

    func name(_ identity: IdentityID) -> String { "P\(identities.firstIndex(of: identity) ?? -1)" }

    func name(_ device: Device) -> String { "\(name(device.guest.person)).\(device.number)" }

    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    func anybody(_ isWanted: (Device) -> Bool = { $0.isLive }) -> Device? {
        devices.filter(isWanted).randomElement(using: &random)
    }

    func newDevice(of identity: IdentityID) -> Device {
        lastNumber += 1
        let device = Device(stage.arrive(identity), number: lastNumber)
        devices.append(device)
        return device
    }

    /// What was heard and stored is taken note of; then everything is judged.
    func settle() {
        noteChanges()
        for device in devices { hear(device) }
        for device in devices where device.isLive && device.guest.openRequests > 0 {
            fail("\(name(device)) was not answered")
        }
        judge()
    }

    // MARK: What is stored

    private func noteChanges() {
        for change in stage.changes[noted...] {
            switch change {
            case .callPlaced(let call):
                if stored.updateValue(call, forKey: call.id) != nil { fail("\(call.id) was placed twice") }
            case .callAccepted(let call, let at):
                if over[call] != nil || stored[call]?.acceptedAt != nil {
                    fail("\(call) was accepted too late or twice")
                }
                stored[call]?.acceptedAt = at
                count("accepted")
            case .callOver(let call):
                if stored[call] == nil || over.updateValue(now, forKey: call) != nil { fail("\(call) ended twice") }
            case .callLogged(let record, let owner):
                if logged[record.call, default: []].contains(owner) {
                    fail("\(record.call) ended twice for \(name(owner))")
                }
                logged[record.call, default: []].append(owner)
                count("\(record.outcome)")
                check(record, of: owner)
            default: break
            }
        }
        noted = stage.changes.count
    }

    private func check(_ record: CallRecord, of owner: IdentityID) {
        guard let call = stored[record.call] else {
            // It never rang: refused at once.
            let isRefusal = [.busy, .unreachable, .missed].contains(record.outcome)
            if !isRefusal { fail("\(record.outcome) of a call that never was") }
            return
        }
        let (mine, other) = record.direction == .outgoing ? (call.caller, call.callee) : (call.callee, call.caller)
        if mine != owner || other != record.other { fail("\(call.id) is in a stranger's log") }
        if (record.duration != nil) != (call.acceptedAt != nil) { fail("\(call.id) has a wrong duration") }
    }

    // MARK: What is heard

    private func hear(_ device: Device) {
        for message in device.guest.take() {
            if message.errorCode == .internalError { fail("\(name(device)) heard of an internal error") }
            if let code = message.errorCode { count("heard \(code.rawValue)") }
            if let news = message.call { hear(device, news) }
        }
    }

    private func isOfTheTwo(_ device: Device, _ call: CallID, as direction: CallDirection? = nil) -> Bool {
        guard let stored = stored[call] else { return false }
        let person = device.guest.person
        return direction != .incoming && person == stored.caller || direction != .outgoing && person == stored.callee
    }

    private func hear(_ device: Device, _ news: CallNotice) {
        switch news {
        case .incoming(let incoming):
            guard isOfTheTwo(device, incoming.call, as: .incoming) else {
                return fail("\(name(device)) is rung by somebody else's call")
            }
            device.rings.insert(incoming.call)
        case .placed(let placed): device.outgoing = placed.call
        case .accepted(let accepted): entered(device, accepted)
        case .ended(let ended): hear(device, ended)
        case .ringing(let ringing):
            if device.outgoing != ringing.call { fail("\(name(device)) hears that another's call rings") }
        case .changed(let changed):
            if device.active != changed.call { fail("\(name(device)) hears how another's call changes") }
        case .partner(let partner):
            if device.active != partner.call { fail("\(name(device)) hears who is away from another's call") }
        case .log: break
        }
    }

    private func entered(_ device: Device, _ accepted: CallNotice.Accepted) {
        let call = accepted.call
        guard isOfTheTwo(device, call), let stored = stored[call] else {
            return fail("\(name(device)) got a token for a call of others")
        }
        let (session, token) = (accepted.admission.session, accepted.admission.token)
        let grant = try? stage.project.verifySessionToken(token, for: session, now: now)
        if grant?.match != call.binding || grant?.role != .publisher || session != stored.session {
            fail("\(name(device)) got a token that does not fit")
        }
        tokens.append((call, session, token))
        if tokens.count > 200 { tokens.removeFirst() }
        device.rings.remove(call)
        if device.outgoing == call { device.outgoing = nil }
        if let active = device.active, active != call, over[active] == nil {
            fail("\(name(device)) is in two calls")
        }
        device.active = call
        count("tokens")
    }

    private func hear(_ device: Device, _ ended: CallNotice.Ended) {
        let call = ended.call
        if ended.reason == .merged { merged.insert(call) }
        if device.held.contains(call) {
            device.rings.remove(call)
            if device.outgoing == call { device.outgoing = nil }
            if device.active == call { device.active = nil }
            if ended.reason == .merged, let into = ended.into, device.active == nil, over[into] == nil {
                count("merged")
            }
            return
        }
        // Told without having known of it: what somebody missed, or what nobody there had heard.
        let person = device.guest.person
        guard let record = stage.archive.logs[person]?.last(where: { $0.call == call }) else {
            return fail("\(name(device)) hears of the end of a call that is not in the log")
        }
        if record.isSeen, device.isLive, !ended.reason.endsForPerson { fail("\(name(device)) hears of an end again") }
        count("told later")
    }
}

extension CallOutcome {
    /// Of which a device may hear beside those that had to do with the call.
    fileprivate var endsForPerson: Bool {
        switch self {
        case .answeredElsewhere, .declinedElsewhere, .merged: false
        default: true
        }
    }
}

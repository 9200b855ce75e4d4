import Signaling
import TestSupport
import Testing
import Wire

/// A device of a person, with the state its page would show.
final class CallDevice: RandomClient {
    let number: Int
    var isPresent = false
    /// Calls that ring on this device.
    var rings: Set<CallID> = []
    var outgoing: CallID?
    var active: CallID?
    /// Calls about which the page asks the server after starting over.
    var remembered: [CallID] = []
    /// Calls that other devices took over while this one was away. It may still hear what happened in them before that.
    var takenOver: Set<CallID> = []

    init(_ guest: Guest, number: Int) {
        self.number = number
        super.init(guest)
    }

    var held: [CallID] { rings.sorted() + [outgoing, active].compactMap { $0 } }
    func mayHear(of call: CallID, _ own: CallID?) -> Bool { call == own || takenOver.contains(call) }

    /// Resets the page's state before a snapshot.
    func startAfresh() {
        remembered = (remembered + held).suffix(8)
        (isPresent, rings, outgoing, active, droppedAt) = (false, [], nil, nil, nil)
        takenOver = []
    }
}

/// Random people with several devices each, who call each other.
final class CallWorld: RandomWorld<CallDevice> {
    typealias Device = CallDevice

    private(set) var identities: [IdentityID] = []
    private var lastNumber = 0
    /// Calls in storage, whether open or ended.
    var stored: [CallID: StoredCall] = [:]
    /// The people whose log has the call.
    var logged: [CallID: [IdentityID]] = [:]
    /// The times at which calls ended.
    var over: [CallID: Timestamp] = [:]
    /// The members who have joined a call's session since the last restart.
    var entered: [CallID: Set<IdentityID>] = [:]
    /// Mutual calls that were merged into another call.
    var merged: Set<CallID> = []
    var noted = 0
    /// Client connections of pages that were reloaded. Their call continues until the server drops these connections.
    var ghosts: [(person: IdentityID, call: CallID, until: Timestamp)] = []
    /// The time of the last restart.
    var restartedAt = Timestamp(milliseconds: 0)
    /// Tokens issued so far.
    var tokens: [(call: CallID, session: SessionID, token: String, holder: IdentityID)] = []

    init(people: Int, _ adjust: (inout Rules) -> Void = { _ in }) {
        super.init(adjust)
        identities = (0..<people).map { _ in .random(using: &random) }
    }

    // MARK: People

    func name(_ identity: IdentityID) -> String { "P\(identities.firstIndex(of: identity) ?? -1)" }

    func name(_ device: Device) -> String { "\(name(device.guest.person)).\(device.number)" }

    func newDevice(of identity: IdentityID) -> Device {
        lastNumber += 1
        let device = Device(stage.arrive(identity), number: lastNumber)
        clients.append(device)
        return device
    }

    /// Records what was received and stored, and then checks the invariants.
    func settle() {
        noteChanges()
        for device in clients { hear(device) }
        for device in clients where device.isLive && device.guest.openRequests > 0 {
            fail("\(name(device)) was not answered")
        }
        judge()
    }

    // MARK: Storage

    private func noteChanges() {
        for change in stage.changes[noted...] {
            switch change {
            case .callPlaced(let call):
                if stored.updateValue(call, forKey: call.id) != nil { fail("\(call.id) was placed twice") }
            case .callAccepted(let call, let at, people: _):
                if over[call] != nil || stored[call]?.acceptedAt != nil {
                    fail("\(call) was accepted too late or twice")
                }
                stored[call]?.acceptedAt = at
                count("accepted")
            case .callOver(let call, people: _):
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
            // The call never rang, because it was refused immediately.
            let isRefusal = [.busy, .unreachable, .missed].contains(record.outcome)
            if !isRefusal { fail("\(record.outcome) of a call that never was") }
            return
        }
        let (mine, other) = record.direction == .outgoing ? (call.caller, call.callee) : (call.callee, call.caller)
        if mine != owner || other != record.other { fail("\(call.id) is in a stranger's log") }
        if (record.duration != nil) != (call.acceptedAt != nil) { fail("\(call.id) has a wrong duration") }
    }

    // MARK: Messages

    private func hear(_ device: Device) {
        for message in device.guest.take() {
            if message.errorCode == .internalError { fail("\(name(device)) heard of an internal error") }
            if let code = message.errorCode { count("heard \(code.rawValue)") }
            if let news = message.call { hear(device, news) }
        }
        if device.isLive { device.takenOver = [] }
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
                return fail("\(name(device)) is rung by another person's call")
            }
            device.rings.insert(incoming.call)
        case .placed(let placed): device.outgoing = placed.call
        case .accepted(let accepted): entered(device, accepted)
        case .ended(let ended): hear(device, ended)
        case .ringing(let ringing):
            guard !device.mayHear(of: ringing.call, device.outgoing) else { return }
            fail("\(name(device)) hears that another's call rings")
        case .changed(let changed):
            guard !device.mayHear(of: changed.call, device.active) else { return }
            fail("\(name(device)) hears how another's call changes")
        case .partner(let partner):
            guard !device.mayHear(of: partner.call, device.active) else { return }
            fail("\(name(device)) hears who is away from another's call")
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
        tokens.append((call, session, token, device.guest.person))
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
        // The device did not know of the call. It is a missed call, or a call whose end had not been delivered.
        let person = device.guest.person
        guard let record = stage.archive.logs[person]?.last(where: { $0.call == call }) else {
            return fail("\(name(device)) hears of the end of a call that is not in the log")
        }
        if record.isSeen, device.isLive, !ended.reason.endsForPerson { fail("\(name(device)) hears of an end again") }
        count("reported later")
    }
}

extension CallOutcome {
    /// Whether all of the person's devices may be notified of this end, and not only those that took part in the call.
    fileprivate var endsForPerson: Bool {
        switch self {
        case .answeredElsewhere, .declinedElsewhere, .merged: false
        default: true
        }
    }
}

import Signaling
import TestSupport
import Testing
import Wire

// Shortcuts for common steps of call tests.
extension Guest {
    @discardableResult func appear(
        _ name: String? = nil, visible: Bool? = nil, doNotDisturb: Bool? = nil, ringable: Ringable? = nil
    ) -> ServerMessage? {
        let appearance = Appearance(name: name, visible: visible, doNotDisturb: doNotDisturb, ringable: ringable)
        return ask(.presence(.appear(appearance)))
    }

    /// Calls a person and returns the answer.
    @discardableResult func call(_ other: PersonID, video: Bool = true) -> ServerMessage? {
        ask(.call(.start(.init(person: other, video: video))))
    }

    @discardableResult func accept(_ call: CallID, video: Bool = true) -> ServerMessage? {
        ask(.call(.accept(.init(call: call, video: video))))
    }

    @discardableResult func decline(_ call: CallID) -> ServerMessage? { ask(.call(.decline(.init(call: call)))) }
    @discardableResult func cancel(_ call: CallID) -> ServerMessage? { ask(.call(.cancel(.init(call: call)))) }
    @discardableResult func end(_ call: CallID) -> ServerMessage? { ask(.call(.end(.init(call: call)))) }
    @discardableResult func rejoin(_ call: CallID) -> ServerMessage? { ask(.call(.rejoin(.init(call: call)))) }
    @discardableResult func seen(_ call: CallID) -> ServerMessage? { ask(.call(.seen(.init(call: call)))) }
    @discardableResult func turn(_ call: CallID, video: Bool) -> ServerMessage? {
        ask(.call(.update(.init(call: call, video: video))))
    }

    /// Returns the call log, newest first.
    func callLog() -> [LoggedCall] {
        guard case .log(let log)? = ask(.call(.log(.init())))?.call else { return [] }
        return log.calls
    }

    /// Returns the call notices received since the previous take. All other messages are dropped.
    func takeCalls() -> [CallNotice] { take().compactMap(\.call) }

    /// Returns the outcomes of the calls that have ended since the previous take.
    func takeCallEnds() -> [CallOutcome] { takeCalls().compactMap(\.ended).map(\.reason) }

    /// Joins the session of an accepted call.
    @discardableResult func enter(_ accepted: CallNotice.Accepted?) -> ServerMessage? {
        guard let accepted else { return nil }
        return join(accepted.admission.session, token: accepted.admission.token)
    }
}

extension CallNotice {
    var placed: CallNotice.Placed? { if case .placed(let news) = self { news } else { nil } }
    var incoming: CallNotice.Incoming? { if case .incoming(let news) = self { news } else { nil } }
    var accepted: CallNotice.Accepted? { if case .accepted(let news) = self { news } else { nil } }
    var ended: CallNotice.Ended? { if case .ended(let news) = self { news } else { nil } }
    var ringing: CallNotice.Ringing? { if case .ringing(let news) = self { news } else { nil } }
    var partner: CallNotice.Partner? { if case .partner(let news) = self { news } else { nil } }
}

/// Two people in a call, and what each received.
struct Talk {
    var call: CallID
    var session: SessionID
    var caller: CallNotice.Accepted
    var callee: CallNotice.Accepted
}

extension Stage {
    func person(_ guest: Guest) -> PersonID { project.personID(of: guest.person) }

    /// Returns a guest who has gone online with this name, with an empty inbox.
    func present(_ name: String, on identity: IdentityID? = nil, push: Bool = false) -> Guest {
        let guest = arrive(identity)
        guest.appear(name)
        if push { register(guest) }
        guest.take()
        return guest
    }

    /// Registers a push endpoint for a device.
    func register(_ guest: Guest) {
        let registration = PushRegistration(kind: .web, endpoint: "https://push.example/\(guest.identity)")
        guest.ask(.push(.register(registration)))
    }

    /// Links another device to the same person and returns it.
    func another(of guest: Guest) -> Guest {
        let other = arrive(guest.person)
        other.appear()
        other.take()
        return other
    }

    /// Makes one guest call another, whose devices ring. Both inboxes are empty afterwards.
    func ring(_ caller: Guest, _ callee: Guest, video: Bool = true) throws -> CallID {
        let placed = try #require(caller.call(person(callee), video: video)?.call?.placed)
        caller.take()
        callee.take()
        return placed.call
    }

    /// Makes one guest call another, who accepts. Afterwards both are in the session, and their inboxes are empty.
    func talk(_ caller: Guest, _ callee: Guest) throws -> Talk {
        let call = try ring(caller, callee)
        let mine = try #require(callee.accept(call)?.call?.accepted)
        let theirs = try #require(caller.takeCalls().compactMap(\.accepted).first)
        callee.enter(mine)
        caller.enter(theirs)
        caller.take()
        callee.take()
        return Talk(call: call, session: mine.admission.session, caller: theirs, callee: mine)
    }

    /// Returns the stored call log of a person.
    func logged(_ guest: Guest) -> [CallRecord] { archive.logs[guest.person, default: []] }

    func noticesOf(_ guest: Guest) -> [PushNotice.Kind] {
        pushes.filter { $0.identity == guest.person }.map(\.notice.kind)
    }
}

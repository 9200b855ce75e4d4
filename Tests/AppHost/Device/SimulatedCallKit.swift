import AppModel
import Confab
import Foundation
import Observation

/// The system's call screen, as CallKit behaves: it answers reports and requests later, turns requests into actions, and owns
/// the audio session. ``faults`` has everything for which CallKit would refuse the app or end it.
@MainActor @Observable final class SimulatedCallKit: CallSystem {
    /// A call that the system shows.
    struct ShownCall: Encodable, Equatable, Identifiable, Sendable {
        enum State: String, Encodable, Sendable { case ringing, starting, connecting, connected, held }

        let id: SystemCallID
        var name: String?
        var state: State
        var isMuted = false

        fileprivate var hasSound: Bool { state == .connecting || state == .connected }
    }

    let isAllowed = true
    @ObservationIgnored var onEvent: (@MainActor (CallEvent) -> Void)?
    private(set) var calls: [ShownCall] = []
    /// How the app said that calls ended.
    private(set) var endings: [SystemEndReason] = []
    private(set) var faults: [String] = []
    /// Actions that the app has neither fulfilled nor failed.
    @ObservationIgnored private var open: [ActionID: CallSystemRequest] = [:]
    @ObservationIgnored private var lastAction: ActionID = 0
    @ObservationIgnored private var hasSession = false

    // MARK: What the app does

    func perform(_ effect: CallEffect) {
        switch effect {
        case .report(let id, let person, _, let push): report(id, person?.name, push)
        case .update(let id, let person, _): change(id) { $0.name = person.name }
        case .reportConnecting(let id): change(id) { $0.state = .connecting }
        case .reportConnected(let id): change(id) { $0.state = .connected }
        case .reportEnded(let id, let reason):
            change(id) { _ in }
            endings.append(reason)
            remove(id)
        case .request(let request): later { $0.act(request) }
        case .fulfil(let action): finish(action, isFulfilled: true)
        case .fail(let action): finish(action, isFulfilled: false)
        case .completePush: break
        default: faults.append("The system does not perform \(effect).")
        }
    }

    private func later(_ body: @escaping @MainActor (SimulatedCallKit) -> Void) {
        Task { body(self) }
    }

    private func report(_ id: SystemCallID, _ name: String?, _ push: PushID?) {
        let isKnown = calls.contains { $0.id == id }
        if !isKnown { calls.append(ShownCall(id: id, name: name, state: .ringing)) }
        later { $0.onEvent?(.reportResult(id, push: push, isKnown ? .known : .ok)) }
    }

    private func change(_ id: SystemCallID, _ body: (inout ShownCall) -> Void) {
        guard let index = calls.firstIndex(where: { $0.id == id }) else {
            return faults.append("The app reported something about a call that the system does not know.")
        }
        body(&calls[index])
        updateSession()
    }

    private func remove(_ id: SystemCallID) {
        calls.removeAll { $0.id == id }
        updateSession()
    }

    private func finish(_ action: ActionID, isFulfilled: Bool) {
        guard let request = open.removeValue(forKey: action) else {
            return faults.append("The app finished an action twice.")
        }
        switch request {
        case .start(let id, _, _): if isFulfilled { change(id) { $0.state = .connecting } } else { remove(id) }
        case .answer(let id): if isFulfilled { change(id) { $0.state = .connected } }
        case .end(let id): remove(id)
        case .mute(let id, let isMuted): if isFulfilled { change(id) { $0.isMuted = isMuted } }
        case .hold(let id, let isHeld): if isFulfilled { change(id) { $0.state = isHeld ? .held : .connected } }
        }
    }

    /// The system activates the audio session for a call that is not held, and deactivates it without one.
    private func updateSession() {
        let needsSession = calls.contains(where: \.hasSound)
        guard needsSession != hasSession else { return }
        hasSession = needsSession
        later { $0.onEvent?(.audio(needsSession ? .activated : .deactivated)) }
    }

    // MARK: What the system does

    /// Makes an action of a request, or refuses it: the call may have ended meanwhile.
    private func act(_ request: CallSystemRequest) {
        if case .start(let id, let person, _) = request {
            calls.append(ShownCall(id: id, name: person.name, state: .starting))
        }
        guard calls.contains(where: { $0.id == request.id }) else {
            onEvent?(.system(.requestFailed(request)))
            return
        }
        lastAction += 1
        open[lastAction] = request
        switch request {
        case .start(let id, _, _): onEvent?(.system(.start(id, lastAction)))
        case .answer(let id): onEvent?(.system(.answer(id, lastAction)))
        case .end(let id): onEvent?(.system(.end(id, lastAction)))
        case .mute(let id, let isMuted): onEvent?(.system(.mute(id, isMuted, lastAction)))
        case .hold(let id, let isHeld): onEvent?(.system(.hold(id, isHeld, lastAction)))
        }
    }

    // MARK: What the person does on the system's screen

    /// Answers the call that rings. During another call, the system first holds or ends that one.
    func answer(endingOther: Bool = false) {
        guard let ringing = calls.first(where: { $0.state == .ringing }) else { return miss("rings") }
        for other in calls where other.hasSound { act(endingOther ? .end(other.id) : .hold(other.id, true)) }
        act(.answer(ringing.id))
    }

    /// Ends the call that rings, or the only one.
    func end() {
        guard let call = calls.first(where: { $0.state == .ringing }) ?? calls.first else { return miss("can end") }
        act(.end(call.id))
    }

    func mute(_ isMuted: Bool) {
        guard let call = calls.first(where: \.hasSound) else { return miss("has sound") }
        act(.mute(call.id, isMuted))
    }

    func hold(_ isHeld: Bool) {
        let state = isHeld ? ShownCall.State.connected : .held
        guard let call = calls.first(where: { $0.state == state }) else { return miss("is \(state)") }
        act(.hold(call.id, isHeld))
    }

    private func miss(_ what: String) { faults.append("The system shows no call that \(what).") }
}

extension CallSystemRequest {
    fileprivate var id: SystemCallID {
        switch self {
        case .start(let id, _, _), .answer(let id), .end(let id), .mute(let id, _), .hold(let id, _): id
        }
    }
}

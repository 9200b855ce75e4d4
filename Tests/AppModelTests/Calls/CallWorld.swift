import Foundation
import TestSupport

@testable import AppModel
@testable import Confab

/// A coordinator among a system, a server, a media session and a person that do anything at random, also what makes no sense.
/// The world knows what each of them may expect, and checks it after each event.
struct CallWorld {
    private var random: SeededGenerator
    private var coordinator: CallCoordinator
    private(set) var fault: String?
    private var done: [(event: CallEvent, effects: [CallEffect])] = []
    /// The last events and their effects.
    var log: String { done.suffix(40).map { "\($0.event)\n    → \($0.effects)" }.joined(separator: "\n") }

    // What the coordinator owes.
    private var openActions: Set<ActionID> = []
    private var reportedPushes: Set<PushID> = []
    private var openPushes: Set<PushID> = []
    /// Reports that the system has not answered, in order.
    private var openReports: [(id: SystemCallID, push: PushID?)] = []
    /// Calls on the system's screen.
    private var shown: Set<SystemCallID> = []
    private var openStarts: [SystemCallID] = []
    private var requests: [CallSystemRequest] = []
    private var timers: Set<CallTimer> = []
    private var isSessionActive = false
    /// Whether the app asked for the session, where it does so itself.
    private var isSessionAsked = false
    private var isAudioEnabled = false
    /// Whether the other person of each call was notified that there is video, and whether the camera runs.
    private var reportedVideo: [CallID: Bool] = [:]
    private var runsCamera: [SystemCallID: Bool] = [:]

    private var nextAction: ActionID = 1
    private var nextPush: PushID = 1
    private var nextOwn: UInt64 = 1
    /// Few ids, so that events meet.
    private let callIDs: [CallID] = ["a", "b", "c", "d"]
    private let people = [Person(id: "ada", name: "Ada"), Person(id: "bob", name: "Bob")]
    private(set) var activeCalls = 0
    /// Calls for which the app itself rings.
    private var ringing: Set<SystemCallID> = []

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        coordinator = CallCoordinator(
            usesSystem: seed % 8 != 0, environment: CallEnvironment(microphone: .allowed, isLocked: false))
        isSessionActive = false
    }

    // MARK: Running

    mutating func run(events: Int) {
        for _ in 0..<events where fault == nil { step(randomEvent()) }
        finish()
    }

    private mutating func step(_ event: CallEvent?) {
        guard let event, fault == nil else { return }
        before(event)
        let effects = coordinator.handle(event)
        done.append((event, effects))
        for effect in effects where fault == nil { apply(effect) }
        after(event)
    }

    private mutating func fail(_ text: String) { if fault == nil { fault = text } }

    // MARK: Events

    private mutating func pick<Element>(_ all: [Element]) -> Element? { all.randomElement(using: &random) }

    private mutating func anyID() -> SystemCallID {
        let incoming = callIDs.map { SystemCallID($0) }
        return pick(incoming + [coordinator.current?.id, coordinator.waiting?.id].compactMap(\.self) + shown) ?? UUID()
    }

    private mutating func anyCallID() -> CallID {
        pick(callIDs + [coordinator.current?.callID, coordinator.current?.callID].compactMap(\.self)) ?? ""
    }

    private mutating func call(_ state: Call.State) -> Call {
        CallScript.call(anyCallID(), pick(people) ?? people[0], video: Bool.random(using: &random), state: state)
    }

    /// A change of a call, which may continue as another one.
    private mutating func changed(_ state: Call.State) -> CallEvent {
        var call = call(state)
        if Int.random(in: 0..<4, using: &random) == 0, slots.allSatisfy({ $0.callID != call.id }) {
            call.formerID = coordinator.current?.direction == .outgoing ? coordinator.current?.callID : nil
        }
        (call.isPartnerConnected, call.isRejoining) = (Bool.random(using: &random), Bool.random(using: &random))
        return .server(.changed(call))
    }

    private var slots: [CoordinatedCall] { [coordinator.current, coordinator.waiting].compactMap(\.self) }

    private mutating func action() -> ActionID {
        nextAction += 1
        return nextAction - 1
    }

    private mutating func ownID() -> SystemCallID {
        nextOwn += 1
        return UUID(uuidString: String(format: "00000000-0000-0000-0000-%012x", nextOwn)) ?? UUID()
    }

    private mutating func randomEvent() -> CallEvent? {
        switch Int.random(in: 0..<30, using: &random) {
        case 0, 1:
            guard coordinator.usesSystem else { return .push(callID: "\(anyCallID())", push: nil) }
            nextPush += 1
            return .push(callID: Int.random(in: 0..<30, using: &random) == 0 ? "?" : "\(anyCallID())", push: nextPush)
        case 2...5: return reportResult(likely: .ok)
        case 6, 7: return .server(.incoming(call(.incoming)))
        case 8, 9: return startAnswer()
        case 10, 11: return changed(.joining)
        case 12: return .server(.acceptRefused(anyCallID(), ConfabError("call_state", "")))
        case 13: return changed(.incoming)
        case 14, 15: return changed(.active)
        case 16: return CallScript.ended(pick(outcomes) ?? .hungUp, anyCallID())
        case 17, 18, 19, 20: return systemEvent()
        case 21: return .app(.call(ownID(), people[0], video: true))
        case 22: return .app(.end(anyID()))
        case 23:
            return .app(
                pick([
                    .mute(true), .hold(true), .video(false), .video(true), .answer(anyID()), .camera(works: false),
                    .camera(works: true), .sharing(true), .sharing(false),
                ]) ?? .mute(false))
        case 24, 25: return .audio(pick([.activated, .deactivated, .refused, .tryAgain]) ?? .activated)
        case 26: return pick(Array(timers)).map(CallEvent.timer)
        case 27: return Int.random(in: 0..<4, using: &random) == 0 ? .online(isNew: true) : .online(isNew: false)
        case 28: return pick([.offline, .pushToken("aa"), .pushToken(nil), .system(.reset)])
        default: return request()
        }
    }

    private let outcomes: [CallEnding.Outcome] = [
        .hungUp, .cancelled, .missed, .failed, .answeredElsewhere, .merged, "new",
    ]

    private mutating func reportResult(likely: SystemReportResult) -> CallEvent? {
        guard let report = openReports.first else { return nil }
        // The system answers with `known` for the second report of a call.
        let isKnown = shown.contains(report.id)
        let others: [SystemReportResult] = [.filtered, .refused]
        let refuses = Int.random(in: 0..<6, using: &random) == 0 && !isKnown
        return .reportResult(report.id, push: report.push, isKnown ? .known : refuses ? pick(others) ?? likely : likely)
    }

    private mutating func startAnswer() -> CallEvent? {
        guard let id = openStarts.first else { return nil }
        if Int.random(in: 0..<5, using: &random) == 0 {
            return .server(.startRefused(id, ConfabError("rate_limited", "")))
        }
        // A server gives no two calls one id.
        let used = [coordinator.current, coordinator.waiting].compactMap { $0?.callID }
        return pick(callIDs.filter { !used.contains($0) }).map { CallScript.placed(id, $0) }
    }

    /// Actions without a request, as from the system's own screen.
    private mutating func systemEvent() -> CallEvent? {
        guard coordinator.usesSystem else { return nil }
        switch Int.random(in: 0..<9, using: &random) {
        case 0...2: return .system(.answer(anyID(), action()))
        case 3: return .system(.end(anyID(), action()))
        case 4: return .system(.mute(anyID(), Bool.random(using: &random), action()))
        case 5, 6: return .system(.hold(anyID(), Bool.random(using: &random), action()))
        case 7: return pick(openActions.sorted()).map { .system(.timedOut($0)) }
        default: return .system(.start(anyID(), action()))
        }
    }

    /// The system carries out or refuses what the app had requested.
    private mutating func request() -> CallEvent? {
        guard let request = requests.first else { return nil }
        requests.removeFirst()
        if Int.random(in: 0..<8, using: &random) == 0 { return .system(.requestFailed(request)) }
        return .system(carriedOut(request))
    }

    private mutating func carriedOut(_ request: CallSystemRequest) -> CallSystemEvent {
        switch request {
        case .start(let id, _, _): .start(id, action())
        case .answer(let id): .answer(id, action())
        case .end(let id): .end(id, action())
        case .mute(let id, let isMuted): .mute(id, isMuted, action())
        case .hold(let id, let isHeld): .hold(id, isHeld, action())
        }
    }

    // MARK: What events mean to the system

    private mutating func before(_ event: CallEvent) {
        switch event {
        case .push(_, let push?): openPushes.insert(push)
        case .reportResult(let id, _, let result):
            openReports.removeFirst()
            if result == .ok { shown.insert(id) }
        case .server(.placed(let id, let call)):
            openStarts.removeAll { $0 == id }
            // A new call: what was reported of an earlier one with this id does not count.
            reportedVideo[call.id] = nil
        // A call that continues under another id: what was reported of an earlier call with that id does not count.
        case .server(.changed(let call)) where call.formerID != nil: reportedVideo[call.id] = nil
        case .server(.startRefused(let id, _)): openStarts.removeAll { $0 == id }
        case .server(.acceptRefused(let callID, _)): reportedVideo[callID] = nil
        case .server(.ended(let ended)): reportedVideo[ended.id] = nil
        case .timer(let timer): timers.remove(timer)
        case .audio(.activated):
            if coordinator.usesSystem || isSessionAsked { isSessionActive = true }
            isSessionAsked = false
        case .audio(.refused): isSessionAsked = false
        case .system(.reset):
            openActions = []
            openReports = []
            shown = []
        case .system(.timedOut(let action)): openActions.remove(action)
        case .system(.start(let id, let action?)):
            openActions.insert(action)
            starting = (id, action)
        case .system(.end(let id, let action?)):
            openActions.insert(action)
            ending = (id, action)
        case .system(.answer(_, let action?)), .system(.mute(_, _, let action?)), .system(.hold(_, _, let action?)):
            openActions.insert(action)
        default: break
        }
    }

    /// The start and end actions, whose outcomes show or remove a call.
    private var starting: (id: SystemCallID, action: ActionID)?
    private var ending: (id: SystemCallID, action: ActionID)?
    private var starts: [ActionID: SystemCallID] = [:]

    private mutating func after(_ event: CallEvent) {
        if case .push(_, let push?) = event, !reportedPushes.contains(push) {
            fail("push \(push) was not reported at once")
        }
        if case .system(.start(let id, let action?)) = event {
            // Unless it failed at once, the call is on the system's screen.
            if openActions.contains(action) { (starts[action], _) = (id, shown.insert(id)) }
        }
        if event == .audio(.deactivated) || event == .system(.reset), coordinator.usesSystem { isSessionActive = false }
        (starting, ending) = (nil, nil)
        if isAudioEnabled, !isSessionActive { fail("audio is enabled without a session") }
        checkSlots()
    }

    private mutating func checkSlots() {
        let phases: [CoordinatedCall.Phase] = [.answering, .placing, .connecting, .active, .held]
        if let waiting = coordinator.waiting {
            if phases.contains(waiting.phase) { fail("the waiting call is \(waiting.phase)") }
            if coordinator.current == nil { fail("a call waits for none") }
            if coordinator.current?.id == waiting.id { fail("a call waits for itself") }
        }
        if let current = coordinator.current, [.connecting, .active, .held].contains(current.phase) {
            if current.call == nil { fail("\(current.phase) without the server") }
        }
        if coordinator.current?.phase == .active { activeCalls += 1 }
        checkVideo()
        let waits = [coordinator.current, coordinator.waiting].filter {
            $0?.phase == .reported || $0?.phase == .ringing
        }
        let mayRing = Set(waits.compactMap { $0?.direction == .incoming ? $0?.id : nil })
        if ringing != (coordinator.usesSystem ? [] : mayRing) { fail("it rings for \(ringing), not for \(mayRing)") }
        let wantsAudio = coordinator.current?.phase == .active && isSessionActive && coordinator.usesSystem
        if wantsAudio, !isAudioEnabled { fail("an active call is silent") }
    }

    /// Checks that the other person knows whether there is video. A merged call has another id, for which nothing was reported.
    private mutating func checkVideo() {
        guard let call = coordinator.current, let callID = call.callID, [.connecting, .active].contains(call.phase)
        else {
            return
        }
        let camera = call.sendsVideo && coordinator.cameraWorks
        if let reported = reportedVideo[callID], reported != (camera || call.isSharing) {
            fail("the other person has the wrong state of the video")
        }
        if let runs = runsCamera[call.id], runs != camera { fail("the camera is not as it should be") }
    }

    // MARK: Effects

    /// A call of this model may have the id of one that is over.
    private mutating func forgetVideo(of effect: CallEffect) {
        guard let id = effect.begunOrEnded else { return }
        runsCamera[id] = nil
        reportedVideo = reportedVideo.filter { SystemCallID($0.key) != id }
    }

    private mutating func apply(_ effect: CallEffect) {
        forgetVideo(of: effect)
        switch effect {
        case .send(.setVideo(let isOn)): if let id = coordinator.current?.id { runsCamera[id] = isOn }
        case .send(.update(let callID, let isOn)), .send(.accept(let callID, let isOn)): reportedVideo[callID] = isOn
        // The same id may be used by a later call of this model.
        case .send(.end(let callID)): reportedVideo[callID] = nil
        case .report(let id, _, _, let push):
            openReports.append((id, push))
            if let push, !reportedPushes.insert(push).inserted { fail("push \(push) was reported twice") }
        case .completePush(let push):
            if !reportedPushes.contains(push) { fail("push \(push) was completed before its report") }
            if openPushes.remove(push) == nil { fail("push \(push) was completed twice") }
        case .fulfil(let action):
            if openActions.remove(action) == nil { fail("action \(action) was answered twice, or is unknown") }
            if let ending, ending.action == action { shown.remove(ending.id) }
        case .fail(let action):
            if openActions.remove(action) == nil { fail("action \(action) was answered twice, or is unknown") }
            // A failed start removes the call from the system's screen.
            if let id = starts[action] { shown.remove(id) }
        case .reportEnded(let id, _):
            if shown.remove(id) == nil { fail("the end of \(id) was reported, which the system does not know") }
        case .update(let id, _, _):
            if !shown.contains(id), !openReports.contains(where: { $0.id == id }) {
                fail("an update of an unknown call")
            }
        case .reportConnecting(let id), .reportConnected(let id):
            if !shown.contains(id) { fail("a report about an unknown call") }
        case .request(let request): requests.append(request)
        case .send(.start(let id, _, _)):
            if openStarts.contains(id) { fail("a start was sent twice") }
            openStarts.append(id)
        case .startTimer(let timer): if !timers.insert(timer).inserted { fail("\(timer) was started twice") }
        case .stopTimer(let timer): if timers.remove(timer) == nil { fail("\(timer) was not running") }
        case .audio(let effect): apply(effect)
        case .ring(let id): ringing.insert(id)
        case .stopRinging(let id): ringing.remove(id)
        default: break
        }
    }

    private mutating func apply(_ effect: AudioEffect) {
        switch effect {
        case .setActive(let isActive):
            if coordinator.usesSystem { fail("the app activated the session") }
            if isActive ? isSessionAsked || isSessionActive : !isSessionActive { fail("activations are not balanced") }
            if isActive { isSessionAsked = true } else { isSessionActive = false }
        case .setEnabled(let isEnabled):
            if isEnabled == isAudioEnabled { fail("audio was set twice") }
            if isEnabled, !isSessionActive { fail("audio was enabled without a session") }
            isAudioEnabled = isEnabled
        case .configure, .sessionDidActivate, .sessionDidDeactivate: break
        }
    }

    // MARK: The end

    /// Answers everything and ends all calls. Then nothing may be left.
    private mutating func finish() {
        for _ in 0..<4 {
            while fault == nil, let event = reportResult(likely: .ok) { step(event) }
            while fault == nil, !requests.isEmpty { step(.system(carriedOut(requests.removeFirst()))) }
            while fault == nil, let id = openStarts.first {
                step(.server(.startRefused(id, ConfabError("failed", ""))))
            }
            for timer in timers { step(.timer(timer)) }
            for callID in [coordinator.waiting?.callID, coordinator.current?.callID].compactMap(\.self) {
                step(CallScript.ended(.failed, callID))
            }
            // A call that the server never knew.
            if let id = coordinator.current?.id { step(.app(.end(id))) }
            step(.audio(.deactivated))
        }
        guard fault == nil else { return }
        if coordinator.current != nil || coordinator.waiting != nil { fail("a call did not end") }
        if !shown.isEmpty { fail("the system still shows \(shown)") }
        if !openActions.isEmpty { fail("actions without an answer: \(openActions)") }
        if !openPushes.isEmpty { fail("pushes without completion: \(openPushes)") }
        if !timers.isEmpty { fail("timers still run: \(timers)") }
        if isAudioEnabled { fail("audio is still enabled") }
        if !coordinator.abandoned.isEmpty || !coordinator.reports.isEmpty {
            fail("the coordinator remembers old calls")
        }
    }
}

extension CallEffect {
    /// The call whose report or end this is.
    fileprivate var begunOrEnded: SystemCallID? {
        switch self {
        case .report(let id, _, _, _), .reportEnded(let id, _): id
        default: nil
        }
    }
}

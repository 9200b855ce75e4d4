import Confab
import Foundation

/// Connects the system's call screen, the SDK's calls, pushes and audio. It is a pure state machine that turns events
/// into effects. The SDK manages the calls themselves. The coordinator decides how the system shows them.
///
/// There is one current call, and one more may ring (`waiting`). A call's state changes only on an action from the
/// system: the app's buttons send requests to the system, which answers with actions. Each action is fulfilled or
/// failed exactly once. Where CallKit may not be used, requests are carried out immediately and the app shows its own
/// ringing screen.
public struct CallCoordinator: Equatable, Sendable {
    /// A call that waits for the previous call's audio to stop. If it started earlier, it would have no sound.
    struct QueuedCall: Equatable, Sendable {
        var id: SystemCallID
        var person: Person
        var video: Bool
    }

    /// The reports of one call that the system has not answered yet, and what to do once it answers.
    struct OpenReport: Equatable, Sendable {
        var count = 0
        /// The pushes to complete when the system answers.
        var pushes: [PushID] = []
        /// How the call ended before the system answered; nil while the call is in a slot.
        var ended: SystemEndReason?
    }

    public let usesSystem: Bool
    public internal(set) var current: CoordinatedCall?
    public internal(set) var waiting: CoordinatedCall?
    public internal(set) var audio: AudioMachine
    public internal(set) var isOnline = false
    /// Whether the camera can run: false while the system has taken it away. Does not change the user's choice to send
    /// video.
    public internal(set) var cameraWorks = true
    var environment: CallEnvironment
    var queued: QueuedCall?
    /// The reports that the system has not answered yet, keyed by the call's id.
    var reports: [SystemCallID: OpenReport] = [:]
    /// The ids of outgoing calls that ended on this device before the server answered their start.
    var abandoned: Set<SystemCallID> = []
    var pushToken: String?
    var out: [CallEffect] = []

    /// - Parameters:
    ///   - usesSystem: false in regions where CallKit is not allowed.
    ///   - environment: the state of the device until the first ``CallEvent/environment(_:)``.
    public init(
        usesSystem: Bool, environment: CallEnvironment = CallEnvironment(microphone: .undetermined, isLocked: false)
    ) {
        self.usesSystem = usesSystem
        self.environment = environment
        audio = AudioMachine(usesSystem: usesSystem)
    }

    /// Applies an event and returns the effects to perform, in order.
    public mutating func handle(_ event: CallEvent) -> [CallEffect] {
        out = []
        switch event {
        case .push(let text, let push): pushed(text, push)
        case .reportResult(let id, let push, let result): reported(id, push, result)
        case .server(let event): handle(event)
        case .system(let event): handle(event)
        case .app(let event): handle(event)
        case .audio(let event): handle(event)
        case .timer(let timer): expired(timer)
        case .online(let isNew): cameOnline(isNew: isNew)
        case .offline: isOnline = false
        case .environment(let environment): self.environment = environment
        case .pushToken(let token): changedToken(to: token)
        }
        updateAudio()
        defer { out = [] }
        return out
    }

    // MARK: Slots

    /// Selects one of the two calls: the current call, or the one that rings during it.
    enum Slot { case current, waiting }

    subscript(slot: Slot) -> CoordinatedCall? {
        get { slot == .current ? current : waiting }
        set { if slot == .current { current = newValue } else { waiting = newValue } }
    }

    func slot(of id: SystemCallID) -> Slot? {
        current?.id == id ? .current : waiting?.id == id ? .waiting : nil
    }

    func slot(callID: CallID) -> Slot? {
        current?.callID == callID ? .current : waiting?.callID == callID ? .waiting : nil
    }

    mutating func change(_ slot: Slot, _ change: (inout CoordinatedCall) -> Void) {
        guard var call = self[slot] else { return }
        change(&call)
        self[slot] = call
    }

    /// Puts a call into a free slot. Returns false if none is free.
    mutating func insert(_ call: CoordinatedCall) -> Bool {
        if current == nil { current = call } else if waiting == nil { waiting = call } else { return false }
        return true
    }

    /// Removes a call: stops its timer, fails its open action, and stops its ringtone. If it is the current call, the
    /// waiting call becomes the current one.
    /// - Parameter reason: the reason to report to the system; nil if the system already knows that the call ended, or
    ///   does not show it.
    mutating func remove(_ slot: Slot, _ reason: SystemEndReason? = nil) {
        guard let call = self[slot] else { return }
        stopTimer(slot)
        if let action = call.pending { out.append(.fail(action)) }
        // Failing the start action ends an outgoing call on the system's screen, so do not report its end as well.
        let isStarting = call.direction == .outgoing && call.pending != nil
        if let reason, !isStarting { reportEnded(call, reason) }
        stopRinging(call)
        // The server has not answered the start yet. Remember the id, so that `placed` ends the call on the server.
        if call.callID == nil, call.isSent { abandoned.insert(call.id) }
        self[slot] = nil
        if slot == .current { (current, waiting) = (waiting, nil) }
        updateAudio()
    }

    // MARK: Video

    /// Returns whether this device's camera runs for a call.
    public func usesCamera(_ call: CoordinatedCall) -> Bool { call.sendsVideo && cameraWorks && call.phase != .held }

    /// Returns whether the other person receives video, from the camera or the screen.
    func shows(_ call: CoordinatedCall) -> Bool { usesCamera(call) || call.isSharing && call.phase != .held }

    /// Sends changes to the current call's video to the camera and the server. A call that is not accepted yet sends
    /// them when it is accepted.
    mutating func tellVideo() {
        guard let call = current, let callID = call.callID, [.connecting, .active, .held].contains(call.phase) else {
            return
        }
        let (uses, shows) = (usesCamera(call), shows(call))
        if uses != call.runsCamera { out.append(.send(.setVideo(uses))) }
        if shows != call.reportedVideo { out.append(.send(.update(callID, video: shows))) }
        change(.current) { ($0.runsCamera, $0.reportedVideo) = (uses, shows) }
    }

    // MARK: Reports

    mutating func report(_ call: CoordinatedCall, push: PushID? = nil) {
        guard usesSystem else {
            out.append(.ring(call.id))
            if let push { out.append(.completePush(push)) }
            return
        }
        reports[call.id, default: OpenReport()].count += 1
        if let push { reports[call.id]?.pushes.append(push) }
        out.append(.report(call.id, call.person, video: call.video, push: push))
    }

    /// Reports the end of a call to the system. If a report of the call is unanswered, stores the reason instead, and
    /// `reported` reports the end after the answer: before that, the system does not know the call.
    mutating func reportEnded(_ call: CoordinatedCall, _ reason: SystemEndReason) {
        // The system knows an outgoing call only after its start action, which sets `isSent`.
        guard usesSystem, call.direction == .incoming || call.isSent else { return }
        guard let report = reports[call.id] else { return out.append(.reportEnded(call.id, reason)) }
        if report.ended == nil { reports[call.id]?.ended = reason }
    }

    mutating func stopRinging(_ call: CoordinatedCall) {
        if !usesSystem, call.direction == .incoming { out.append(.stopRinging(call.id)) }
    }

    mutating func startTimer(_ slot: Slot) {
        guard let call = self[slot], !call.hasTimer else { return }
        change(slot) { $0.hasTimer = true }
        out.append(.startTimer(.unconfirmed(call.id)))
    }

    mutating func stopTimer(_ slot: Slot) {
        guard let call = self[slot], call.hasTimer else { return }
        change(slot) { $0.hasTimer = false }
        out.append(.stopTimer(.unconfirmed(call.id)))
    }

    // MARK: Audio

    mutating func updateAudio() {
        if let current { out += audio.use(speaker: current.usesSpeaker).map(CallEffect.audio) }
        out += audio.want(current?.wantsAudio ?? false).map(CallEffect.audio)
    }

    private mutating func handle(_ event: SystemAudioEvent) {
        out += audio.handle(event).map(CallEffect.audio)
        if event == .deactivated { startQueued() }
    }

    // MARK: Other events

    private mutating func expired(_ timer: CallTimer) {
        switch timer {
        case .queued: startQueued(timerIsRunning: false)
        case .unconfirmed(let id):
            guard let slot = slot(of: id), self[slot]?.hasTimer == true else { return }
            change(slot) { $0.hasTimer = false }
            remove(slot, .failed)
        }
    }

    private mutating func cameOnline(isNew: Bool) {
        isOnline = true
        if isNew { out.append(.send(.appear)) }
        // Register for pushes with each connection: the server registers devices only for people who are online.
        if let pushToken { out.append(.send(.registerPush(pushToken))) }
        for slot in [Slot.current, .waiting] { sendAccept(slot) }
    }

    private mutating func changedToken(to token: String?) {
        let old = pushToken
        pushToken = token
        guard isOnline, let changed = token.map(CallRequest.registerPush) ?? old.map(CallRequest.unregisterPush) else {
            return
        }
        out.append(.send(changed))
    }
}

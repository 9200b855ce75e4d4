import Confab
import Foundation
import Observation

/// What the SDK says about a call besides ``CallServerEvent``.
public enum CallMediaEvent: Sendable {
    case partnerVideo((any VideoSource)?)
    case ownVideo((any VideoSource)?)
    case firstFrame
    /// The other person turned their video on or off.
    case partnerSendsVideo(Bool)
    /// Their video is paused because the network does not carry it.
    case partnerPaused(Bool)
}

/// What the person asks of the own media during a call.
public enum CallMediaRequest: Equatable, Sendable {
    case switchCamera
    case shareScreen(Bool)
}

/// Where the sound comes from.
public struct AudioRoute: Equatable, Identifiable, Sendable {
    public var id: String
    public var name: String

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

/// Calls on the screen: outgoing, incoming, in a call, and how it ended. ``CallCoordinator`` decides what happens.
@MainActor @Observable public final class CallsModel: Screen {
    /// The end of a call that is still shown.
    public struct Over: Equatable, Sendable {
        public var ending: EndedCall
        public var direction: CoordinatedCall.Direction
        public var video: Bool
        public var duration: Duration?
    }

    /// How long the end of a call is shown.
    static let overTime = Duration.seconds(60)

    public private(set) var coordinator: CallCoordinator
    public private(set) var partner: (any VideoSource)?
    public private(set) var own: (any VideoSource)?
    public private(set) var hasPicture = false
    public private(set) var partnerSendsVideo = true
    public private(set) var isPartnerPaused = false
    public private(set) var over: Over?
    public private(set) var advice: CallAdvice?
    public private(set) var activeSince: Date?
    public private(set) var now: Date
    public var routes: [AudioRoute] = []
    public var route: AudioRoute?

    public private(set) var isSharingScreen = false
    private let platform: Platform
    private let perform: @MainActor (CallEffect) -> Void
    private let request: @MainActor (CallMediaRequest) -> Void
    /// Called when the calls changed, before the effects.
    var onChange: (@MainActor () -> Void)?
    private var timers: [CallTimer: @MainActor () -> Void] = [:]
    private var cancelOver: (@MainActor () -> Void)?
    private var cancelTick: (@MainActor () -> Void)?
    private var announcedIncoming: SystemCallID?

    /// - Parameter perform: Sends what is for the server, the media and the person: everything but the system's part.
    init(
        platform: Platform, request: @escaping @MainActor (CallMediaRequest) -> Void = { _ in },
        perform: @escaping @MainActor (CallEffect) -> Void
    ) {
        (self.platform, self.request, self.perform) = (platform, request, perform)
        coordinator = CallCoordinator(usesSystem: platform.calls.isAllowed)
        now = platform.clock.now
        platform.calls.onEvent = { [weak self] in self?.handle($0) }
    }

    // MARK: Events

    /// Applies an event at once, because the system requires some effects before its callback returns.
    public func handle(_ event: CallEvent) {
        switch event {
        case .push, .system(.answer), .app(.answer): refreshEnvironment()
        default: break
        }
        let before = coordinator.current
        let effects = coordinator.handle(event)
        follow(before)
        onChange?()
        for effect in effects { carryOut(effect, before) }
    }

    func handle(_ event: CallMediaEvent) {
        guard coordinator.current != nil else { return }
        switch event {
        case .partnerVideo(let source): (partner, hasPicture, partnerSize) = (source, false, nil)
        case .ownVideo(let source):
            own = source
            applyToMedia()
        case .firstFrame: hasPicture = true
        case .partnerSendsVideo(let sends): partnerSendsVideo = sends
        case .partnerPaused(let isPaused): isPartnerPaused = isPaused
        }
    }

    /// Media that was opened for a call does what the buttons say, whatever the previous use did with it.
    private func applyToMedia() {
        guard let call = coordinator.current else { return }
        perform(.setMuted(call.id, call.isMuted || call.phase == .held))
        perform(.setVideo(call.id, call.sendsVideo && call.phase != .held))
    }

    /// The screen is locked or unlocked.
    public var isLocked = false { didSet { if isLocked != oldValue { refreshEnvironment() } } }

    private func refreshEnvironment() {
        let microphone: CallEnvironment.Microphone =
            switch platform.permissions.status(of: .microphone) {
            // Without a microphone, one can still listen.
            case .allowed, .missing: .allowed
            case .notAsked: .undetermined
            case .refused, .restricted: .refused
            }
        let environment = CallEnvironment(microphone: microphone, isLocked: isLocked, canShow: canShow)
        _ = coordinator.handle(.environment(environment))
    }

    /// Whether the camera can be used, or asked for.
    private var canShow: Bool {
        switch platform.permissions.status(of: .camera) {
        case .allowed, .notAsked: true
        case .refused, .restricted, .missing: false
        }
    }

    /// Keeps what is shown beside the coordinator's state in step with it.
    private func follow(_ before: CoordinatedCall?) {
        let current = coordinator.current
        if current?.id != before?.id {
            (partner, own, hasPicture, partnerSendsVideo, isPartnerPaused) = (nil, nil, false, true, false)
            partnerSize = nil
            (activeSince, isSharingScreen) = (nil, false)
            if current != nil { (over, advice) = (nil, nil) }
        }
        if current?.phase == .active, activeSince == nil {
            activeSince = platform.clock.now
            tick()
        }
        if current?.phase != before?.phase, current != nil { announce(statusText) }
        if incoming?.id != announcedIncoming {
            announcedIncoming = incoming?.id
            announce(incomingText)
        }
    }

    private func announce(_ text: String) { if !text.isEmpty { platform.announcer.announce(text) } }

    private func carryOut(_ effect: CallEffect, _ before: CoordinatedCall?) {
        switch effect {
        case .report, .update, .reportConnecting, .reportConnected, .reportEnded, .completePush, .request, .fulfil,
            .fail,
            .ring, .stopRinging:
            platform.calls.perform(effect)
        case .audio(let effect): platform.audio.perform(effect)
        case .startTimer(let timer):
            timers[timer] = platform.clock.schedule(after: timer.interval) { [weak self] in
                self?.timers[timer] = nil
                self?.handle(.timer(timer))
            }
        case .stopTimer(let timer): timers.removeValue(forKey: timer)?()
        case .show(let ending): show(ending, before)
        case .tell(let advice): tell(advice)
        case .openSocket, .appear, .send, .registerPush, .unregisterPush, .join, .publish, .leave, .setMuted, .setVideo:
            perform(effect)
        }
    }

    private func tell(_ advice: CallAdvice) {
        self.advice = advice
        announce(adviceText)
        // A locked phone shows only notifications. This advice stays until the person has read it.
        if case .allowMicrophone = advice { return platform.announcer.notify(adviceText) }
        showForAWhile()
    }

    private func showForAWhile() {
        cancelOver?()
        cancelOver = platform.clock.schedule(after: Self.overTime) { [weak self] in
            self?.over = nil
            if self?.offersSettings == false { self?.advice = nil }
        }
    }

    private func show(_ ending: EndedCall, _ before: CoordinatedCall?) {
        defer { handle(.app(.shown(callID: ending.callID))) }
        // Not over a call that goes on. The call history has it.
        guard coordinator.current == nil else { return }
        let call = before?.callID == ending.callID ? before : nil
        var shown = ending
        shown.person = ending.person ?? call?.person
        over = Over(
            ending: shown, direction: call?.direction ?? .incoming, video: call?.video ?? true,
            duration: lastDuration(call))
        showForAWhile()
        announce(statusText)
    }

    private var lastActive: Date?

    private func lastDuration(_ call: CoordinatedCall?) -> Duration? {
        defer { lastActive = nil }
        guard call != nil, let lastActive else { return nil }
        return .seconds(max(0, platform.clock.now.timeIntervalSince(lastActive)))
    }

    private func tick() {
        cancelTick?()
        now = platform.clock.now
        guard let activeSince else { return }
        lastActive = activeSince
        cancelTick = platform.clock.schedule(after: .seconds(1)) { [weak self] in self?.tick() }
    }

    // MARK: What the person does

    /// Calls somebody. Without the microphone there is no call, and without the camera it is one by voice.
    public func call(_ person: CallPerson, video: Bool) {
        switch platform.permissions.status(of: .microphone) {
        case .allowed, .notAsked, .missing: handle(.app(.call(SystemCallID(), person, video: video && canShow)))
        case .refused, .restricted: tell(.microphoneNeeded)
        }
    }
    public func accept() {
        if let id = incoming?.id { handle(.app(.answer(id))) }
    }
    public func decline() {
        if let id = incoming?.id { handle(.app(.end(id))) }
    }
    public func end() {
        if let id = coordinator.current?.id { handle(.app(.end(id))) }
    }
    public func toggleMute() { handle(.app(.mute(!isMuted))) }
    public func toggleHold() { handle(.app(.hold(!isHeld))) }
    public func toggleCamera() {
        if let call = coordinator.current { handle(.app(.video(!call.sendsVideo))) }
    }
    public func callAgain() {
        guard let over, let person = over.ending.person else { return }
        call(person, video: over.video)
    }
    public func dismiss() {
        (over, advice) = (nil, nil)
        cancelOver?()
    }

    /// The view shows the first frame of the other person.
    public func pictureShown() { handle(.firstFrame) }
    /// The size of the other person's pictures, in pixels.
    public private(set) var partnerSize: PixelSize?
    public func pictureSize(_ size: PixelSize) { partnerSize = size }
    /// The size of the small window outside of the app.
    public var windowSize: PixelSize { partnerSize ?? .usual }
    public func switchCamera() { request(.switchCamera) }
    public func toggleScreen() {
        guard isInCall, showsControls else { return }
        isSharingScreen.toggle()
        request(.shareScreen(isSharingScreen))
    }

    // MARK: What is shown

    /// The call that rings here, in its own screen or as a banner during another call.
    public var incoming: CoordinatedCall? {
        for call in [coordinator.waiting, coordinator.current].compactMap(\.self)
        where call.direction == .incoming && (call.phase == .reported || call.phase == .ringing) {
            return call
        }
        return nil
    }
    /// Whether the app has to show the ringing call itself.
    public var showsIncoming: Bool { incoming != nil }
    /// Whether a call fills the screen. One that rings here, or is being declined, does not.
    public var isInCall: Bool {
        guard let call = coordinator.current, call.id != incoming?.id else { return false }
        return call.endedIn != .reported && call.endedIn != .ringing
    }
    /// Whether there is a call in any state.
    public var hasCall: Bool { coordinator.current != nil || coordinator.queued != nil }
    /// Whether there are more buttons than the one that ends the call.
    public var showsControls: Bool {
        switch coordinator.current?.phase {
        case .connecting, .active, .held, .rejoining, .ending: true
        case nil, .reported, .ringing, .answering, .placing: false
        }
    }
    public var canEnd: Bool { coordinator.current.map { $0.phase != .ending } ?? false }
    public var canSwitchCamera: Bool { !isCameraOff && !isHeld }
    /// The own picture, while others see it.
    public var ownPicture: (any VideoSource)? { isCameraOff ? nil : own }
    /// Whether the end of a call or an advice is shown above the other screens.
    public var showsEnd: Bool { !isInCall && (over != nil || advice != nil) }
    public var isMuted: Bool { coordinator.current?.isMuted ?? false }
    public var isHeld: Bool { coordinator.current?.phase == .held }
    public var isCameraOff: Bool { !(coordinator.current?.sendsVideo ?? true) }
    public var isScreenAwake: Bool { isInCall && (coordinator.current?.sendsVideo == true || partnerSendsVideo) }
    public var duration: Duration? {
        activeSince.map { .seconds(max(0, now.timeIntervalSince($0).rounded(.down))) }
    }
    public var durationText: String { duration?.clockText ?? "" }
}

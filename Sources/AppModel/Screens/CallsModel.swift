import Confab
import Foundation
import Observation

/// An event that concerns a call's media and is not among those in ``CallServerEvent``.
public enum CallMediaEvent: Sendable {
    case partnerVideo((any VideoSource)?)
    case ownVideo((any VideoSource)?)
    case firstFrame
    /// True when the server paused the other person's video for lack of bandwidth, false when the video resumed.
    case partnerPaused(Bool)
    /// The camera could not be opened during the call.
    case cameraFailed(ConfabError)
}

/// A request from the user about this device's media during a call.
public enum CallMediaRequest: Equatable, Sendable {
    case switchCamera
    case shareScreen(Bool)
}

/// The screens for outgoing, incoming, active and ended calls. ``CallCoordinator`` makes the decisions.
@MainActor @Observable public final class CallsModel: Screen {
    /// An ended call that is still shown.
    public struct Over: Equatable, Sendable {
        public var ending: CallEnding
        public var video: Bool
        public var duration: Duration?
    }

    /// How long a message to the user, or the end of a call, is shown.
    static let overTime = Duration.seconds(60)

    public private(set) var coordinator: CallCoordinator
    public private(set) var partner: (any VideoSource)?
    public private(set) var own: (any VideoSource)?
    public private(set) var hasPicture = false
    /// Whether the other person sends video. True while there is no call, and until the call is accepted.
    public var partnerSendsVideo: Bool {
        coordinator.current.flatMap { $0.isAccepted ? $0.call?.receivesVideo : nil } ?? true
    }
    public private(set) var isPartnerPaused = false
    public private(set) var over: Over?
    public private(set) var advice: CallAdvice?
    public private(set) var activeSince: Date?
    public private(set) var now: Date

    public private(set) var isSharingScreen = false
    public private(set) var camera = CameraState()
    /// The contact offers from the most recent calls, the newest last.
    private var keepings: [(call: CallID, keeping: ContactOffer)] = []
    static let maxKeepings = 4
    private let platform: Platform
    private let ringer: Ringer
    private let isContact: @MainActor (_ person: PersonID) -> Bool
    private let keep: @MainActor (_ call: CallID) -> Void
    private let perform: @MainActor (CallRequest) -> Void
    private let request: @MainActor (CallMediaRequest) -> Void
    /// Called after the calls have changed, before the effects are performed.
    var onChange: (@MainActor () -> Void)?
    private var timers: [CallTimer: @MainActor () -> Void] = [:]
    private var cancelOver: (@MainActor () -> Void)?
    private var cancelTick: (@MainActor () -> Void)?
    private var announcedIncoming: SystemCallID?

    /// - Parameters:
    ///   - isTalking: returns whether the user is in a chat or a room, where calls ring quietly.
    ///   - perform: performs requests to the SDK and the media. `platform` performs the effects on the system.
    init(
        platform: Platform, isTalking: @escaping @MainActor () -> Bool = { false },
        isContact: @escaping @MainActor (_ person: PersonID) -> Bool = { _ in false },
        keep: @escaping @MainActor (_ call: CallID) -> Void = { _ in },
        request: @escaping @MainActor (CallMediaRequest) -> Void = { _ in },
        perform: @escaping @MainActor (CallRequest) -> Void
    ) {
        (self.platform, self.isContact, self.keep) = (platform, isContact, keep)
        (self.request, self.perform) = (request, perform)
        ringer = Ringer(platform.ringing, clock: platform.clock)
        coordinator = CallCoordinator(usesSystem: platform.calls.isAllowed)
        now = platform.clock.now
        platform.calls.onEvent = { [weak self] in self?.handle($0) }
        ringer.isQuiet = { [weak self] in self.map { $0.isInCall || isTalking() } ?? false }
    }

    // MARK: Events

    /// Applies an event synchronously, because the system requires some effects before its callback returns.
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
        case .partnerPaused(let isPaused): isPartnerPaused = isPaused
        case .cameraFailed(let trouble):
            handle(.app(.video(false)))
            tell(.trouble(trouble))
        }
    }

    /// Handles events from the camera and from screen sharing. The coordinator notifies the other person whether there
    /// is video, so that a camera stopped by the system does not leave a frozen image.
    func handle(_ event: CaptureEvent) {
        switch event {
        case .cameraInterrupted(let isInterrupted):
            camera.isInterrupted = isInterrupted
            handle(.app(.camera(works: !isInterrupted)))
        case .cameraFaces(let facing): camera.facing = facing
        case .shareStarted: if isSharingScreen { handle(.app(.sharing(true))) }
        case .shareEnded(let trouble):
            guard isSharingScreen else { return }
            isSharingScreen = false
            handle(.app(.sharing(false)))
            tell(.trouble(trouble))
        }
    }

    func handle(_ event: Contacts.Event) {
        switch event {
        case .asked(.call(let call)):
            if keeping(of: call) == .none { setKeeping(.asked, of: call) }
            if call == metIn?.call { announce(keepText) }
        case .added(_, .call(let call)):
            setKeeping(.agreed, of: call)
            if call == metIn?.call { announce(keepText) }
        case .asked, .added, .changed, .removed: break
        }
    }

    func keepFailed(_ call: CallID, _ error: ConfabError) {
        guard keeping(of: call) == .wanted else { return }
        setKeeping(.none, of: call)
        tell(.trouble(error))
    }

    private func setKeeping(_ keeping: ContactOffer, of call: CallID) {
        keepings.removeAll { $0.call == call }
        keepings.append((call, keeping))
        if keepings.count > Self.maxKeepings { keepings.removeFirst() }
    }

    private func keeping(of call: CallID) -> ContactOffer { keepings.first { $0.call == call }?.keeping ?? .none }

    /// Applies the state of the buttons to media opened for a call, which may still have the state of its previous use.
    private func applyToMedia() {
        guard let call = coordinator.current else { return }
        perform(.setMuted(call.callID, call.isMuted || call.phase == .held))
        perform(.setVideo(coordinator.usesCamera(call)))
    }

    /// Whether the device is locked. The app updates this when the system reports a change.
    public var isLocked = false { didSet { if isLocked != oldValue { refreshEnvironment() } } }

    private func refreshEnvironment() {
        let microphone: CallEnvironment.Microphone =
            switch platform.permissions.status(of: .microphone) {
            // Without a microphone, the user can still listen.
            case .allowed, .missing: .allowed
            case .notAsked: .undetermined
            case .refused, .restricted: .refused
            }
        let environment = CallEnvironment(microphone: microphone, isLocked: isLocked, canShow: canShow)
        _ = coordinator.handle(.environment(environment))
    }

    private var canShow: Bool { platform.permissions.mayShow }

    /// Updates the properties that depend on the coordinator's state, and announces changes in that state.
    private func follow(_ before: CoordinatedCall?) {
        let current = coordinator.current
        if current?.id != before?.id {
            former = before ?? former
            (partner, own, hasPicture, isPartnerPaused) = (nil, nil, false, false)
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
            .fail:
            platform.calls.perform(effect)
        case .ring(let id): ringer.ring(id)
        case .stopRinging(let id): ringer.stop(id)
        case .audio(let effect):
            platform.audio.perform(effect) { [weak self] isDone in
                // The system may refuse, for example during a phone call. Then `ApplicationModel` tries again.
                if effect == .setActive(true) { self?.handle(.audio(isDone ? .activated : .refused)) }
            }
        case .startTimer(let timer):
            timers[timer] = platform.clock.schedule(after: timer.interval) { [weak self] in
                self?.timers[timer] = nil
                self?.handle(.timer(timer))
            }
        case .stopTimer(let timer): timers.removeValue(forKey: timer)?()
        case .show(let ending): show(ending, before)
        case .tell(let advice): tell(advice)
        case .send(let request): perform(request)
        }
    }

    private func tell(_ advice: CallAdvice) {
        self.advice = advice
        announce(adviceText)
        // A locked phone shows only notifications. This advice stays until the user dismisses it.
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

    private func show(_ ending: CallEnding, _ before: CoordinatedCall?) {
        defer { handle(.app(.shown(ending.id))) }
        // Do not cover a call that continues. The call history contains the ended one.
        guard coordinator.current == nil else { return }
        // If this user ended the call, it was removed before the server confirmed its end, so it may be `former`.
        let call = [before, former].compactMap(\.self).first { $0.callID == ending.id }
        over = Over(ending: ending, video: call?.video ?? true, duration: lastDuration(call))
        showForAWhile()
        announce(statusText)
    }

    private var lastActive: Date?
    /// The call before the current one; nil if there was none.
    private var former: CoordinatedCall?

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

    // MARK: User actions

    /// Calls a person, after requesting the permissions. Without the microphone permission, shows a message instead.
    /// Without the camera, places a voice call.
    public func call(_ person: Person, video: Bool) {
        platform.permissions.settle(video ? [.microphone, .camera] : [.microphone]) { [weak self] in
            guard let self else { return }
            guard platform.permissions.mayTalk else { return tell(.microphoneNeeded) }
            handle(.app(.call(SystemCallID(), person, video: video && canShow)))
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
    /// Ends all calls. Called when the app leaves the server.
    func endAll() {
        for call in [coordinator.waiting, coordinator.current].compactMap(\.self) { handle(.app(.end(call.id))) }
    }
    public func toggleMute() { handle(.app(.mute(!isMuted))) }
    public func toggleHold() { handle(.app(.hold(!isHeld))) }
    public func toggleCamera() {
        guard isCameraOff else { return handle(.app(.video(false))) }
        platform.permissions.settle([.camera]) { [weak self] in
            guard let self else { return }
            if canShow { handle(.app(.video(true))) } else { tell(.cameraNeeded) }
        }
    }
    public func callAgain() {
        if let over { call(over.ending.person, video: over.video) }
    }
    /// Asks to keep in touch. Both become contacts if the other person asks too.
    public func keepInTouch() {
        guard canKeep, let call = metIn?.call else { return }
        setKeeping(.wanted, of: call)
        keep(call)
    }
    public func dismiss() {
        (over, advice) = (nil, nil)
        cancelOver?()
    }

    /// Handles the first frame of the other person's video.
    public func pictureShown() { handle(.firstFrame) }
    /// The size of the other person's video, in pixels; nil until it is known.
    public private(set) var partnerSize: PixelSize?
    public func pictureSize(_ size: PixelSize) { partnerSize = size }
    public var smallWindow: SmallWindow? { SmallWindow(partnerVideo, partnerSize) }
    public func switchCamera() { request(.switchCamera) }
    public func toggleScreen() {
        guard isInCall, showsControls else { return }
        isSharingScreen.toggle()
        // Report the end of a share before the camera replaces the screen.
        if !isSharingScreen { handle(.app(.sharing(false))) }
        request(.shareScreen(isSharingScreen))
    }

    // MARK: Display state

    /// The current or last call in which this user talked with another person, and that person; nil if there is none.
    private var metIn: (call: CallID, person: Person)? {
        if let call = coordinator.current {
            guard !call.isRejoining, call.phase == .active || call.phase == .held, let id = call.callID else {
                return nil
            }
            return call.person.map { (id, $0) }
        }
        guard let over, over.duration != nil else { return nil }
        return (over.ending.id, over.ending.person)
    }
    private var met: ContactOffer { metIn.map { keeping(of: $0.call) } ?? .none }
    public var canKeep: Bool { metIn.map { met.isOpen && !isContact($0.person.id) } ?? false }
    public var keepText: String {
        let name = isolated(metIn?.person.name ?? Person.unknownName)
        return met.text(name, name)
    }
    /// The ringing call, shown on its own screen or as a banner during another call; nil if no call rings.
    public var incoming: CoordinatedCall? {
        [coordinator.waiting, coordinator.current].compactMap(\.self).first(where: rings)
    }
    /// Whether to show a ringing call.
    public var showsIncoming: Bool { incoming != nil }
    /// Whether a call fills the screen. A call that rings on this device or is being declined does not.
    public var isInCall: Bool {
        guard let call = coordinator.current, !rings(call) else { return false }
        return call.endedIn != .reported && call.endedIn != .ringing
    }
    private func rings(_ call: CoordinatedCall) -> Bool {
        call.direction == .incoming && (call.phase == .reported || call.phase == .ringing)
    }
    /// Whether there is a call in any state, including one that waits to be placed.
    public var hasCall: Bool { coordinator.current != nil || coordinator.queued != nil }
    /// Whether to show more controls than the button that ends the call.
    public var showsControls: Bool {
        switch coordinator.current?.phase {
        case .connecting, .active, .held, .ending: true
        case nil, .reported, .ringing, .answering, .placing: false
        }
    }
    public var canEnd: Bool { coordinator.current.map { $0.phase != .ending } ?? false }
    public var canSwitchCamera: Bool { !isCameraOff && !isHeld && !camera.isInterrupted }
    /// The video for the self-view; nil while the camera is off or interrupted.
    public var ownPicture: (any VideoSource)? { isCameraOff || camera.isInterrupted ? nil : own }
    /// The other person's video; nil while it is off, because otherwise the last frame would stay.
    public var partnerVideo: (any VideoSource)? { partnerSendsVideo ? partner : nil }
    /// Whether a message to the user, or the end of a call, is shown above the other screens.
    public var showsEnd: Bool { !isInCall && (over != nil || advice != nil) }
    public var isMuted: Bool { coordinator.current?.isMuted ?? false }
    public var isHeld: Bool { coordinator.current?.phase == .held }
    public var isCameraOff: Bool { !(coordinator.current?.sendsVideo ?? true) }
    public var isScreenAwake: Bool { isInCall && (coordinator.current?.sendsVideo == true || partnerSendsVideo) }
    /// Whether the phone may be at the ear, because the call uses the earpiece and the other person sends no video.
    var isAtEar: Bool { isInCall && !coordinator.audio.usesSpeaker && !partnerSendsVideo }
    public var duration: Duration? {
        activeSince.map { .seconds(max(0, now.timeIntervalSince($0).rounded(.down))) }
    }
    public var durationText: String { duration?.clockText ?? "" }
}

import Confab
import Foundation
import Observation
import enum Wire.Limits

/// The screen for chats with strangers: the partner on top, the self-view below, and the Next button.
@MainActor @Observable public final class RouletteModel: Screen {
    /// The state of the search and the chat.
    public enum Status: Equatable, Sendable {
        case idle
        case waiting(until: Date?)
        /// Connected to a partner whose media has not arrived yet.
        case matched
        case talking
        case partnerAway
        case noStream
    }

    /// The maximum number of messages kept on the screen.
    static let maxLines = 200
    static let maxMessage = 2000
    static let maxInterests = 10

    public private(set) var status = Status.idle
    public private(set) var partnerName = ""
    public private(set) var sharedInterests: [String] = []
    public private(set) var partner: (any VideoSource)?
    /// Whether the server has asked to blur the partner's video. The app hides it instead.
    public private(set) var isPartnerBlurred = false
    /// The partner's video while it is hidden.
    private var hiddenPartner: (any VideoSource)?
    public private(set) var own: (any VideoSource)?
    public private(set) var chat: [ChatEntry] = []
    public private(set) var isPartnerTyping = false
    public private(set) var isMuted = false
    public private(set) var isCameraOff = false
    public private(set) var camera = CameraState()
    /// Whether the devices are open.
    public private(set) var isPrepared = false
    public private(set) var lastEnding: MatchEnding?
    /// Whether the chat or the search ended because the user left the app.
    var hasLeftApp = false
    /// The id of the current chat, or of the last one since the search began.
    private var match: MatchID?
    /// Whether the partner's audio or video has arrived.
    private var hasArrived = false
    /// Whether there has been a partner since the search began.
    private var hadPartner = false
    public private(set) var trouble: ConfabError?
    public private(set) var peopleOnline: Int?
    public private(set) var keeping = ContactOffer.none
    public private(set) var report: ReportModel?
    public private(set) var hasChat = true
    public private(set) var isConnected = true
    public private(set) var now: Date
    public var mode = Roulette.Mode.video { didSet { if mode != oldValue { changedMode() } } }
    public private(set) var interests: [String] = []
    public var interestDraft = ""
    public var draft = "" { didSet { draftChanged(from: oldValue) } }

    private let clock: any AppClock
    private let request: @MainActor (RouletteRequest) -> Void
    private let announce: @MainActor (String) -> Void
    private var nextLine = 1
    private var cancelTick: (@MainActor () -> Void)?
    private var isShown = false
    private let permissions: any Permissions

    init(
        clock: any AppClock, permissions: any Permissions, announce: @escaping @MainActor (String) -> Void = { _ in },
        request: @escaping @MainActor (RouletteRequest) -> Void
    ) {
        (self.clock, self.permissions, self.request, self.announce) = (clock, permissions, request, announce)
        now = clock.now
    }

    // MARK: Enabled controls

    public var isInChat: Bool {
        switch status {
        case .idle, .waiting: false
        case .matched, .talking, .partnerAway, .noStream: true
        }
    }
    public var isIdle: Bool { status == .idle }
    public var canStart: Bool { isIdle && isConnected }
    public var canNext: Bool { isInChat }
    public var canStop: Bool { !isIdle }
    public var canSend: Bool { isInChat && hasChat && !draft.allSatisfy(\.isWhitespace) }
    public var canReport: Bool { hadPartner }
    public var canBlock: Bool { canReport && lastEnding != .blocked }
    public var canKeep: Bool { canReport && keeping.isOpen }
    public var canAddInterest: Bool { interests.count < Self.maxInterests && isIdle }
    public var isScreenAwake: Bool { !isIdle }
    public var canSwitchCamera: Bool { !isCameraOff && own != nil && camera.works }
    public var showsPictures: Bool { mode == .video }
    /// Whether the camera and the microphone must be opened before a chat. Text chats need neither.
    public var asksForDevices: Bool { mode == .video && !isPrepared }
    /// The video for the self-view; nil while the camera is off or cannot run.
    public var shownOwn: (any VideoSource)? { isCameraOff || !camera.works ? nil : own }
    public private(set) var partnerSize: PixelSize?
    public func pictureSize(_ size: PixelSize) { partnerSize = size }
    public var smallWindow: SmallWindow? { SmallWindow(partner, partnerSize) }
    /// Whether the small window shows the partner. If so, the chat continues while the app is off screen.
    public private(set) var isInSmallWindow = false
    var onSmallWindow: (@MainActor () -> Void)?
    /// The notes below the messages: a hint about the chat, and whether the partner is typing.
    public var notes: [String] { [chatHint, typingText].filter { !$0.isEmpty } }
    /// Whether to show a placeholder for the partner's video: there is a partner, but no video.
    public var lacksPicture: Bool { isInChat && partner == nil }
    /// Whether a chat needs audio.
    var wantsSound: Bool { isInChat && mode == .video }

    // MARK: User actions

    public func preview() { request(.preview(video: permissions.mayShow)) }

    /// Handles the appearance of the screen. The number of people online is requested only while the screen is
    /// visible.
    public func appear() {
        isShown = true
        if isConnected { request(.count) }
    }
    public func disappear() { isShown = false }

    /// Closes the devices when the user selects text chat. Otherwise, the camera's light would suggest that a text
    /// chat uses the camera.
    private func changedMode() { if mode == .text, isPrepared { request(.closePreview) } }

    public func addInterest() {
        let text = interestDraft.trimmingCharacters(in: .whitespacesAndNewlines)
        interestDraft = ""
        guard canAddInterest, !text.isEmpty, !interests.contains(text) else { return }
        interests.append(text)
    }

    public func removeInterest(_ text: String) {
        if isIdle { interests.removeAll { $0 == text } }
    }

    public func start() {
        guard canStart else { return }
        (trouble, lastEnding, match, hadPartner, hasLeftApp) = (nil, nil, nil, false, false)
        status = .waiting(until: nil)
        permissions.settle(neededPermissions) { [weak self] in self?.sendStart() }
    }

    private var neededPermissions: [Permission] {
        mode == .text ? [] : isCameraOff ? [.microphone] : [.camera, .microphone]
    }

    private func sendStart() {
        // The user may have stopped while the system showed its prompts.
        guard !isIdle else { return }
        request(.start(mode, interests: interests, video: !isCameraOff && permissions.mayShow))
    }

    public func next() {
        guard canNext else { return }
        leavePartner(.next)
        request(.next)
    }

    public func stop() {
        guard canStop else { return }
        leavePartner(nil)
        status = .idle
        request(.stop)
    }

    /// Ends the chat or the search because the user left the app.
    func stopUnseen() {
        guard canStop else { return }
        stop()
        hasLeftApp = true
    }

    public func block() {
        guard canBlock else { return }
        if isInChat { leavePartner(.blocked) } else { lastEnding = .blocked }
        request(.block(match: match))
    }

    public func keep() {
        guard canKeep else { return }
        keeping = .wanted
        request(.keep)
    }

    public func send() {
        let text = draft.trimmingCharacters(in: .whitespacesAndNewlines)
        guard canSend else { return }
        draft = ""
        let line = ChatEntry(
            id: nextLine, isOwn: true, text: String(text.prefix(Self.maxMessage)).prefix(bytes: Limits.signalData))
        append(line)
        request(.say(line.text, id: line.id))
    }

    /// Sends a failed message again.
    public func sendAgain(_ id: Int) {
        guard isInChat, let index = chat.firstIndex(where: { $0.id == id && !$0.isSent }) else { return }
        chat[index].isSent = true
        request(.say(chat[index].text, id: id))
    }

    public func toggleMute() {
        isMuted.toggle()
        request(.mute(isMuted))
    }

    public func toggleCamera() {
        guard isCameraOff else { return setCamera(isOff: true) }
        permissions.settle([.camera]) { [weak self] in
            guard let self else { return }
            if permissions.mayShow { setCamera(isOff: false) } else { tell(.cameraNeeded) }
        }
    }

    private func setCamera(isOff: Bool) {
        isCameraOff = isOff
        if trouble == .cameraNeeded { trouble = nil }
        request(.camera(!isOff && camera.works))
    }

    private func tell(_ trouble: ConfabError) {
        self.trouble = trouble
        announce(trouble.message)
    }

    public func switchCamera() { request(.switchCamera) }

    public func openReport() {
        guard canReport else { return }
        // The search continues behind the sheet, and may find the next partner, so remember the reported chat.
        report = ReportModel(partnerName: name, chat: chat) { [weak self, match] reason, blocks in
            self?.request(.report(reason, match: match))
            if blocks { self?.block(match) }
        }
    }

    private func block(_ reported: MatchID?) {
        if reported == match { block() } else { request(.block(match: reported)) }
    }

    public func closeReport() { report = nil }

    private func draftChanged(from old: String) {
        guard isInChat, hasChat, draft.isEmpty != old.isEmpty else { return }
        request(.typing(!draft.isEmpty))
    }

    /// Handles the first frame of the partner's video.
    public func pictureShown() { handle(.firstFrame) }

    /// Records whether the Picture in Picture window is shown.
    public func smallWindow(isShown: Bool) {
        isInSmallWindow = isShown
        onSmallWindow?()
    }

    // MARK: Events

    func connection(isUp: Bool) {
        let isBack = isUp && !isConnected
        isConnected = isUp
        if isBack, isShown { request(.count) }
    }

    /// Handles events from the camera. While the system has taken the camera away, others see that it is off, instead
    /// of a frozen image.
    func handle(_ event: CaptureEvent) {
        switch event {
        case .cameraInterrupted(let isInterrupted): changeCamera { $0.isInterrupted = isInterrupted }
        case .cameraFaces(let facing): camera.facing = facing
        // The roulette has no screen sharing.
        case .shareStarted, .shareEnded: break
        }
    }

    /// Records whether the camera may run. The system stops it while the app is off screen.
    func showsCamera(_ isRunning: Bool) { changeCamera { $0.isStopped = !isRunning } }

    private func changeCamera(_ change: (inout CameraState) -> Void) {
        let worked = camera.works
        change(&camera)
        guard camera.works != worked, isPrepared, mode == .video, !isCameraOff else { return }
        request(.camera(camera.works))
    }

    /// Applies the state of the buttons to newly opened media.
    private func applyToMedia() {
        request(.mute(isMuted))
        if own != nil { request(.camera(!isCameraOff && camera.works)) }
    }

    func handle(_ event: RouletteEvent) {
        switch event {
        case .preview(let source):
            (own, isPrepared) = (source, true)
            applyToMedia()
        case .released: (own, isPrepared) = (nil, false)
        case .cameraFailed(let trouble):
            isCameraOff = true
            request(.camera(false))
            tell(trouble)
        case .happened(let event): handle(event)
        case .firstFrame: arrived()
        case .sent(let id, let isSent):
            guard let index = chat.firstIndex(where: { $0.id == id }) else { return }
            chat[index].isSent = isSent
            if !isSent { announce(chat[index].notSentText) }
        case .keepFailed(let trouble):
            guard keeping == .wanted else { return }
            keeping = .none
            tell(trouble)
        case .reported(let trouble): report?.finished(trouble)
        case .online(let count): peopleOnline = count
        case .stopped(let trouble):
            leavePartner(nil)
            self.trouble = trouble
            change(to: .idle)
        }
    }

    private func handle(_ event: Roulette.Event) {
        switch event {
        case .waiting(let pause): wait(pause)
        case .matched(let match):
            // A match may arrive after Stop. It ends immediately, so ignore it.
            guard !isIdle else { return }
            (self.match, hadPartner) = (match.id, true)
            (partnerName, sharedInterests, hasChat) = (match.partnerName, match.sharedInterests, match.hasTextChat)
            (chat, keeping, lastEnding, trouble) = ([], .none, nil, nil)
            (isPartnerBlurred, hiddenPartner) = (false, nil)
            change(to: .matched)
        case .video(let source):
            guard isInChat else { return }
            if isPartnerBlurred { hiddenPartner = source } else { partner = source }
        case .audioOnly:
            // Remove the source. Otherwise, the last frame would stay on the screen.
            (partner, hiddenPartner) = (nil, nil)
            arrived()
        case .warned(let warning): tell(warning)
        case .partnerBlurred(let isBlurred): blurPartner(isBlurred)
        case .ownVideoBlurred(let isBlurred):
            guard isInChat, isBlurred else { return }
            let text = "Your partner sees your video blurred, because it may break the rules. Change what it shows."
            tell(ConfabError.moderated(text))
        case .noStream: if status == .matched { change(to: .noStream) }
        case .partner(let isConnected):
            guard isInChat else { return }
            change(to: !isConnected ? .partnerAway : hasArrived || mode == .text ? .talking : .matched)
        case .message(let line):
            guard isInChat, !line.isMine else { return }
            isPartnerTyping = false
            append(ChatEntry(id: nextLine, isOwn: false, text: String(line.text.prefix(Self.maxMessage))))
            announce("\(name): \(line.text)")
        case .typing(let isTyping): isPartnerTyping = isTyping && isInChat
        case .contactAsked: if keeping == .none { keeping = .asked }
        case .ended(let ending):
            guard isInChat else { return }
            leavePartner(ending)
            // The server continues the search automatically, unless the search ended too.
            change(to: ending.isFinal ? .idle : .waiting(until: nil))
        case .entered, .receiving, .recovered, .failed: break
        }
    }

    /// Hides the partner's video, or shows it again.
    private func blurPartner(_ isBlurred: Bool) {
        guard isInChat, isBlurred != isPartnerBlurred else { return }
        isPartnerBlurred = isBlurred
        (partner, hiddenPartner) = (hiddenPartner, partner)
        if isBlurred { announce(hiddenText) }
    }

    private func tell(_ warning: RouletteWarning) {
        let what =
            if warning.endsChat {
                "The chat was ended because your video seems to break the rules."
            } else if warning.isByOperator {
                "A warning from the operators of this server, after a report:"
            } else {
                "Your video may break the rules."
            }
        tell(.moderated([what, warning.text ?? "Keep to the rules, or you can be banned."].joined(separator: " ")))
    }

    func handle(_ event: Contacts.Event) { if case .added(_, .match) = event { keeping = .agreed } }

    private func arrived() {
        guard isInChat else { return }
        hasArrived = true
        change(to: .talking)
    }

    private func wait(_ pause: Duration?) {
        guard !isIdle else { return }
        now = clock.now
        if isInChat { leavePartner(.partnerLeft) }
        change(to: .waiting(until: pause.map { now.addingTimeInterval(Double($0.wholeSeconds)) }))
        tick()
    }

    /// Updates `now` every second until the pause before the next search is over.
    private func tick() {
        cancelTick?()
        now = clock.now
        guard case .waiting(let until?) = status, until > now else { return }
        cancelTick = clock.schedule(after: .seconds(1)) { [weak self] in self?.tick() }
    }

    private func leavePartner(_ ending: MatchEnding?) {
        if isInChat { status = .waiting(until: nil) }
        (partner, partnerSize, isPartnerTyping, draft, hasArrived) = (nil, nil, false, "", false)
        (isPartnerBlurred, hiddenPartner) = (false, nil)
        if let ending { lastEnding = ending }
    }

    private func change(to new: Status) {
        guard new != status else { return }
        status = new
        announce(statusText)
    }

    private func append(_ line: ChatEntry) {
        nextLine += 1
        chat.append(line)
        if chat.count > Self.maxLines { chat.removeFirst(chat.count - Self.maxLines) }
    }
}

extension ConfabError {
    /// What the operator of the server, or their program, wants the person to know, shown like an error.
    fileprivate static func moderated(_ message: String) -> ConfabError { ConfabError("moderated", message) }
}

import Confab
import Foundation
import Observation

/// How to chat with a stranger.
public enum RouletteMode: String, CaseIterable, Sendable { case video, text }

/// What the roulette asks of the SDK.
public enum RouletteRequest: Equatable, Sendable {
    case preview
    case start(RouletteMode, interests: [String])
    case next, stop, keep
    case block(match: String?)
    case say(String)
    case typing(Bool)
    case mute(Bool)
    case camera(Bool)
    case switchCamera
    /// `match` is the chat in which it happened, which may be over.
    case report(ReportReason, match: String?)
}

/// What the SDK says about the roulette.
public enum RouletteEvent: Sendable {
    case preview((any VideoSource)?)
    /// Searching. With a pause after several quick skips.
    case waiting(pause: Duration?)
    case matched(name: String, interests: [String], hasChat: Bool, match: String? = nil)
    case video(any VideoSource)
    case firstFrame
    /// No picture and sound arrived in time.
    case noStream
    case partner(isAway: Bool)
    case message(String)
    case sent(id: Int, Bool)
    case typing(Bool)
    case ended(RouletteEnding)
    case keepAsked, keepAgreed
    case reported(CallTrouble?)
    case online(Int)
    case stopped(CallTrouble?)
}

/// How a chat ended.
public enum RouletteEnding: Equatable, Sendable {
    case partnerLeft, partnerNext, next, blocked, connectionLost
    /// The operators of the server ended it.
    case operators
}

/// The chat with strangers: the partner on top, oneself below, and Next.
@MainActor @Observable public final class RouletteModel: Screen {
    public enum Status: Equatable, Sendable {
        case idle
        case waiting(until: Date?)
        /// Without a picture yet.
        case matched
        case talking
        case partnerAway
        case noStream
    }

    /// Messages kept on the screen.
    static let maxLines = 200
    static let maxMessage = 2000
    static let maxInterests = 10

    public private(set) var status = Status.idle
    public private(set) var partnerName = ""
    public private(set) var sharedInterests: [String] = []
    public private(set) var partner: (any VideoSource)?
    public private(set) var own: (any VideoSource)?
    public private(set) var chat: [ChatEntry] = []
    public private(set) var isPartnerTyping = false
    public private(set) var isMuted = false
    public private(set) var isCameraOff = false
    public private(set) var lastEnding: RouletteEnding?
    /// The chat that goes on, or the last one since the search began.
    private var match: String?
    /// Whether there was a partner since the search began.
    private var hadPartner = false
    public private(set) var trouble: CallTrouble?
    public private(set) var peopleOnline: Int?
    public private(set) var keeping = Keeping.none
    public private(set) var report: ReportModel?
    public private(set) var hasChat = true
    public private(set) var isConnected = true
    public private(set) var now: Date
    public var mode = RouletteMode.video
    public private(set) var interests: [String] = []
    public var interestDraft = ""
    public var draft = "" { didSet { draftChanged(from: oldValue) } }

    /// Whether both want to stay in touch.
    public enum Keeping: Equatable, Sendable { case none, asked, wanted, agreed }

    private let clock: any AppClock
    private let request: @MainActor (RouletteRequest) -> Void
    private let announce: @MainActor (String) -> Void
    private var nextLine = 1
    private var cancelTick: (@MainActor () -> Void)?
    /// Whether the camera is off because the app is not on the screen.
    private var isCameraHidden = false

    init(
        clock: any AppClock, announce: @escaping @MainActor (String) -> Void = { _ in },
        request: @escaping @MainActor (RouletteRequest) -> Void
    ) {
        (self.clock, self.request, self.announce) = (clock, request, announce)
        now = clock.now
    }

    // MARK: What is enabled

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
    public var canKeep: Bool { canReport && (keeping == .none || keeping == .asked) }
    public var canAddInterest: Bool { interests.count < Self.maxInterests && isIdle }
    public var isScreenAwake: Bool { !isIdle }
    public var canSwitchCamera: Bool { !isCameraOff }
    public var showsPictures: Bool { mode == .video }
    /// The own picture, while others see it.
    public var shownOwn: (any VideoSource)? { isCameraOff ? nil : own }
    public private(set) var partnerSize: PixelSize?
    public func pictureSize(_ size: PixelSize) { partnerSize = size }
    /// The size of the small window outside of the app.
    public var windowSize: PixelSize { partnerSize ?? .usual }
    /// Whether sound may flow.
    var wantsSound: Bool { isInChat && mode == .video }

    // MARK: What the person does

    public func preview() { request(.preview) }

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
        (trouble, lastEnding, match, hadPartner) = (nil, nil, nil, false)
        status = .waiting(until: nil)
        request(.start(mode, interests: interests))
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
        append(ChatEntry(id: nextLine, isOwn: true, text: String(text.prefix(Self.maxMessage))))
        request(.say(String(text.prefix(Self.maxMessage))))
    }

    public func toggleMute() {
        isMuted.toggle()
        request(.mute(isMuted))
    }

    public func toggleCamera() {
        isCameraOff.toggle()
        request(.camera(!isCameraOff))
    }

    public func switchCamera() { request(.switchCamera) }

    public func openReport() {
        guard canReport else { return }
        // The search goes on behind the sheet, and may find the next partner.
        report = ReportModel(partnerName: name, chat: chat) { [weak self, match] reason, blocks in
            self?.request(.report(reason, match: match))
            if blocks { self?.block(match) }
        }
    }

    private func block(_ reported: String?) {
        if reported == match { block() } else { request(.block(match: reported)) }
    }

    public func closeReport() { report = nil }

    private func draftChanged(from old: String) {
        guard isInChat, hasChat, draft.isEmpty != old.isEmpty else { return }
        request(.typing(!draft.isEmpty))
    }

    /// The view shows the first frame of the partner.
    public func pictureShown() { handle(.firstFrame) }

    // MARK: What happens

    func connection(isUp: Bool) { isConnected = isUp }

    /// The system stops the camera while the app is not on the screen. Others see that it is off instead of a frozen picture.
    func showsCamera(_ isSeen: Bool) {
        guard isCameraHidden == isSeen, isSeen || isInChat && mode == .video && !isCameraOff else { return }
        isCameraHidden = !isSeen
        request(.camera(isSeen && !isCameraOff))
    }

    /// Media that was opened again does what the buttons say.
    private func applyToMedia() {
        request(.mute(isMuted))
        request(.camera(!isCameraOff))
    }

    func handle(_ event: RouletteEvent) {
        switch event {
        case .preview(let source):
            own = source
            if own != nil { applyToMedia() }
        case .waiting(let pause): wait(pause)
        case .matched(let name, let interests, let hasChat, let match):
            // It may arrive after Stop, and then it ends at once.
            guard !isIdle else { return }
            (self.match, hadPartner) = (match, true)
            (partnerName, sharedInterests, self.hasChat) = (name, interests, hasChat)
            (chat, keeping, lastEnding, trouble) = ([], .none, nil, nil)
            change(to: .matched)
        case .video(let source): if isInChat { partner = source }
        case .firstFrame: if isInChat { change(to: .talking) }
        case .noStream: if status == .matched { change(to: .noStream) }
        case .partner(let isAway):
            guard isInChat else { return }
            change(to: isAway ? .partnerAway : partner == nil && mode == .video ? .matched : .talking)
        case .message(let text):
            guard isInChat else { return }
            isPartnerTyping = false
            append(ChatEntry(id: nextLine, isOwn: false, text: String(text.prefix(Self.maxMessage))))
            announce("\(name): \(text)")
        case .sent(let id, let isSent):
            if let index = chat.firstIndex(where: { $0.id == id }) { chat[index].isSent = isSent }
        case .typing(let isTyping): isPartnerTyping = isTyping && isInChat
        case .ended(let ending): ended(ending)
        case .keepAsked: if keeping == .none { keeping = .asked }
        case .keepAgreed: keeping = .agreed
        case .reported(let trouble): report?.finished(trouble)
        case .online(let count): peopleOnline = count
        case .stopped(nil):
            // Confirms a stop. If the person has started again meanwhile, it is late.
            break
        case .stopped(let trouble):
            leavePartner(nil)
            self.trouble = trouble
            change(to: .idle)
        }
    }

    private func wait(_ pause: Duration?) {
        guard !isIdle else { return }
        now = clock.now
        if isInChat { leavePartner(.partnerLeft) }
        change(to: .waiting(until: pause.map { now.addingTimeInterval(Double($0.wholeSeconds)) }))
        tick()
    }

    /// Counts a pause down.
    private func tick() {
        cancelTick?()
        now = clock.now
        guard case .waiting(let until?) = status, until > now else { return }
        cancelTick = clock.schedule(after: .seconds(1)) { [weak self] in self?.tick() }
    }

    private func ended(_ ending: RouletteEnding) {
        guard isInChat else { return }
        leavePartner(ending)
        // The server searches on by itself, unless it ended the chat.
        change(to: ending == .operators ? .idle : .waiting(until: nil))
    }

    private func leavePartner(_ ending: RouletteEnding?) {
        if isInChat { status = .waiting(until: nil) }
        (partner, partnerSize, isPartnerTyping, draft) = (nil, nil, false, "")
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

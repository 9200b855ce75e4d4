import Confab
import Foundation
import Observation
import enum Wire.Limits

/// The screen for a room: before joining, in the room, and after leaving.
@MainActor @Observable public final class RoomModel: Screen {
    /// Whether the user is in a room, or why not.
    public enum Status: Equatable, Sendable {
        case ready, joining, lobby
        /// Members of the room with this name can see each other's addresses. The user may join anyway.
        case addressesAreSeen(String)
        /// A password was given, and the room with this name has none, so it may be another room. The user may join
        /// anyway.
        case noPassword(String)
        case full
        /// The connection was lost. The SDK rejoins the room once it is restored.
        case notConnected
        case inRoom
        case removed
        /// The room ended while the connection was lost, and another room has its name now. The user may join that
        /// one.
        case otherRoom
        /// The user left the room for a call or a chat. Only one conversation can be open at a time.
        case leftForOther
        case failed(ConfabError)
    }

    static let maxChat = 200
    public var roomName = ""
    public var yourName = ""
    public var password = ""
    public var draft = ""
    /// Whether the chat sheet is shown.
    public var showsChat = false
    public internal(set) var status = Status.ready
    public private(set) var needsPassword = false
    public internal(set) var members: [RoomPerson] = []
    /// The measured aspect ratios of videos, keyed by tile id. They can differ from the declared sizes, for example
    /// when a phone is rotated.
    var measured: [String: Double] = [:]
    /// The current touch on the self-view; nil if there is none.
    public internal(set) var drag: OwnPictureGesture?
    public private(set) var waitingPeople: [RoomKnock] = []
    /// This user's role, which determines the allowed actions.
    public internal(set) var role = RoomMember.Role.guest
    /// The confirmation shown before an action that cannot be undone; nil if none is shown.
    public internal(set) var question: RoomQuestion?
    /// Whether the self-view is shown before joining.
    public internal(set) var isPreviewing = false
    public private(set) var connectingTo: String?
    public private(set) var speaker: String?
    /// The tile id of the last speaker. The small window shows this tile until another person speaks.
    private(set) var lastSpeaker: String?
    public internal(set) var own: (any VideoSource)?
    public internal(set) var ownAspect: Double?
    public private(set) var camera = CameraState()
    public private(set) var chat: [ChatEntry] = []
    public private(set) var isMuted = false
    public private(set) var isMutedByHost = false
    public private(set) var isCameraOff = false
    public private(set) var hasHandUp = false
    public private(set) var isSharingScreen = false
    /// Whether the room is being recorded.
    public internal(set) var recording = RoomCapture()
    /// Whether the room is being broadcast live.
    public internal(set) var broadcast = RoomCapture()
    /// The last error, shown for a while or until the user reacts to it.
    public private(set) var trouble: ConfabError?
    public internal(set) var tiles = TileStates()
    public internal(set) var page = 0
    public internal(set) var corner = Corner.bottomRight
    public internal(set) var pinned: [String] = []
    public var layout = RoomLayout.auto { didSet { page = 0 } }
    private(set) var reactions: [RoomReaction] = []
    private(set) var isConnected = true
    /// The server of the room, used in its link.
    var server: URL?
    /// The room name in the last join request. The text field can change before the answer arrives.
    private var joinedRoom = ""
    /// The name of the room for which the user accepted that members can see each other's addresses; nil if there is
    /// none.
    private var acceptedRoom: String?
    private var nextLine = 1
    private var nextReaction = 1
    /// Messages that the server has not confirmed yet.
    private var sending: [ChatEntry] = []
    /// The name that was filled in automatically.
    private var suggestedName = ""
    private var cancelTrouble: (@MainActor () -> Void)?
    private let clock: any AppClock
    let permissions: any Permissions
    let request: @MainActor (RoomRequest) -> Void
    /// Whether the Picture in Picture window is shown.
    var isInSmallWindow = false
    var onSmallWindow: (@MainActor () -> Void)?
    let announce: @MainActor (String) -> Void

    init(
        clock: any AppClock, permissions: any Permissions, announce: @escaping @MainActor (String) -> Void = { _ in },
        request: @escaping @MainActor (RoomRequest) -> Void
    ) {
        (self.clock, self.permissions, self.announce, self.request) = (clock, permissions, announce, request)
    }

    // MARK: User actions

    public func join() {
        guard canJoin else { return }
        if joinsAnyway { acceptedRoom = wantedRoom }
        if joinsWithoutPassword { (password, needsPassword) = ("", false) }
        status = .joining
        trouble = nil
        permissions.settle(isCameraOff ? [.microphone] : [.camera, .microphone]) { [weak self] in self?.sendJoin() }
    }

    private func sendJoin() {
        // The user may have canceled while the system showed its prompts.
        guard status == .joining else { return }
        let video = !isCameraOff && permissions.mayShow
        joinedRoom = wantedRoom
        request(
            .join(
                joinedRoom, name: yourName, password: password.isEmpty ? nil : password, video: video,
                routedOnly: acceptedRoom != joinedRoom))
    }

    public func leave() {
        // The room may have other members next time, so warn about visible addresses again.
        acceptedRoom = nil
        closePreview()
        guard isBusy else { return reset(to: .ready) }
        let ending: RoomRequest = showsRoom ? .leave : .cancel
        // Reset before sending: the request makes the app re-evaluate which conversation is active.
        reset(to: .ready)
        request(ending)
    }

    /// Leaves the room, or closes the preview, because a call or a chat begins.
    func leaveForOther() {
        guard isBusy else { return closePreview() }
        leave()
        change(to: .leftForOther)
    }

    public func toggleMute() {
        isMuted.toggle()
        isMutedByHost = false
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
        // If the preview was opened without the camera, open it again with the camera.
        if isPreviewing, !isBusy, !isOff, own == nil { return request(.preview(video: true)) }
        request(.camera(!isOff && camera.works))
    }

    public func toggleHand() {
        hasHandUp.toggle()
        request(.hand(hasHandUp))
    }
    public func toggleScreen() {
        guard isInRoom else { return }
        isSharingScreen.toggle()
        trouble = nil
        request(.shareScreen(isSharingScreen))
    }

    public func send() {
        guard canSend else { return }
        let text = draft.trimmingCharacters(in: .whitespacesAndNewlines).prefix(bytes: Limits.roomText)
        draft = ""
        say(ChatEntry(id: nextLine, isOwn: true, text: text))
        nextLine += 1
    }
    /// Sends a failed message again.
    public func sendAgain(_ id: Int) {
        guard isInRoom, let index = chat.firstIndex(where: { $0.id == id && !$0.isSent }) else { return }
        say(chat.remove(at: index))
    }
    /// Sends a message. It is shown once the server returns it, like the messages from others.
    private func say(_ line: ChatEntry) {
        sending.append(line)
        if sending.count > Self.maxChat { sending.removeFirst() }
        request(.say(line.text, id: line.id))
    }

    /// Downloads a file from the chat, so that it can be shared or saved.
    public func download(_ id: RoomFileID) {
        guard isInRoom, let index = chat.firstIndex(where: { $0.file?.id == id && $0.file?.canDownload == true }),
            let file = chat[index].file?.file
        else { return }
        chat[index].file?.state = .downloading(percent: 0)
        request(.download(file))
    }

    /// Fills in the name, unless the user has typed another one.
    func suggest(name: String) {
        if yourName == suggestedName { yourName = name }
        suggestedName = name
    }

    // MARK: Events

    func handle(_ event: RoomEvent) {
        switch event {
        case .waitingForHost: if status == .joining { change(to: .lobby) }
        // Only change the status, because the SDK rejoins the room automatically.
        case .reconnecting(let isLost): if showsRoom { change(to: isLost ? .notConnected : .inRoom) }
        case .joined:
            guard isJoining else { return }
            change(to: .inRoom)
            if !permissions.mayTalk { tell(.microphoneNeeded) }
        case .refused(let error): if isJoining { refused(error) }
        case .connecting(let name): if isInRoom { connectingTo = name }
        case .members(let all): if showsRoom { replace(all) }
        case .waitingPeople(let all): if showsRoom { replace(waiting: all) }
        case .role(let role): if showsRoom { changeRole(to: role) }
        case .speaker(let id): if showsRoom { (speaker, lastSpeaker) = (id, id ?? lastSpeaker) }
        case .firstFrame(let id): tiles.firstFrame(of: id)
        case .said(let message, let isOwn, let isNew):
            guard isInRoom else { return }
            let file = message.file.map { ChatFile($0) }
            received(ChatEntry(id: nextLine, isOwn: isOwn, text: message.text, name: message.name, file: file), isNew)
        case .file(let id, let state): fileChanged(id, state)
        case .fileRemoved(let id): chat.removeAll { $0.file?.id == id }
        case .sent(let id, let isSent): sent(id, isSent)
        case .reacted(let id, let text): if showsRoom { reacted(id, text) }
        case .mutedByHost: if showsRoom { muteForHost() }
        case .capture(let kind, let capture): if showsRoom { changed(kind, capture) }
        case .ownVideo(let source):
            // The preview may have been closed while the camera was opening.
            guard isBusy || isPreviewing else { return }
            own = source
            if own != nil { applyToMedia() }
        case .cameraFailed(let trouble):
            guard isBusy || isPreviewing else { return }
            isCameraOff = true
            if !isBusy { isPreviewing = false }
            request(.camera(false))
            tell(trouble)
        case .trouble(let trouble): if showsRoom { tell(trouble) }
        case .ended(let ending, let error):
            // The user accepted visible addresses, and gave a password, only for the earlier room, so forget both.
            if ending == .otherRoom { (acceptedRoom, password) = (nil, "") }
            // Ignore how the room ended if the user has already left it.
            if status != .ready { ended(ending, error) }
        }
    }

    private func ended(_ ending: RoomEnding, _ error: ConfabError?) {
        switch ending {
        case .left: break
        case .removed, .banned: reset(to: .removed)
        case .otherRoom: reset(to: .otherRoom)
        default:
            let code = ConfabError.Code(rawValue: ending.rawValue)
            reset(to: .failed(error ?? ConfabError(code, "You are no longer in this room. Join again to return.")))
        }
    }

    private func refused(_ error: ConfabError) {
        if error.code == .roomPassword { needsPassword = true }
        let status: Status =
            switch error.code {
            case .roomFull: .full
            case .roomNoPassword: .noPassword(joinedRoom)
            case .roomMesh: .addressesAreSeen(joinedRoom)
            default: .failed(error)
            }
        reset(to: status)
    }

    /// Handles events from the camera and from screen sharing. While the system has taken the camera away, others see
    /// that it is off, instead of a frozen image.
    func handle(_ event: CaptureEvent) {
        switch event {
        case .cameraInterrupted(let isInterrupted): changeCamera { $0.isInterrupted = isInterrupted }
        case .cameraFaces(let facing): camera.facing = facing
        case .shareStarted: break
        case .shareEnded(let trouble):
            guard isSharingScreen else { return }
            isSharingScreen = false
            tell(trouble)
        }
    }

    /// Records whether the camera may run. The system stops it while the app is off screen.
    func showsCamera(_ isRunning: Bool) { changeCamera { $0.isStopped = !isRunning } }

    private func changeCamera(_ change: (inout CameraState) -> Void) {
        let worked = camera.works
        change(&camera)
        guard camera.works != worked, isBusy || isPreviewing, !isCameraOff else { return }
        request(.camera(camera.works))
    }

    func connection(isUp: Bool) { isConnected = isUp }

    /// Applies the state of the buttons, which may have changed before the devices were open.
    private func applyToMedia() {
        request(.mute(isMuted))
        request(.camera(!isCameraOff && camera.works))
    }

    private func muteForHost() {
        guard !isMuted || !isMutedByHost else { return }
        (isMuted, isMutedByHost) = (true, true)
        // Mute the local media too, so that it is still muted when it is published again.
        request(.mute(true))
        announce(noticeText)
    }

    private func tell(_ trouble: ConfabError) {
        self.trouble = trouble
        announce(trouble.message)
        cancelTrouble?()
        cancelTrouble = clock.schedule(after: CallsModel.overTime) { [weak self] in self?.trouble = nil }
    }

    private func replace(_ all: [RoomPerson]) {
        let former = Dictionary(members.map { ($0.id, $0) }) { first, _ in first }
        // Forget the aspect ratio of a video with a new source, so that it is measured again. A video that was only
        // turned off keeps its aspect ratio.
        measured = measured.filter { id, _ in
            guard let member = all.first(where: { $0.id == id }) else { return false }
            guard let new = member.video, let old = former[id]?.video else { return true }
            return new === old
        }
        members = all.map {
            var member = $0
            member.aspect = measured[$0.id] ?? $0.aspect ?? former[$0.id]?.aspect
            return member
        }
        // A video that was turned off appears again with its first frame.
        tiles.keep(only: all.map(\.id), shown: all.filter { $0.video != nil }.map(\.id))
        if let asked = question?.person, !all.contains(where: { $0.id == asked }) { question = nil }
        pinned.removeAll { id in !all.contains { $0.id == id } }
        reactions.removeAll { reaction in reaction.member.map { id in !all.contains { $0.id == id } } ?? false }
    }

    private func replace(waiting all: [RoomKnock]) {
        let new = all.first { person in !waitingPeople.contains { $0.id == person.id } }
        waitingPeople = all
        if let new { announce(Self.text(of: new)) }
    }

    private func received(_ line: ChatEntry, _ isNew: Bool) {
        append(line)
        nextLine += 1
        if isNew, !line.isOwn { announce(line.arrivedText) }
    }

    private func fileChanged(_ id: RoomFileID, _ state: ChatFile.State) {
        guard let index = chat.firstIndex(where: { $0.file?.id == id }), let file = chat[index].file,
            // A progress report may arrive after the download has ended.
            case .downloading = file.state
        else { return }
        chat[index].file?.state = state
        switch state {
        case .offered, .downloading: break
        case .saved: announce("\(chat[index].text) has been downloaded.")
        case .failed(let message): announce(message)
        }
    }

    private func sent(_ id: Int, _ isSent: Bool) {
        guard let index = sending.firstIndex(where: { $0.id == id }) else { return }
        var line = sending.remove(at: index)
        guard !isSent else { return }
        line.isSent = false
        append(line)
        announce(line.notSentText)
    }

    private func append(_ line: ChatEntry) {
        chat.append(line)
        if chat.count > Self.maxChat { chat.removeFirst(chat.count - Self.maxChat) }
    }

    private func reacted(_ id: String?, _ text: String) {
        let reaction = RoomReaction(number: nextReaction, member: id, text: text)
        nextReaction += 1
        // Keep only the newest reactions of each person.
        let former = reactions.filter { $0.member == id }.dropLast(Self.maxReactions - 1).map(\.number)
        reactions.removeAll { former.contains($0.number) }
        reactions.append(reaction)
        if let name = members.first(where: { $0.id == id })?.name {
            announce("\(isolated(name)) reacted with \(text).")
        }
        _ = clock.schedule(after: Self.reactionTime) { [weak self] in
            self?.reactions.removeAll { $0.number == reaction.number }
        }
    }

    private func reset(to new: Status) {
        (members, waitingPeople, chat, speaker, connectingTo, pinned) = ([], [], [], nil, nil, [])
        lastSpeaker = nil
        (measured, drag) = ([:], nil)
        (own, ownAspect, sending, reactions, trouble) = (nil, nil, [], [], nil)
        (tiles, page, hasHandUp, isMutedByHost) = (TileStates(), 0, false, false)
        (isSharingScreen, isPreviewing, role, question, showsChat) = (false, false, .guest, nil, false)
        (recording, broadcast) = (RoomCapture(), RoomCapture())
        change(to: new)
    }

    private func change(to new: Status) {
        guard new != status else { return }
        status = new
        announce(statusText)
    }
}

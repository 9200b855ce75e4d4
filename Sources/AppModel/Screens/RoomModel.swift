import Confab
import Foundation
import Observation

/// A member of a room, with the picture that is shown.
public struct RoomPerson: Sendable {
    public var id: String
    public var name: String
    public var video: (any VideoSource)?
    public var aspect: Double?
    public var isScreen = false
    public var isMuted = false
    public var hasHandUp = false
    public var isAway = false
    public var isHost = false

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

public enum RoomRequest: Equatable, Sendable {
    case join(String, name: String, password: String?)
    case cancel, leave
    case mute(Bool), camera(Bool), hand(Bool), shareScreen(Bool)
    case switchCamera
    case react(String)
    case say(String)
}

public enum RoomEvent: Sendable {
    case waitingForHost
    case joined
    /// The connection is lost, or it is back.
    case reconnecting(Bool)
    case refused(CallTrouble, isFull: Bool, needsPassword: Bool)
    /// Connecting media with a member.
    case connecting(name: String)
    case members([RoomPerson])
    case speaker(String?)
    case firstFrame(String)
    case message(sender: String, text: String, isOwn: Bool)
    case mutedByHost
    case ownVideo((any VideoSource)?)
    case removed
    case failed(CallTrouble)
}

/// A room: before joining, in it, and after it.
@MainActor @Observable public final class RoomModel: Screen {
    public enum Status: Equatable, Sendable {
        case ready, joining, lobby
        case full
        /// No connection; the room is joined again when there is one.
        case notConnected
        case inRoom
        case removed
        case failed(CallTrouble)
    }

    static let maxChat = 200
    nonisolated static let maxName = 64
    public var roomName = ""
    public var yourName = ""
    public var password = ""
    public var draft = ""
    public private(set) var status = Status.ready
    public private(set) var needsPassword = false
    public private(set) var members: [RoomPerson] = []
    public private(set) var connectingTo: String?
    public private(set) var speaker: String?
    public private(set) var own: (any VideoSource)?
    public private(set) var ownAspect: Double?
    public private(set) var chat: [ChatEntry] = []
    public private(set) var isMuted = false
    public private(set) var isMutedByHost = false
    public private(set) var isCameraOff = false
    public private(set) var hasHandUp = false
    public private(set) var isSharingScreen = false
    public private(set) var tiles = TileStates()
    public private(set) var page = 0
    public private(set) var corner = Corner.bottomRight
    public private(set) var pinned: [String] = []
    public var layout = RoomLayout.auto { didSet { page = 0 } }
    private var isConnected = true
    /// The server of the room, for its link.
    var server: URL?
    /// Whether the camera is off because the app is not on the screen.
    private var isCameraHidden = false
    private var nextLine = 1
    private let request: @MainActor (RoomRequest) -> Void
    private let announce: @MainActor (String) -> Void

    init(
        announce: @escaping @MainActor (String) -> Void = { _ in }, request: @escaping @MainActor (RoomRequest) -> Void
    ) {
        (self.announce, self.request) = (announce, request)
    }

    // MARK: What the person does

    public var canJoin: Bool {
        switch status {
        case .ready, .full, .failed, .removed: isConnected && !roomName.allSatisfy(\.isWhitespace)
        case .joining, .lobby, .notConnected, .inRoom: false
        }
    }
    public var isInRoom: Bool { status == .inRoom }
    /// Whether the pictures are shown. They stay while the connection is lost: the SDK joins again by itself.
    public var showsRoom: Bool { isInRoom || status == .notConnected }
    public var offersCancel: Bool { status == .joining || status == .lobby }
    public var isScreenAwake: Bool { showsRoom || status == .lobby }
    /// Sound goes on while only the connection to the server is lost.
    var wantsSound: Bool { showsRoom }
    public var canSwitchCamera: Bool { !isCameraOff }
    /// The own picture, while others see it.
    public var shownOwn: (any VideoSource)? { isCameraOff ? nil : own }
    /// Opens the room in a browser or in this app.
    public var link: URL? {
        roomName.isEmpty ? nil : server?.appending(component: "room").appending(component: roomName)
    }
    /// Bars are hidden while somebody's picture runs.
    public var hidesBars: Bool { showsRoom && members.contains { tiles.isShown($0.id) } }

    public func join() {
        guard canJoin else { return }
        status = .joining
        sendJoin()
    }

    private func sendJoin() {
        let name = String(roomName.trimmingCharacters(in: .whitespacesAndNewlines).prefix(Self.maxName))
        request(.join(name, name: yourName, password: password.isEmpty ? nil : password))
    }

    public func leave() {
        switch status {
        case .joining, .lobby: request(.cancel)
        case .inRoom, .notConnected: request(.leave)
        case .ready, .full, .removed, .failed: break
        }
        reset(to: .ready)
    }

    public func toggleMute() {
        isMuted.toggle()
        isMutedByHost = false
        request(.mute(isMuted))
    }
    public func toggleCamera() {
        isCameraOff.toggle()
        request(.camera(!isCameraOff))
    }
    public func toggleHand() {
        hasHandUp.toggle()
        request(.hand(hasHandUp))
    }
    public func switchCamera() { request(.switchCamera) }
    public func toggleScreen() {
        guard isInRoom else { return }
        isSharingScreen.toggle()
        request(.shareScreen(isSharingScreen))
    }
    public func react(_ text: String) { if isInRoom { request(.react(text)) } }
    public var canSend: Bool { isInRoom && !draft.allSatisfy(\.isWhitespace) }
    public func send() {
        guard canSend else { return }
        request(.say(draft.trimmingCharacters(in: .whitespacesAndNewlines)))
        draft = ""
    }
    public func togglePin(_ id: String) {
        if let index = pinned.firstIndex(of: id) { pinned.remove(at: index) } else { pinned.append(id) }
        layout = pinned.isEmpty ? .auto : .pinned
    }
    public func doubleTap(_ id: String) { tiles.doubleTap(on: id) }
    public func move(to corner: Corner) { self.corner = corner }
    public func showPage(_ page: Int) { self.page = max(0, page) }

    // MARK: What happens

    func handle(_ event: RoomEvent) {
        switch event {
        case .waitingForHost: if status == .joining { change(to: .lobby) }
        // The SDK joins the room again by itself.
        case .reconnecting(let isLost):
            guard showsRoom else { return }
            change(to: isLost ? .notConnected : .inRoom)
        case .joined:
            guard status == .joining || status == .lobby else { return }
            change(to: .inRoom)
        case .refused(let trouble, let isFull, let needsPassword):
            guard status == .joining || status == .lobby else { return }
            self.needsPassword = self.needsPassword || needsPassword
            reset(to: isFull ? .full : .failed(trouble))
        case .connecting(let name): if isInRoom { connectingTo = name }
        case .members(let all): if showsRoom { replace(all) }
        case .speaker(let id): speaker = id
        case .firstFrame(let id):
            connectingTo = nil
            tiles.firstFrame(of: id)
        case .message(let sender, let text, let isOwn): if isInRoom { append(sender, text, isOwn) }
        case .mutedByHost:
            (isMuted, isMutedByHost) = (true, true)
            announce(noticeText)
        case .ownVideo(let source):
            own = source
            if own != nil { applyToMedia() }
        case .removed: if status != .ready { reset(to: .removed) }
        // After the person has left, it does not matter any more.
        case .failed(let trouble): if status != .ready { reset(to: .failed(trouble)) }
        }
    }

    func connection(isUp: Bool) { isConnected = isUp }

    /// The buttons could be pressed before the camera and the microphone were open.
    private func applyToMedia() {
        request(.mute(isMuted))
        request(.camera(!isCameraOff))
    }

    /// The system stops the camera while the app is not on the screen. Others see that it is off instead of a frozen picture.
    func showsCamera(_ isSeen: Bool) {
        guard isCameraHidden == isSeen, isSeen || showsRoom && !isCameraOff else { return }
        isCameraHidden = !isSeen
        request(.camera(isSeen && !isCameraOff))
    }

    public func firstFrame(of id: String) { handle(.firstFrame(id)) }
    public func pictureSize(of id: String, _ size: PixelSize) {
        guard let index = members.firstIndex(where: { $0.id == id }), let aspect = size.aspect else { return }
        members[index].aspect = aspect
    }
    public func ownPictureSize(_ size: PixelSize) { ownAspect = size.aspect }
    public func video(of id: String) -> (any VideoSource)? { members.first { $0.id == id }?.video }
    public func row(of id: String) -> PeopleModel.Row? { rows.first { $0.id == id } }

    private func replace(_ all: [RoomPerson]) {
        let aspects = Dictionary(members.map { ($0.id, $0.aspect) }) { first, _ in first }
        members = all.map {
            var member = $0
            member.aspect = $0.aspect ?? aspects[$0.id] ?? nil
            return member
        }
        tiles.keep(only: all.map(\.id))
        pinned.removeAll { id in !all.contains { $0.id == id } }
    }

    private func append(_ sender: String, _ text: String, _ isOwn: Bool) {
        chat.append(ChatEntry(id: nextLine, isOwn: isOwn, text: text, name: sender))
        nextLine += 1
        if chat.count > Self.maxChat { chat.removeFirst(chat.count - Self.maxChat) }
        if !isOwn { announce("\(sender): \(text)") }
    }

    private func reset(to new: Status) {
        (members, chat, speaker, connectingTo, pinned) = ([], [], nil, nil, [])
        (own, ownAspect) = (nil, nil)
        (tiles, page, hasHandUp, isMutedByHost) = (TileStates(), 0, false, false)
        isSharingScreen = false
        change(to: new)
    }

    private func change(to new: Status) {
        guard new != status else { return }
        status = new
        announce(statusText)
    }

    // MARK: What is shown

    /// Where the pictures are in a viewport.
    public func arrangement(width: Double, height: Double) -> LayoutOutput {
        let all = members.map { Tile(id: $0.id, aspect: $0.aspect, isScreen: $0.isScreen) }
        var input = LayoutInput(width: width, height: height, tiles: all)
        (input.layout, input.page) = (layout, page)
        input.focus = layout == .pinned ? pinned : [speaker].compactMap(\.self)
        input.own = OwnPicture(aspect: ownAspect, corner: corner)
        return input.layOut()
    }

    public var statusText: String {
        switch status {
        case .ready: "Others see and hear you after you press Join."
        case .joining: "Joining…"
        case .lobby: "Waiting to be let in. You join automatically when a host admits you."
        case .full: "This room is full. Try again later."
        case .notConnected: "Connection lost. You rejoin automatically when the network is back."
        case .removed: "A host removed you from this room."
        case .failed(let trouble): trouble.message
        case .inRoom: roomText
        }
    }

    private var roomText: String {
        if let connectingTo { return "Connecting to \(isolated(connectingTo))…" }
        return switch members.count {
        case 0: "You are the only one here. Send the link of the room to the people you want to meet."
        case 1: "You are in the room with \(isolated(members[0].name))."
        case let count: "You are in the room with \(count) other people."
        }
    }

    public var noticeText: String {
        isMutedByHost ? "A host muted you. Turn off Mute to be heard again." : ""
    }

    public var joinText: String {
        switch status {
        case .joining: "Joining…"
        case .removed, .full, .failed: "Join again"
        case .ready, .lobby, .notConnected, .inRoom: "Join"
        }
    }

    /// What VoiceOver says about the own picture.
    public var ownText: String {
        let marks = [isMuted ? "Muted" : nil, isCameraOff ? "No video" : nil, hasHandUp ? "Raised hand" : nil]
        return (["You"] + marks.compactMap(\.self)).joined(separator: ", ")
    }

    public var rows: [PeopleModel.Row] {
        members.map { member in
            let marks = [
                member.isHost ? "Host" : nil, member.id == speaker ? "Speaking" : nil, member.isMuted ? "Muted" : nil,
                member.hasHandUp ? "Raised hand" : nil, member.isAway ? "Reconnecting…" : nil,
                pinned.contains(member.id) ? "Pinned" : nil, tiles.isShown(member.id) ? nil : "No video",
            ]
            return PeopleModel.Row(
                id: member.id, title: member.isScreen ? "Screen of \(member.name)" : member.name,
                detail: marks.compactMap(\.self).joined(separator: " · "))
        }
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [.title(roomName.isEmpty ? "Join a room" : roomName)]
        guard showsRoom else { return lines + outsideLines }
        lines.append(.text(statusText))
        if !noticeText.isEmpty { lines.append(.text(noticeText)) }
        lines += rows.map { .row($0.title, detail: $0.detail) }
        lines += chat.map { .row("\($0.sender) \($0.text)") }
        return lines + [
            .choice("Layout", value: layout.text), .toggle("Mute", isOn: isMuted),
            .toggle("Camera off", isOn: isCameraOff), .button("Switch camera", isEnabled: canSwitchCamera),
            .toggle("Share screen", isOn: isSharingScreen), .toggle("Raise hand", isOn: hasHandUp),
            .field("Message", value: draft, hint: "Write to everyone…"), .button("Send", isEnabled: canSend),
            .button("Leave"),
        ]
    }

    private var outsideLines: [ScreenLine] {
        if offersCancel { return [.text(statusText), .button("Cancel")] }
        var lines: [ScreenLine] = [
            .text(statusText), .field("Room", value: roomName, hint: "book club"),
            .field("Your name", value: yourName, hint: "none"),
        ]
        if needsPassword {
            lines.append(
                .field("Password", value: password.isEmpty ? "" : "••••", hint: "Ask the person who invited you."))
        }
        return lines + [
            .toggle("Mute", isOn: isMuted), .toggle("Camera off", isOn: isCameraOff),
            .button(joinText, isEnabled: canJoin),
        ]
    }
}

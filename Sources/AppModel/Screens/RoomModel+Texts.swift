import Confab
import Foundation
import enum Wire.Limits

/// The text on the room screen, and which of its elements to show.
extension RoomModel {
    /// The reactions to choose from. Keep them identical to those on the web page.
    public static let reactions = ["👍", "👏", "❤️", "😂", "😮", "🎉"]
    public func react(_ text: String) { if isInRoom { request(.react(text)) } }
    static let reactionTime = Duration.seconds(4)
    static let maxReactions = 3

    public var canJoin: Bool {
        switch status {
        case .ready, .addressesAreSeen, .noPassword, .full, .failed, .removed, .otherRoom, .leftForOther:
            isConnected && !roomName.allSatisfy(\.isWhitespace)
        case .joining, .lobby, .notConnected, .inRoom: false
        }
    }
    var wantedRoom: String {
        String(roomName.trimmingCharacters(in: .whitespacesAndNewlines).prefix(Limits.roomName))
    }
    public var canPreview: Bool { !isBusy && !isPreviewing }
    public var isInRoom: Bool { status == .inRoom }
    /// Whether the tiles are shown. They stay while the connection is lost, because the SDK rejoins automatically.
    public var showsRoom: Bool { isInRoom || status == .notConnected }
    var isJoining: Bool { status == .joining || status == .lobby }
    public var offersCancel: Bool { isJoining || joinsAnyway || joinsWithoutPassword }
    /// Whether the user was warned that members of this room can see each other's addresses. If so, Join accepts that.
    var joinsAnyway: Bool { status == .addressesAreSeen(wantedRoom) }
    /// Whether the user was warned that this room has no password. If so, Join enters it without one.
    var joinsWithoutPassword: Bool { status == .noPassword(wantedRoom) }
    public var isScreenAwake: Bool { showsRoom || status == .lobby }
    /// Whether the user is in a room or joining one.
    var isBusy: Bool { showsRoom || isJoining }
    /// Whether the room needs audio. It also does while the connection to the server is lost.
    var wantsSound: Bool { showsRoom }
    public var canSend: Bool { isInRoom && !draft.allSatisfy(\.isWhitespace) }
    public var canSwitchCamera: Bool { !isCameraOff && own != nil && camera.works }
    /// The video for the self-view; nil while the camera is off or cannot run.
    public var shownOwn: (any VideoSource)? { isCameraOff || !camera.works ? nil : own }
    /// The link to the room, for a browser or this app; nil without a room name or a server.
    public var link: URL? {
        roomName.isEmpty ? nil : server?.appending(component: "room").appending(component: roomName)
    }
    /// Whether to hide the system's bars: true while a member's video is shown.
    public var hidesBars: Bool { showsRoom && members.contains { tiles.isShown($0.id) } }
    /// Whether the shown error is one that the user can fix in the system's settings.
    public var offersSettings: Bool { trouble == .cameraNeeded || trouble == .microphoneNeeded }

    public func video(of id: String) -> (any VideoSource)? { members.first { $0.id == id }?.video }
    /// Returns the title and the detail to show on a tile. Both are empty if the person has just left.
    public func row(of id: String) -> ListRow<String> {
        rows.first { $0.id == id } ?? ListRow(id: id, title: "", detail: "")
    }
    public func isSpeaking(_ id: String) -> Bool { speaker == id }
    /// Returns the reactions shown on the tile with this id, or on the self-view if `id` is nil.
    public func reactionText(of id: String?) -> String { reactions.filter { $0.member == id }.map(\.text).joined() }

    /// Computes the layout of the tiles in a viewport.
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
        case .addressesAreSeen where joinsAnyway:
            "Members of this room can see each other’s IP addresses, because audio and video are sent directly between "
                + "them. Join only if you accept that."
        case .noPassword where joinsWithoutPassword:
            "This room has no password, so it may not be the one you want. Everyone who knows its name can join it."
        case .ready, .addressesAreSeen, .noPassword: "Others see and hear you after you press Join."
        case .joining: "Joining…"
        case .lobby: "Waiting to be let in. You join automatically when a host admits you."
        case .full: "This room is full. Try again later."
        case .notConnected: "Connection lost. You rejoin automatically when the network is back."
        case .removed: "A host removed you from this room."
        case .otherRoom:
            "Your room has ended. A different room now has the same name, and other people may be in it. "
                + "Press Join to enter it anyway."
        case .leftForOther: "You left the room for another conversation. Press “Join again” to return."
        case .failed(let trouble): trouble.message
        case .inRoom: roomText
        }
    }

    private var roomText: String {
        if let connectingTo { return "Connecting to \(isolated(connectingTo))…" }
        let people = members.filter { !$0.isScreen }
        return switch people.count {
        case 0: "You are the only one here. Send the room link to the people you want to meet."
        case 1: "You are in the room with \(isolated(people[0].name))."
        case let count: "You are in the room with \(count) other people."
        }
    }

    public var noticeText: String {
        if let trouble { return trouble.message }
        return isMutedByHost ? "A host muted you. You can unmute yourself." : ""
    }

    public var joinText: String {
        switch status {
        case .joining: "Joining…"
        case .removed, .full, .failed, .leftForOther: "Join again"
        case .addressesAreSeen where joinsAnyway: "Join anyway"
        case .noPassword where joinsWithoutPassword: "Join without a password"
        case .otherRoom, .noPassword, .ready, .addressesAreSeen, .lobby, .notConnected, .inRoom: "Join"
        }
    }

    public static func text(of person: RoomKnock) -> String { "\(isolated(person.name)) would like to join." }

    /// The text for the self-view before joining.
    public var previewText: String { camera.text(isOff: isCameraOff) }

    /// The VoiceOver text of the self-view.
    public var ownText: String {
        let marks = [
            isMuted ? "Muted" : nil, isCameraOff ? "No video" : camera.isInterrupted ? "Camera paused" : nil,
            hasHandUp ? "Hand raised" : nil,
        ]
        return (["You"] + marks.compactMap(\.self)).joined(separator: ", ")
    }

    public var rows: [ListRow<String>] {
        members.map { member in
            let hasPicture = member.video != nil && tiles.isShown(member.id)
            let marks = [
                member.roleText, member.id == speaker ? "Speaking" : nil, member.isMuted ? "Muted" : nil,
                member.hasHandUp ? "Hand raised" : nil, member.isAway ? "Reconnecting…" : nil,
                pinned.contains(member.id) ? "Pinned" : nil, hasPicture ? nil : "No video",
                member.quality == .good ? nil : "Connection: \(member.quality.rawValue)",
                member.isPaused ? "Video paused: the network is slow" : nil,
            ]
            return ListRow(
                id: member.id, title: member.isScreen ? "\(member.name)’s screen" : member.name,
                detail: marks.compactMap(\.self).joined(separator: " · "))
        }
    }

    public var lines: [ScreenLine] {
        let lines: [ScreenLine] = [.title(roomName.isEmpty ? "Join a room" : roomName), .text(statusText)]
        let notice: [ScreenLine] = noticeText.isEmpty ? [] : [.text(noticeText)]
        let settings: [ScreenLine] = offersSettings ? [.button("Open Settings")] : []
        return lines + notice + settings + (showsRoom ? captureLines + insideLines : outsideLines)
    }

    private var insideLines: [ScreenLine] {
        var lines: [ScreenLine] = waitingPeople.flatMap {
            [ScreenLine.text(Self.text(of: $0)), .button("Admit"), .button("Deny")]
        }
        for row in rows {
            lines.append(.row(row.title, detail: row.detail))
            let reactions = reactionText(of: row.id)
            if !reactions.isEmpty { lines.append(.text(reactions)) }
            lines += actions(on: row.id).map { .button($0.text) }
        }
        lines += [
            .toggle("Mute", isOn: isMuted), .toggle("Camera off", isOn: isCameraOff),
            .button("Switch camera", isEnabled: canSwitchCamera), .toggle("Share screen", isOn: isSharingScreen),
            .toggle("Raise hand", isOn: hasHandUp), .button("React"), .button("Chat"),
        ]
        if link != nil { lines.append(.button("Share…")) }
        return lines + [.choice("Layout", value: layout.text), .button("Leave")] + questionLines + chatLines
    }

    private var questionLines: [ScreenLine] {
        question.map { [.text($0.text), .button($0.action.text), .button("Cancel")] } ?? []
    }

    /// The elements of the chat sheet.
    private var chatLines: [ScreenLine] {
        [.title("Chat")] + chat.flatMap(\.screenLines) + [
            .field("Message", value: draft, hint: "Message everyone…"), .button("Send", isEnabled: canSend),
        ]
    }

    private var outsideLines: [ScreenLine] {
        let picture: [ScreenLine] = isPreviewing ? [.picture(previewText)] : []
        var lines: [ScreenLine] =
            picture + [
                .field("Room", value: roomName, hint: "book club"), .field("Your name", value: yourName, hint: "none"),
            ]
        if needsPassword {
            lines.append(
                .field("Password", value: password.isEmpty ? "" : "••••", hint: "Ask the person who invited you."))
        }
        lines += [
            .toggle("Mute", isOn: isMuted), .toggle("Camera off", isOn: isCameraOff),
        ]
        if canPreview { lines.append(.button("Check camera")) }
        lines.append(.button(joinText, isEnabled: canJoin))
        return offersCancel ? lines + [.button("Cancel")] : lines
    }
}

extension RoomPerson {
    fileprivate var roleText: String? {
        switch role {
        case .host: "Host"
        case .cohost: "Cohost"
        case .guest: nil
        }
    }
}

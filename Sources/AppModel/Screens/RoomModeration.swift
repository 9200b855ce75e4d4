import Confab

/// An action that a host or cohost can take on another person in a room.
public enum RoomAction: Hashable, Sendable {
    case mute, stopSharing, makeHost, makeCohost, makeGuest, remove

    public var text: String {
        switch self {
        case .mute: "Mute this person"
        case .stopSharing: "Stop their screen share"
        case .makeHost: "Make host"
        case .makeCohost: "Make cohost"
        case .makeGuest: "Make guest"
        case .remove: "Remove"
        }
    }

    /// Returns the actions that the server allows a role to perform on another person (`protocol/rooms.md`). Leaves
    /// out those without an effect, such as muting a person who is already muted.
    static func allowed(for role: RoomMember.Role, about person: RoomPerson) -> [RoomAction] {
        guard role != .guest else { return [] }
        if person.isScreen { return [.stopSharing] }
        let mute: [RoomAction] = person.isMuted ? [] : [.mute]
        guard role == .host else { return mute + (person.role == .guest ? [.remove] : []) }
        let roles: [(RoomMember.Role, RoomAction)] = [
            (.host, .makeHost), (.cohost, .makeCohost), (.guest, .makeGuest),
        ]
        return mute + roles.filter { $0.0 != person.role }.map(\.1) + [.remove]
    }
}

/// A confirmation before an action that cannot be undone.
public struct RoomQuestion: Equatable, Sendable {
    public let action: RoomAction
    let person: String
    let connection: ConnectionID
    public let text: String

    /// Creates the confirmation; nil for an action that can be undone.
    init?(_ action: RoomAction, about person: RoomPerson) {
        switch action {
        case .mute, .stopSharing, .makeCohost, .makeGuest: return nil
        case .remove: text = "Remove \(isolated(person.name)) from the room?"
        case .makeHost:
            text =
                "Make \(isolated(person.name)) a host? Hosts can change everyone’s role, including yours."
        }
        (self.action, self.person, connection) = (action, person.id, person.member.id)
    }
}

extension RoomModel {
    public func admit(_ id: ConnectionID) { request(.admit(id)) }
    public func deny(_ id: ConnectionID) { request(.deny(id)) }

    /// Returns the actions that this user may perform on the person or the screen of a tile.
    public func actions(on id: String) -> [RoomAction] {
        guard isInRoom, let member = members.first(where: { $0.id == id }) else { return [] }
        return RoomAction.allowed(for: role, about: member)
    }

    public func perform(_ action: RoomAction, on id: String) {
        guard actions(on: id).contains(action), let member = members.first(where: { $0.id == id }) else { return }
        question = RoomQuestion(action, about: member)
        if question == nil { request(.moderate(action, member.member.id)) }
    }

    public func confirm(_ question: RoomQuestion) {
        self.question = nil
        // The other person may have left, or this user may have lost the host role.
        if actions(on: question.person).contains(question.action) {
            request(.moderate(question.action, question.connection))
        }
    }

    /// Whether the confirmation is shown. The dialog only ever sets this to false.
    public var asks: Bool {
        get { question != nil }
        set { if !newValue { question = nil } }
    }

    public var questionText: String { question?.text ?? "" }

    func changeRole(to new: RoomMember.Role) {
        guard new != role else { return }
        role = new
        // When the room's owner joins, this user may lose the host role and with it the right to the action in
        // question.
        if let question, !actions(on: question.person).contains(question.action) { self.question = nil }
        switch new {
        case .host: announce("You are now a host of this room.")
        case .cohost: announce("You are now a cohost of this room.")
        case .guest: announce("You are now a guest in this room.")
        }
    }
}

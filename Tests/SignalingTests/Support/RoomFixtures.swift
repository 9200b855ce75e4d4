import Signaling
import TestSupport
import Testing
import Wire

extension ServerMessage {
    var room: RoomNotice? { if case .room(let news) = self { news } else { nil } }
    /// The stream that was published.
    var published: StreamInfo? { if case .session(.published(let news)) = self { news.stream } else { nil } }
    /// What a member of a session may do.
    var capabilities: Capabilities? { if case .session(.joined(let news)) = self { news.capabilities } else { nil } }
}

extension RoomNotice {
    var joined: RoomNotice.Joined? { if case .joined(let news) = self { news } else { nil } }
    var refused: RoomNotice.Refused? { if case .refused(let news) = self { news } else { nil } }
    var knock: RoomNotice.Knock? { if case .knock(let news) = self { news } else { nil } }
    var changed: RoomOptions? { if case .changed(let news) = self { news.options } else { nil } }
    var person: RoomPerson? { if case .person(let news) = self { news } else { nil } }
    var said: RoomLine? { if case .said(let news) = self { news } else { nil } }
    var reacted: RoomNotice.Reacted? { if case .reacted(let news) = self { news } else { nil } }
    var ended: RoomNotice.Ended? { if case .ended(let news) = self { news } else { nil } }
}

extension RoomName {
    /// The room of most tests.
    static var standUp: RoomName { RoomName("Stand-up") ?? .unset }
}

extension RoomChanges {
    init(_ change: (inout RoomChanges) -> Void) {
        self.init()
        change(&self)
    }
}

extension Stage {
    /// Comes into the room of most tests, with a token of the application for this role or without one.
    @discardableResult func come(_ guest: Guest, _ token: RoomRole? = nil) -> RoomNotice.Joined? {
        let joined = guest.open(as: "", token: token.map { roomToken($0) })?.room?.joined
        if joined != nil { guest.enter(joined) }
        return joined
    }

    /// The role of a person in that room, as an application sees it.
    func role(of guest: Guest) -> RoomRole? {
        operate(.describe(.standUp))?.room?.people.first { $0.connection == guest.connection }?.role
    }

    /// The persistent room that storage has.
    var storedRoom: StoredRoom? { archive.rooms.values.first }
}

// Shortcuts for common steps of tests about rooms.
extension Guest {
    /// Asks to join a room and returns the answer.
    @discardableResult func open(
        _ name: RoomName? = .standUp, as displayName: String = "Ada", password: String? = nil, token: String? = nil,
        with options: RoomChanges? = nil, routedOnly: Bool? = nil, again room: RoomID? = nil
    ) -> ServerMessage? {
        var join = RoomVerb.Join(
            name: name, displayName: displayName, password: password, token: token, options: options)
        (join.routedOnly, join.room) = (routedOnly, room)
        return ask(.room(.join(join)))
    }

    @discardableResult func leaveRoom() -> ServerMessage? { ask(.room(.leave)) }
    @discardableResult func admit(_ other: Guest) -> ServerMessage? {
        ask(.room(.admit(.init(connection: other.connection))))
    }
    @discardableResult func deny(_ other: Guest) -> ServerMessage? {
        ask(.room(.deny(.init(connection: other.connection))))
    }
    @discardableResult func set(_ change: (inout RoomChanges) -> Void) -> ServerMessage? {
        ask(.room(.set(.init(options: RoomChanges(change)))))
    }
    @discardableResult func mute(_ other: Guest?) -> ServerMessage? {
        ask(.room(.mute(.init(connection: other?.connection))))
    }
    @discardableResult func stopShare(_ other: Guest?) -> ServerMessage? {
        ask(.room(.stopShare(.init(connection: other?.connection))))
    }
    @discardableResult func remove(_ other: Guest, ban: Bool? = nil) -> ServerMessage? {
        ask(.room(.remove(.init(connection: other.connection, ban: ban))))
    }
    @discardableResult func make(_ other: Guest, _ role: RoomRole) -> ServerMessage? {
        ask(.room(.role(.init(connection: other.connection, role: role))))
    }
    @discardableResult func write(_ text: String) -> ServerMessage? { ask(.room(.say(.init(text: text)))) }
    @discardableResult func raise(_ raised: Bool = true) -> ServerMessage? { ask(.room(.hand(.init(raised: raised)))) }
    @discardableResult func react(_ reaction: String) -> ServerMessage? {
        var verb = RoomVerb.React()
        verb.reaction = reaction
        return ask(.room(.react(verb)))
    }

    /// Returns the notices about rooms received since the previous take. All other messages are dropped.
    func takeRooms() -> [RoomNotice] { take().compactMap(\.room) }

    /// Joins the session of a room.
    @discardableResult func enter(_ joined: RoomNotice.Joined?) -> ServerMessage? {
        guard let joined else { return nil }
        return join(joined.admission.session, token: joined.admission.token)
    }

    /// Publishes a screen.
    func share(_ session: SessionID) -> ServerMessage? {
        var verb = SessionVerb.Publish()
        (verb.session, verb.videoType) = (session, .screen)
        return ask(.session(.publish(verb)))
    }
}

/// A room with a host, Ada, and two guests, who are in its session and have empty inboxes.
struct StandUp {
    let stage: Stage
    let (ada, bob, eve): (Guest, Guest, Guest)
    /// What each got when joining.
    let joined: [Guest: RoomNotice.Joined]
    let session: SessionID

    init(_ stage: Stage = Stage { $0.routesMedia = true }, _ options: RoomChanges? = nil) throws {
        self.stage = stage
        (ada, bob, eve) = (stage.arrive(address: "a"), stage.arrive(address: "b"), stage.arrive(address: "e"))
        var joined: [Guest: RoomNotice.Joined] = [:]
        for (guest, name) in [(ada, "Ada"), (bob, "Bob"), (eve, "Eve")] {
            let answer = try #require(guest.open(as: name, with: options)?.room?.joined)
            joined[guest] = answer
            #expect(guest.enter(answer)?.type == "session.joined")
        }
        for guest in [ada, bob, eve] { guest.take() }
        self.joined = joined
        session = try #require(joined[ada]).admission.session
    }
}

/// A suite with such a room, whose people are available by name.
protocol InStandUp {
    var room: StandUp { get }
}

extension InStandUp {
    var stage: Stage { room.stage }
    var ada: Guest { room.ada }
    var bob: Guest { room.bob }
    var eve: Guest { room.eve }
}

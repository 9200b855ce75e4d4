import Signaling
import TestSupport
import Testing
import Wire

/// A room as one client sees it.
struct RoomView: Equatable {
    var name: RoomName
    var people: [ConnectionID: RoomPerson]
    var options: RoomOptions
    var admission: Admission
    var fileKey: RoomFileKey?
    /// The files that the chat shows.
    var files: Set<RoomFileID>
}

/// A client, with the state that its page would show.
final class RoomVisitor: RandomClient {
    var view: RoomView?
    var waitsFor: RoomName?
    /// The application's token with which it asked to come in.
    var token: RoomLedger.Token?
    /// Tokens of places that are over.
    var dead: [Admission] = []
    /// The file keys of these places.
    var deadKeys: [RoomFileKey] = []
    /// What the page knows of the streams in the room's session; nil while it is not in the session.
    var roster: RosterView?
    /// Its own streams that a host has just muted.
    var mutedStreams: [StreamID] = []
    /// The reactions that it showed during this event.
    var reactions: [RoomNotice.Reacted] = []
}

/// Random people in few rooms.
final class RoomWorld: RandomWorld<RoomVisitor> {
    typealias Visitor = RoomVisitor
    typealias View = RoomView

    static let names = ["red", "Green", "BLUE"].compactMap { RoomName($0) }
    static let password = "sesame"
    /// The name of all clients.
    static let displayName = "V"

    var phones: [Phone] = []
    private(set) var identities: [IdentityID] = []
    /// Who created each room; nil for an application or a phone.
    var creators: [RoomName: IdentityID] = [:]
    /// What owners and stand-ins of each room did.
    var ledgers: [RoomName: RoomLedger] = [:]
    /// The options of each room after the last event.
    var known: [RoomName: RoomOptions] = [:]
    /// The streams that everyone saw muted, and that their owners have not unmuted since.
    var silent: Set<StreamID> = []
    /// The sessions that a host has muted, also for who comes later, and those with a revoked token, until it expires. They are
    /// remembered for a while after the room has ended.
    var mutedSessions: Set<SessionID> = []
    var revokingSessions: [SessionID: Timestamp] = [:]
    private var notedChanges = 0
    var lastText = 0

    init() {
        super.init { rules in
            rules.routesMedia = true
            rules.roomCapacity = 5
            // Random people knock and join far more often than real ones. Other tests cover these limits.
            (rules.roomKnocks, rules.roomPasswordGuesses) = (.init(perMinute: 100_000), .init(perMinute: 100_000))
            rules.joins = .init(perSecond: 1000, burst: 1000)
            (rules.roomReturns, rules.roomReturnsPerAddress, rules.roomAddressShare) = (rules.joins, rules.joins, 100)
        }
        identities = (0..<12).map { _ in .random(using: &random) }
    }

    /// The log has all that happened.
    override func count(_ what: String) {
        super.count(what)
        if !what.hasPrefix("judged") { note(what) }
    }

    /// Notes what was stored.
    func noteChanges() {
        for change in stage.changes[notedChanges...] {
            switch change {
            case .muted(let session, true, by: _, at: _): mutedSessions.insert(session)
            case .muted(let session, false, by: _, at: _): mutedSessions.remove(session)
            case .revoked(let revocation) where revocation.isKept:
                let until = max(revocation.expiresAt, revokingSessions[revocation.session] ?? revocation.expiresAt)
                revokingSessions[revocation.session] = until
            default: break
            }
        }
        revokingSessions = revokingSessions.filter { $0.value > stage.now }
        notedChanges = stage.changes.count
    }

    // MARK: What clients hear

    /// The visitor is no longer in a room.
    func over(_ visitor: Visitor) {
        if let view = visitor.view {
            visitor.dead = (visitor.dead + [view.admission]).suffix(4)
            visitor.deadKeys = (visitor.deadKeys + [view.fileKey].compactMap { $0 }).suffix(4)
        }
        (visitor.view, visitor.waitsFor) = (nil, nil)
    }

    /// Everyone hears what was sent to them, and what others then do about it.
    func hear() {
        var isOver = false
        while !isOver {
            isOver = true
            for visitor in clients {
                let messages = visitor.guest.take()
                isOver = isOver && messages.isEmpty
                for message in messages { hear(visitor, message) }
                obey(visitor)
            }
        }
    }

    private func hear(_ visitor: Visitor, _ message: ServerMessage) {
        if message.errorCode == .internalError { fail("an internal error") }
        switch message {
        case .room(let notice): hear(visitor, notice)
        case .session(let notice): hear(visitor, notice)
        default: break
        }
    }

    func hear(_ visitor: Visitor, _ notice: RoomNotice) {
        switch notice {
        case .joined(let joined): hear(visitor, joined)
        case .waiting(let waiting): visitor.waitsFor = waiting.name
        case .refused(let refused):
            if visitor.waitsFor != refused.name { fail("refused without having waited") }
            visitor.waitsFor = nil
        case .person(let person):
            if visitor.view == nil { fail("news of a room from outside") }
            hear(visitor, person)
        case .changed(let changed): visitor.view?.options = changed.options
        case .ended(let ended):
            if visitor.view?.name != ended.name { fail("a room ended that the client is not in") }
            over(visitor)
            count("ended \(ended.reason)")
        case .knock, .said, .reacted, .upload, .fileRemoved:
            if visitor.view == nil { fail("\(ServerMessage.room(notice).type) outside of a room") }
            if case .said(let line) = notice, let file = line.file { visitor.view?.files.insert(file.id) }
            if case .fileRemoved(let file) = notice { visitor.view?.files.remove(file.id) }
            if case .reacted(let reacted) = notice { visitor.reactions.append(reacted) }
        }
    }

    /// Someone joined, left or changed. Whichever device they use, there must have been a free place.
    private func hear(_ visitor: Visitor, _ person: RoomPerson) {
        guard var view = visitor.view else { return }
        let isNew = view.people[person.connection] == nil && person.state != .left
        view.people[person.connection] = person.state == .left ? nil : person
        visitor.view = view
        let places = person.role == .host ? Self.most(view.options) : Self.places(view.people, view.options)
        let (count, capacity) = (view.people.count, places)
        if isNew, count > capacity {
            fail("\(person.connection.isPhone ? "a phone" : "a person") came in as number \(count) of \(capacity)")
        }
    }

    /// How many people may be in a room: its capacity, and hosts beyond it.
    private static func places(_ people: [ConnectionID: RoomPerson], _ options: RoomOptions) -> Int {
        min(most(options), options.capacity + people.values.count { $0.role == .host })
    }

    static func most(_ options: RoomOptions) -> Int {
        options.media == .routed ? Limits.routedRoom : Limits.meshRoom
    }

    private func hear(_ visitor: Visitor, _ joined: RoomNotice.Joined) {
        if visitor.view != nil { fail("joined twice") }
        if joined.re == nil, visitor.waitsFor != joined.name { fail("let in without having waited") }
        if joined.re == nil { count("let in") }
        let people = Dictionary(joined.people.map { ($0.connection, $0) }, uniquingKeysWith: { first, _ in first })
        if people[visitor.connection]?.role != joined.role { fail("a person got a role that others do not see") }
        // A host may join a room that is over its capacity, for example because the capacity was lowered.
        let places = joined.role == .host ? Self.most(joined.options) : Self.places(people, joined.options)
        if people.count > places { fail("\(people.count) of \(places) are in") }
        let options = joined.options
        visitor.view = View(
            name: joined.name, people: people, options: options, admission: joined.admission,
            fileKey: joined.files?.key, files: Set(joined.chat.compactMap { $0.file?.id }))
        visitor.waitsFor = nil
        defer { noteArrival(of: visitor, joined) }
        // Who came in without asking a host must have been allowed to. Phones can admit nobody.
        let others = people.keys.filter { $0 != visitor.connection && !$0.isPhone }
        guard joined.re != nil, !others.isEmpty else { return }
        let token = visitor.token
        let isOwner = ledgers[joined.name]?.isOwner(visitor.guest.identity, token) ?? false
        if !isOwner, token == nil, options.lobby { fail("a person came in past the lobby") }
        if !isOwner, token?.role ?? .guest == .guest, options.locked { fail("a person came in past the lock") }
        let role = isOwner ? .host : token?.role ?? .guest
        if joined.role != role { fail("a person came in as \(joined.role), not \(role)") }
    }
}

extension ConnectionID {
    /// Whether this is a client of PerchRTC's protocol: their ids are the highest (`PerchPair`).
    var isPhone: Bool { high == .max }
}

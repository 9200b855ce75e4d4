import Foundation
import Wire

@testable import AppModel
@testable import Confab

// Values of the SDK, which only the server's messages create otherwise. In tests, any text of up to 16 bytes is an id.

extension Identifier128 {
    public init(stringLiteral text: String) {
        self = Self(bytes: text.utf8 + [UInt8](repeating: 0, count: 16)) ?? Self(high: 0, low: 0)
    }
}

extension Wire.PersonID: ExpressibleByStringLiteral {}
extension Wire.CallID: ExpressibleByStringLiteral {}
extension Wire.MatchID: ExpressibleByStringLiteral {}
extension Wire.ConnectionID: ExpressibleByStringLiteral {}
extension Wire.RoomFileID: ExpressibleByStringLiteral {}

extension RoomMember {
    init(_ name: String, role: Role = .guest, presence: RoomPresence = .connected, hasRaisedHand: Bool = false) {
        var person = Wire.RoomPerson()
        (person.connection, person.displayName) = (ConnectionID(stringLiteral: name.lowercased()), name)
        (person.role, person.state) = (role.wire, presence)
        if hasRaisedHand { person.handAt = Timestamp(milliseconds: 0) }
        self.init(person)
    }
}

extension RoomMessage {
    init(_ sender: String, _ text: String, file: (id: RoomFileID, size: Int)? = nil) {
        self.init(
            RoomLine(
                connection: ConnectionID(stringLiteral: sender), displayName: sender, text: text,
                at: Timestamp(milliseconds: 0), file: file.map { Wire.RoomFile(id: $0.id, size: $0.size) }))
    }
}

extension SharedFile {
    init(_ id: RoomFileID, size: Int) { self.init(Wire.RoomFile(id: id, size: size), named: "file") }
}

extension Nearby.Neighbor {
    init(id: PersonID, name: String, distance: Int, isBusy: Bool) {
        self.init(NearbyRow(person: id, name: name, distance: distance, busy: isBusy))
    }
}

extension Nearby.Page {
    init(_ people: [Nearby.Neighbor], next: String? = nil) {
        var list = NearbyNotice.List()
        list.people = people.map { NearbyRow(person: $0.id, name: $0.name, distance: $0.distance, busy: $0.isBusy) }
        list.next = next
        self.init(NearbyRows(list))
    }
}

extension Presence.Device {
    init(id: PersonID, label: String, isCurrent: Bool) {
        self.init(DeviceInfo(id: id, label: label, current: isCurrent, present: true, linkedAt: nil))
    }
}

extension Calls.Logged {
    init(
        id: CallID, isOutgoing: Bool, outcome: CallOutcome, person: Person, video: Bool = true,
        duration: Duration? = nil, isSeen: Bool = true
    ) {
        var call = LoggedCall()
        (call.call, call.direction, call.outcome) = (id, isOutgoing ? .outgoing : .incoming, outcome)
        call.person = PersonInfo(id: person.id, name: person.name, online: false)
        (call.video, call.duration, call.seen) = (video, duration, isSeen)
        self.init(call)
    }
}

extension Roulette.Event {
    static func matched(
        name: String, interests: [String], hasChat: Bool, match: MatchID = "match"
    ) -> Roulette.Event {
        var matched = RouletteNotice.Matched()
        (matched.match, matched.textChat) = (match, hasChat)
        (matched.partner.name, matched.partner.interests) = (name, interests)
        // It sends nothing, because the client is gone.
        let client = ConfabClient(server: URL(filePath: "/"))
        return .matched(Match(matched, RouletteMedia(client.core, EventSource())))
    }

    static func message(_ text: String) -> Roulette.Event { .message(ChatLine(text: text, isMine: false)) }
}

extension FakeDevice {
    /// An app that is set up.
    @MainActor func home(hasRoulette: Bool = true) -> ApplicationModel {
        let app = ApplicationModel(platform: platform, server: server, hasRoulette: hasRoulette)
        let url = URL(string: "https://chat.example.org")!
        app.welcome.choose(url)
        app.handle(.checked(url, nil))
        app.aboutYou?.isRulesAgreed = true
        app.aboutYou?.submit()
        return app
    }

    /// An app that is set up and connected.
    @MainActor func online(phase: AppPhase? = nil) -> ApplicationModel {
        let app = home()
        if let phase { app.phaseChanged(to: phase) }
        app.handle(.line(.online, isNew: true))
        return app
    }
}

extension ApplicationModel {
    func enterRoom(with video: FakeVideo? = nil) {
        room.roomName = "book club"
        room.join()
        if let video { handle(.room(.ownVideo(video))) }
        handle(.room(.joined))
    }

    /// Meets Ada in the roulette.
    func meet() {
        roulette.start()
        handle(.roulette(.happened(.waiting(retryAfter: nil))))
        handle(.roulette(.happened(.matched(name: "Ada", interests: [], hasChat: true))))
    }

    /// Bob calls.
    func ring() { handle(.call(.incoming(CallScript.call(CallScript.first, CallScript.bob)))) }

    func goToBackground() {
        becameActive()
        enteredBackground()
    }
}

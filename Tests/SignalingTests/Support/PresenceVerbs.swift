import Signaling
import Testing
import Wire

// Shortcuts for tests of presence and people nearby.
extension Stage {
    /// Returns the ID of a guest in the owner's list of blocked people.
    func blocked(_ guest: Guest, by owner: Guest) -> PersonID {
        project.blockedID(of: guest.person, by: owner.person)
    }
}

extension Guest {
    @discardableResult func set(
        name: String? = nil, visible: Bool? = nil, doNotDisturb: Bool? = nil, ringable: Ringable? = nil
    ) -> ServerMessage? {
        ask(
            .presence(
                .set(Appearance(name: name, visible: visible, doNotDisturb: doNotDisturb, ringable: ringable))))
    }

    @discardableResult func move(_ latitude: Double, _ longitude: Double) -> ServerMessage? {
        ask(.nearby(.move(.init(latitude: latitude, longitude: longitude))))
    }

    /// Sends `nearby.watch` and returns the list.
    @discardableResult func watch(
        _ radius: Int = 200, _ unit: DistanceUnit = .miles, after: String? = nil, limit: Int? = nil
    ) -> NearbyNotice.List? {
        let watch = NearbyVerb.Watch(unit: unit, radius: radius, after: after, limit: limit)
        guard case .nearby(.list(let list))? = ask(.nearby(.watch(watch))) else { return nil }
        return list
    }

    /// Returns the changes of the page since the previous take. Other messages stay in the inbox.
    func takeChanges() -> [NearbyNotice.Changed] {
        take().compactMap { if case .nearby(.changed(let changed)) = $0 { changed } else { nil } }
    }

    func find(_ person: PersonID) -> ServerMessage? { ask(.presence(.find(.init(person: person)))) }

    @discardableResult func block(person: PersonID) -> ServerMessage? {
        ask(.presence(.block(.init(person: person))))
    }

    @discardableResult func unblock(person: PersonID) -> ServerMessage? {
        ask(.presence(.unblock(.init(person: person))))
    }

    var blockedPeople: [PersonInfo]? {
        guard case .presence(.blocked(let list))? = ask(.presence(.blocked)) else { return nil }
        return list.people
    }

    func linkCode() -> String? {
        guard case .presence(.linkCode(let code))? = ask(.presence(.link)) else { return nil }
        return code.code
    }

    @discardableResult func useLink(_ code: String, label: String? = nil) -> ServerMessage? {
        ask(.presence(.useLink(.init(code: code, label: label))))
    }

    var devices: [DeviceInfo]? {
        guard case .presence(.devices(let devices))? = ask(.presence(.devices)) else { return nil }
        return devices.devices
    }
}

extension Stage {
    /// Returns a guest who is online at this location.
    func nearby(_ name: String, _ latitude: Double = 52.52, _ longitude: Double = 13.405) -> Guest {
        let guest = arrive()
        guest.appear(name)
        guest.move(latitude, longitude)
        return guest
    }
}

extension ServerMessage {
    var own: PresenceNotice.Own? { if case .presence(.own(let own)) = self { own } else { nil } }
    var found: PersonInfo? { if case .presence(.person(let found)) = self { found.person } else { nil } }
}

extension NearbyNotice.List {
    var names: [String] { people.map(\.name) }
}

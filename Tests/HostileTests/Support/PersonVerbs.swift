import Foundation
import Wire

extension ServerMessage {
    /// The message's type, or the code if it is an error, for tables.
    var verdict: String { if case .error(let message) = self { message.error.code.rawValue } else { type } }
}

/// Shortcuts for requests about people, and for their answers.
extension Person {
    /// Sends a request and waits for its answer or error.
    func ask(_ message: ClientMessage) throws -> ServerMessage { try hearReply(to: say(message)) }

    func hearReply(to seq: UInt64) throws -> ServerMessage {
        try hear("answer to \(seq)") { $0.re == seq ? $0 : nil }
    }

    /// Sends a request and returns the answer's type or the error code.
    func verdict(_ message: ClientMessage) throws -> String { try ask(message).verdict }

    /// Connects a person and goes online, as a new person or with an existing identity or user token.
    static func present(
        _ name: String, port: Int, visible: Bool = true, identity: String? = nil, token: String? = nil,
        from source: String? = nil
    ) throws -> (person: Person, id: PersonID) {
        let person = try arrive(port: port, identity: identity, token: token, from: source)
        return (person, try person.appear(Appearance(name: name, visible: visible)).person)
    }

    @discardableResult
    func appear(_ appearance: Appearance = Appearance()) throws -> PresenceNotice.Own {
        guard case .presence(.own(let own)) = try ask(.presence(.appear(appearance))) else {
            throw TimedOut("not present: \(errors)")
        }
        return own
    }

    /// Sends arbitrary JSON members with the next number.
    func verdict(_ type: String, members: String) throws -> String {
        try hearReply(to: say(type, members: members)).verdict
    }

    // MARK: Nearby

    static func move(_ place: GlobePlace) -> ClientMessage {
        .nearby(.move(.init(latitude: place.latitude, longitude: place.longitude)))
    }

    /// Moves to a location. Returns the error if the server refuses the move.
    func move(_ place: GlobePlace) throws -> WireError? { try hearAnswer(to: say(Self.move(place))) }

    func watch(_ watch: NearbyVerb.Watch = NearbyVerb.Watch(unit: .miles, radius: 200)) throws -> NearbyNotice.List {
        try hearList(say(.nearby(.watch(watch))))
    }

    func hearList(_ seq: UInt64) throws -> NearbyNotice.List {
        let answer = try hearReply(to: seq)
        guard case .nearby(.list(let list)) = answer else { throw TimedOut("no list: \(answer)") }
        return list
    }

    func hearChanged() throws -> NearbyNotice.Changed {
        try hear("nearby.changed") { if case .nearby(.changed(let changed)) = $0 { changed } else { nil } }
    }

    /// Whether any change of the list was received.
    var wasTold: Bool { heard.contains { if case .nearby(.changed) = $0 { true } else { false } } }

    // MARK: Other people

    func isOnline(_ id: PersonID) throws -> Bool {
        guard case .presence(.person(let found)) = try ask(.presence(.find(.init(person: id)))) else {
            throw TimedOut("nobody is found: \(errors)")
        }
        return found.person.online
    }

    /// Looks a person up, calls them, and returns what is received, without the values that differ each time.
    func learn(of id: PersonID) throws -> [String] {
        forget()
        _ = try ask(.presence(.find(.init(person: id))))
        _ = try hearEnd(place(id))
        _ = try log()
        return heard.map { message in
            switch message {
            case .presence(.person(let found)): "\(message.type) \(found.person.name) \(found.person.online)"
            case .call(.placed(let placed)): "placed \(placed.person.name) \(placed.person.online)"
            case .call(.ended(let ended)): "ended \(ended.reason) \(ended.person.name) \(ended.person.online)"
            default: message.type
            }
        }
    }

    // MARK: Calls

    /// All call notices received so far.
    var callNews: [CallNotice] { heard.compactMap { if case .call(let news) = $0 { news } else { nil } } }

    /// The calls that have rung here, each listed once.
    var rung: [CallID] {
        callNews.reduce(into: []) { calls, news in
            if case .incoming(let incoming) = news, !calls.contains(incoming.call) { calls.append(incoming.call) }
        }
    }

    /// The notices that admitted this device to a call.
    var entered: [CallNotice.Accepted] {
        callNews.compactMap { if case .accepted(let accepted) = $0 { accepted } else { nil } }
    }

    func place(_ person: PersonID, video: Bool = true) throws -> CallID {
        let answer = try ask(.call(.start(.init(person: person, video: video))))
        guard case .call(.placed(let placed)) = answer else { throw TimedOut("not placed: \(answer)") }
        return placed.call
    }

    /// Waits until that call rings here, unless it already has.
    func hearRing(_ call: CallID) throws {
        if rung.contains(call) { return }
        try hear("ring") { if case .call(.incoming(let incoming)) = $0, incoming.call == call { () } else { nil } }
    }

    /// The notice of that call's end, or nil if this device has not received it.
    func end(of call: CallID) -> CallNotice.Ended? {
        for case .ended(let ended) in callNews where ended.call == call { return ended }
        return nil
    }

    func hearEnd(_ call: CallID) throws -> CallNotice.Ended {
        if let end = end(of: call) { return end }
        return try hear("end") { if case .call(.ended(let ended)) = $0, ended.call == call { ended } else { nil } }
    }

    func hearAccepted(_ call: CallID) throws -> CallNotice.Accepted {
        if let accepted = entered.first(where: { $0.call == call }) { return accepted }
        return try hear("call.accepted") {
            if case .call(.accepted(let accepted)) = $0, accepted.call == call { accepted } else { nil }
        }
    }

    func log() throws -> [LoggedCall] {
        let answer = try ask(.call(.log(.init())))
        guard case .call(.log(let log)) = answer else { throw TimedOut("no log: \(answer)") }
        return log.calls
    }
}

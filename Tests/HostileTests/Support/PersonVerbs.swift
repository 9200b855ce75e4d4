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

    // MARK: Other people

    func isOnline(_ id: PersonID) throws -> Bool {
        guard case .presence(.person(let found)) = try ask(.presence(.find(.init(person: id)))) else {
            throw TimedOut("nobody is found: \(errors)")
        }
        return found.person.online
    }

    // MARK: Calls

    func place(_ person: PersonID, video: Bool = true) throws -> CallID {
        let answer = try ask(.call(.start(.init(person: person, video: video))))
        guard case .call(.placed(let placed)) = answer else { throw TimedOut("not placed: \(answer)") }
        return placed.call
    }

    /// The notice of that call's end, or nil if this device has not received it.
    func end(of call: CallID) -> CallNotice.Ended? {
        for case .call(.ended(let ended)) in heard where ended.call == call { return ended }
        return nil
    }

    func hearEnd(_ call: CallID) throws -> CallNotice.Ended {
        if let end = end(of: call) { return end }
        return try hear("end") { if case .call(.ended(let ended)) = $0, ended.call == call { ended } else { nil } }
    }
}

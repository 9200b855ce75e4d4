import Wire

/// The state machine of presence. It makes sure that the server has the values that were set last. If the server lost
/// this person's presence, the machine sends it again before any other request about people.
struct PresenceMachine: FeatureMachine, Equatable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        /// This person's settings changed, here or on another device.
        case changed(PresenceNotice.Own)
        /// This device was unlinked from the person.
        case unlinked
        /// The person was deleted.
        case deleted
        /// The server rejected the values that were sent again after a restart.
        case failed(ConfabError)
    }

    /// An action that concerns another feature.
    enum Action: Equatable, Sendable {
        /// The person is offline on this device: drop the location, and stop watching people nearby.
        case left
    }

    /// A request from the application.
    enum Command: Equatable, Sendable {
        case appear(Appearance)
        case set(Appearance)
        case leave
        case link
        case useLink(code: String, label: String?)
        case delete
        /// A request that changes nothing in this state machine.
        case plain(PresenceVerb)
    }

    /// Determines how the answer to a request is handled.
    private enum Purpose: Equatable, Sendable {
        case say(FeatureCaller, Appearance)
        case link(FeatureCaller)
        case delete(FeatureCaller)
        case ask(FeatureCaller)
        case again
    }

    static var hearsFirst: Bool { true }

    /// The values that `appear` and `set` have set; nil while offline on this device.
    private var said: Appearance?
    /// This person's settings, as last sent by the server; nil if they are not known.
    private(set) var own: PresenceNotice.Own?
    private var requests = Requests<Purpose>()

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        switch command {
        case .appear(let appearance): return send(.appear(appearance), for: .say(caller, appearance), caller)
        case .set(let appearance): return send(.set(appearance), for: .say(caller, appearance), caller)
        case .leave:
            said = nil
            return [.perform(.left)] + send(.leave, for: .ask(caller), caller)
        case .link: return send(.link, for: .ask(caller), caller)
        case .useLink(let code, let label):
            return send(.useLink(.init(code: code, label: label)), for: .link(caller), caller, repeats: false)
        case .delete: return send(.delete, for: .delete(caller), caller, repeats: false)
        case .plain(let verb): return send(verb, for: .ask(caller), caller)
        }
    }

    private mutating func send(
        _ verb: PresenceVerb, for purpose: Purpose, _ caller: FeatureCaller, repeats: Bool = true
    ) -> [Effect] {
        requests.effects(of: .presence(verb), for: purpose, caller, repeats: repeats)
    }

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .connected(let welcome, let start): return connected(welcome, start)
        case .reconnecting: return []
        case .expired:
            requests.hold()
            return []
        case .answered(let id, let result): return answered(id, result)
        case .event(let message): return receive(message, isAnswer: false)
        case .ended(let ending):
            let error = ending ?? .closed
            return requests.endHeld().flatMap { finished($0, .failure(error)) }
        }
    }

    private mutating func connected(_ welcome: Welcome, _ start: ConnectionEvent.Start) -> [Effect] {
        var effects: [Effect] = []
        if start != .resumed, let said {
            // Send the settings only if the server created a new person. Otherwise it has kept them, and another
            // device may have changed them in the meantime.
            let appearance = welcome.identity != nil ? said : Appearance()
            let request = requests.sendFirst(.presence(.appear(appearance)), for: .again)
            effects.append(.send(request.id, request.message))
        }
        return effects + requests.released()
    }

    private mutating func answered(_ id: UInt64, _ result: Result<ServerMessage, ConfabError>) -> [Effect] {
        guard let purpose = requests.answered(id, result) else { return [] }
        guard case .success(let message) = result else { return finished(purpose, result.optional) }
        if case .say(_, let appearance) = purpose { said = said.map { $0.changed(by: appearance) } ?? appearance }
        return receive(message, isAnswer: true) + finished(purpose, .success(message))
    }

    private mutating func finished(_ purpose: Purpose, _ result: FeatureResult) -> [Effect] {
        switch purpose {
        case .say(let caller, _), .ask(let caller): return [.finish(caller, result)]
        case .link(let caller):
            guard result.failureCode == nil else { return [.finish(caller, result)] }
            // This device now belongs to a person who already has a name and settings, so do not send the earlier
            // ones again.
            if said != nil { said = Appearance() }
            return [.finish(caller, result)]
        case .delete(let caller):
            // If the server sent `presence.deleted`, it arrived before this answer and `said` is nil. Otherwise handle
            // the deletion now.
            let deleted = result.failureCode == nil && said != nil ? forget(.deleted) : []
            return deleted + [.finish(caller, result)]
        case .again:
            // Do not report a request that another restart interrupted, because it is sent again.
            guard case .failure(let error) = result, error.code != .connectionRestarted, error.code != .left else {
                return []
            }
            return [.tell(.failed(error))]
        }
    }

    private mutating func receive(_ message: ServerMessage, isAnswer: Bool) -> [Effect] {
        switch message {
        case .presence(.own(let own)):
            self.own = own
            if !isAnswer { said = said?.updated(from: own) }
            return [.tell(.changed(own))]
        case .presence(.unlinked): return forget(.unlinked)
        case .presence(.deleted): return forget(.deleted)
        default: return []
        }
    }

    /// Drops the person's values, because this device no longer belongs to the person. The server closes the connection
    /// next, and the client opens a new one.
    private mutating func forget(_ news: Event) -> [Effect] {
        (said, own) = (nil, nil)
        return [.perform(.left), .tell(news)]
    }
}

extension Appearance {
    /// Returns these values, replaced by the values of `other` that are not nil.
    fileprivate func changed(by other: Appearance) -> Appearance {
        Appearance(
            name: other.name ?? name, visible: other.visible ?? visible,
            doNotDisturb: other.doNotDisturb ?? doNotDisturb, ringable: other.ringable ?? ringable)
    }

    /// Returns these values, with the server's current value for each one that is not nil.
    fileprivate func updated(from own: PresenceNotice.Own) -> Appearance {
        Appearance(
            name: name.map { _ in own.name }, visible: visible.map { _ in own.visible },
            doNotDisturb: doNotDisturb.map { _ in own.doNotDisturb }, ringable: ringable.map { _ in own.ringable })
    }
}

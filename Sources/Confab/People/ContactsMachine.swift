import Wire

/// The state machine of contacts: requests, and messages from the server about contacts.
struct ContactsMachine: FeatureMachine, Equatable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        case asked(MeetingReference)
        case added(ContactNotice.Added)
        case changed(PersonInfo)
        case removed(PersonID)
    }

    typealias Action = Never
    typealias Command = ContactVerb

    private var requests = Requests<FeatureCaller>()

    mutating func handle(_ command: ContactVerb, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        requests.effects(of: .contact(command), for: caller, caller)
    }

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .event(.contact(let notice)): return receive(notice)
        case .event, .reconnecting: return []
        default: return requests.handle(news)
        }
    }

    private func receive(_ notice: ContactNotice) -> [Effect] {
        switch notice {
        case .asked(let meeting): [.tell(.asked(meeting))]
        case .added(let added): [.tell(.added(added))]
        case .changed(let changed): [.tell(.changed(changed.person))]
        case .removed(let removed): [.tell(.removed(removed.person))]
        case .list: []
        }
    }
}

/// The state machine of push notifications. It registers the device again after each restart of the connection, because
/// the server may no longer have the registration.
struct PushMachine: FeatureMachine, Equatable {
    typealias Event = ConfabError
    typealias Action = Never
    typealias Command = PushVerb

    /// Determines how the answer to a request is handled.
    private enum Purpose: Equatable, Sendable {
        case register(FeatureCaller, PushRegistration)
        case ask(FeatureCaller)
        case again
    }

    private var registration: PushRegistration?
    private var requests = Requests<Purpose>()

    mutating func handle(_ command: PushVerb, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        switch command {
        case .register(let registration):
            return requests.effects(of: .push(command), for: .register(caller, registration), caller)
        case .unregister(let ended):
            if registration?.endpoint == ended.endpoint { registration = nil }
            return requests.effects(of: .push(command), for: .ask(caller), caller)
        }
    }

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .connected(_, let start):
            guard start != .resumed, let registration else { return requests.released() }
            let request = requests.sendFirst(.push(.register(registration)), for: .again)
            return [.send(request.id, request.message)] + requests.released()
        case .expired:
            requests.hold()
            return []
        case .answered(let id, let result):
            return requests.answered(id, result).map { finished($0, result.optional) } ?? []
        case .event(.presence(.unlinked)), .event(.presence(.deleted)):
            registration = nil
            return []
        case .event, .reconnecting: return []
        case .ended(let ending):
            let error = ending ?? .closed
            return requests.endHeld().flatMap { finished($0, .failure(error)) }
        }
    }

    private mutating func finished(_ purpose: Purpose, _ result: FeatureResult) -> [Effect] {
        switch purpose {
        case .register(let caller, let registration):
            if result.failureCode == nil { self.registration = registration }
            return [.finish(caller, result)]
        case .ask(let caller): return [.finish(caller, result)]
        case .again:
            guard case .failure(let error) = result, error.code != .connectionRestarted, error.code != .left else {
                return []
            }
            return [.tell(error)]
        }
    }
}

extension Requests where Purpose == FeatureCaller {
    /// Handles a connection event for a feature that only passes each answer to the method that sent the request.
    mutating func handle<Event, Action>(_ news: FeatureInput) -> [FeatureEffect<Event, Action>] {
        switch news {
        case .connected: return released()
        case .expired:
            hold()
            return []
        case .answered(let id, let result): return answered(id, result).map { [.finish($0, result.optional)] } ?? []
        case .ended(let ending):
            let error = ending ?? .closed
            return endHeld().map { .finish($0, .failure(error)) }
        case .event, .reconnecting: return []
        }
    }
}

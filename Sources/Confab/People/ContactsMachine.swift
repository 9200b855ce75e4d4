import Wire

/// The state machine of contacts: requests, and messages from the server about contacts.
struct ContactsMachine: WayMachine, Equatable {
    enum News: Equatable, Sendable {
        case asked(MeetingReference)
        case added(ContactNotice.Added)
        case changed(PersonInfo)
        case removed(PersonID)
    }

    typealias Deed = Never
    typealias Wish = ContactVerb

    private var requests = Requests<WayCaller>()

    mutating func handle(_ wish: ContactVerb, from caller: WayCaller, now: Timestamp) -> [Effect] {
        requests.effects(of: .contact(wish), for: caller, caller)
    }

    mutating func handle(_ news: LineNews, now: Timestamp) -> [Effect] {
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
/// the server may have lost the registration with the person's data.
struct PushMachine: WayMachine, Equatable {
    typealias News = ConfabError
    typealias Deed = Never
    typealias Wish = PushVerb

    private enum Purpose: Equatable, Sendable {
        case register(WayCaller, PushRegistration)
        case ask(WayCaller)
        case again
    }

    private var registration: PushRegistration?
    private var requests = Requests<Purpose>()

    mutating func handle(_ wish: PushVerb, from caller: WayCaller, now: Timestamp) -> [Effect] {
        switch wish {
        case .register(let registration):
            return requests.effects(of: .push(wish), for: .register(caller, registration), caller)
        case .unregister(let ended):
            if registration?.endpoint == ended.endpoint { registration = nil }
            return requests.effects(of: .push(wish), for: .ask(caller), caller)
        }
    }

    mutating func handle(_ news: LineNews, now: Timestamp) -> [Effect] {
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

    private mutating func finished(_ purpose: Purpose, _ result: WayResult) -> [Effect] {
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

extension Requests where Purpose == WayCaller {
    /// Handles an event of the connection for requests without a purpose other than their answer.
    mutating func handle<News, Deed>(_ news: LineNews) -> [WayEffect<News, Deed>] {
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

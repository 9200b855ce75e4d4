import Wire

/// This person's contacts: people from roulette chats and calls, if both people wanted to keep in touch.
public actor Contacts {
    /// Where two people met.
    public enum Meeting: Hashable, Sendable {
        /// In a roulette chat.
        case match(MatchID)
        /// In a call.
        case call(CallID)

        init?(_ match: MatchID?, _ call: CallID?) {
            if let match { self = .match(match) } else if let call { self = .call(call) } else { return nil }
        }
    }

    /// An event about contacts.
    public enum Event: Hashable, Sendable {
        /// The other person in a chat or call wants to keep in touch.
        case asked(Meeting)
        /// A person became a contact, because both people wanted it. The meeting is nil if the server does not report
        /// it.
        case added(Person, Meeting?)
        /// A contact changed their name, or went online or offline.
        case changed(Person)
        /// A person is no longer a contact.
        case removed(PersonID)
    }

    private let feature: FeatureCore<ContactsMachine>
    private let source: EventSource<Event>

    init(_ desk: FeatureDesk) {
        let source = EventSource<Event>()
        feature = FeatureCore(
            ContactsMachine(), desk,
            tell: { news in
                switch news {
                case .asked(let meeting):
                    if let meeting = Meeting(meeting.match, meeting.call) { source.send(.asked(meeting)) }
                case .added(let added): source.send(.added(Person(added.person), Meeting(added.match, added.call)))
                case .changed(let person): source.send(.changed(Person(person)))
                case .removed(let id): source.send(.removed(id))
                }
            })
        self.source = source
        desk.onClose { source.finish() }
    }

    /// The events about contacts.
    nonisolated public var events: Events<Event> { source.events }

    /// Offers to keep in touch with the partner of a roulette chat, during the chat or up to 60 s after its end. If
    /// both people do this, they become contacts.
    ///
    /// - Throws: `not_found` if the chat is unknown or ended too long ago, or `not_permitted` if this person has
    ///   blocked the other person or already has 500 contacts.
    public func keep(match: MatchID) async throws(ConfabError) { try await feature.ask(.keep(.init(match: match))) }

    /// Offers to keep in touch with the other person in a call, during the call or up to an hour after its end. If both
    /// people do this, they become contacts.
    ///
    /// - Throws: `not_found` if the call is unknown or ended too long ago, or `not_permitted` if this person has
    ///   blocked the other person or already has 500 contacts.
    public func keep(call: CallID) async throws(ConfabError) { try await feature.ask(.keep(.init(call: call))) }

    /// Returns all contacts, at most 500.
    public func list() async throws(ConfabError) -> [Person] {
        guard case .contact(.list(let list)) = try await feature.ask(.list) else { throw .noAnswer }
        return list.people.map(Person.init)
    }

    /// Removes a contact. The two people are then no longer contacts of each other.
    public func remove(_ id: PersonID) async throws(ConfabError) { try await feature.ask(.remove(.init(person: id))) }
}

/// Push notifications of calls, for a device on which the application is not running.
public actor Push {
    private let feature: FeatureCore<PushMachine>
    private let source: EventSource<ConfabError>

    init(_ desk: FeatureDesk) {
        let source = EventSource<ConfabError>()
        feature = FeatureCore(PushMachine(), desk, tell: { source.send($0) })
        self.source = source
        desk.onClose { source.finish() }
    }

    /// Errors of automatic registrations: the SDK registers the device again whenever a new connection replaces the old
    /// one.
    nonisolated public var failures: Events<ConfabError> { source.events }

    /// Registers a device token of the Apple Push Notification service, so that calls ring on a device on which the
    /// application is not running. The SDK registers the token again whenever a new connection replaces the old one.
    ///
    /// - Parameters:
    ///   - token: the device token, in hexadecimal.
    ///   - isSandbox: whether the token belongs to a development build, for which Apple has a separate service.
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `push_invalid`, `push_not_allowed`.
    public func register(token: String, isSandbox: Bool = false) async throws(ConfabError) {
        try await feature.ask(.register(.init(kind: .apns, endpoint: token, sandbox: isSandbox)))
    }

    /// Stops the notifications to a device token.
    public func unregister(token: String) async throws(ConfabError) {
        try await feature.ask(.unregister(.init(endpoint: token)))
    }
}

import Wire

/// What the rules ask of storage, or of whoever else can tell.
public enum Inquiry: Equatable, Sendable {
    /// Who is known by this id, and what is known of them.
    case person(PersonID, Introduction)
    case callLog(CallVerb.LogPage)
    /// Keep this way to wake a device; whether it may be is for the shell to judge.
    case register(PushRegistration)
    case unregister(PushVerb.Unregister)
    /// Whether any way to wake this person is left. Answered like `unregister`, though nobody waits to be told.
    case wakeable
}

/// An inquiry, by whom, and which request of which client it answers.
public struct Question: Equatable, Sendable {
    public var identity: IdentityID
    public var client: ConnectionID
    public var re: UInt64
    public var inquiry: Inquiry
    /// Which of the person's devices asks, where that matters: for ways to wake a device.
    public var device: IdentityID

    public init(
        identity: IdentityID, client: ConnectionID, re: UInt64, _ inquiry: Inquiry, device: IdentityID? = nil
    ) {
        (self.identity, self.client, self.re, self.inquiry) = (identity, client, re, inquiry)
        self.device = device ?? identity
    }
}

extension PushVerb {
    var inquiry: Inquiry {
        switch self {
        case .register(let registration): .register(registration)
        case .unregister(let endpoint): .unregister(endpoint)
        }
    }
}

extension Question {
    var request: Request { Request(client, re) }

    /// Brings what came of it to the machine or client that waits for it.
    func answered(_ finding: Finding, _ turn: inout Turn) {
        switch (inquiry, finding) {
        case (.person(let person, let introduction), _):
            turn.tell(.lookup(person, .answered(introduction, finding)))
        case (.callLog, .callLog(let records, let next)):
            let log = CallNotice.Log(re: re, calls: LoggedCall.list(records, turn.project), next: next)
            turn.send(.call(.log(log)), to: client)
        case (.wakeable, .push(let isReachable)):
            turn.tell(.person(identity, .presence(.pushChanged(isReachable: isReachable))))
        // Nobody waits for this answer: what is not known stays as it was.
        case (.wakeable, _): break
        case (_, .push(let isReachable)):
            turn.tell(.person(identity, .presence(.pushChanged(isReachable: isReachable))))
            turn.ok(request)
        case (_, .refused(let error)): turn.fail(error, request)
        default: turn.fail(.notAnswered, request)
        }
    }
}

extension WireError {
    /// An answer that does not fit its question.
    static let notAnswered = WireError(.internalError, "Try again.", retryable: true)
}

/// What came of a question.
public enum Finding: Equatable, Sendable {
    /// `nil`: nobody.
    case person(FoundRecord?)
    /// `next` is where the page before this begins.
    case callLog([CallRecord], next: String?)
    /// Registered or unregistered; whether any way to wake this person is left.
    case push(isReachable: Bool)
    case refused(WireError)
}

public struct FoundRecord: Equatable, Sendable {
    public var identity: IdentityID
    public var record: PersonRecord
    public init(identity: IdentityID, record: PersonRecord) { (self.identity, self.record) = (identity, record) }
}

/// A request that names somebody by a public id, on its way to being about an identity.
public struct Introduction: Equatable, Sendable {
    public var identity: IdentityID
    public var client: ConnectionID
    public var re: UInt64
    public var message: ClientMessage

    public init(identity: IdentityID, client: ConnectionID, re: UInt64, _ message: ClientMessage) {
        (self.identity, self.client, self.re, self.message) = (identity, client, re, message)
    }

    var request: Request { Request(client, re) }
}

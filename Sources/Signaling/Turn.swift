import Wire

/// The moment at which machines act, what they need to know then, and what they ask for.
///
/// The hub keeps one turn for its whole life and lends it to every machine. It does not make one per event: that would
/// copy the rules, and ids would repeat if the state of the generator were lost. Invariant: letters and effects stand in
/// the order in which machines asked for them.
public struct Turn: Sendable {
    /// A large session's broadcast makes as many letters as it has members. A buffer for more than this is not kept.
    private static let maxKeptLetters = 4096

    /// The present, the same for everything that one input causes.
    package var now = Timestamp(milliseconds: 0)
    let rules: Rules
    let project: Project
    let ice: ICEProvision
    let version: String
    let vapidKey: String?
    var random: Randomness
    var figures = Figures()

    /// For the shell.
    private var effects: [Effect] = []
    /// For other machines.
    package private(set) var letters: [Letter] = []
    /// How many of the letters were taken out.
    private var taken = 0

    package init(_ surroundings: Surroundings, generator: any RandomNumberGenerator & Sendable) {
        (rules, project) = (surroundings.rules, surroundings.project)
        (ice, version, vapidKey) = (surroundings.ice, surroundings.version, surroundings.vapidKey)
        random = Randomness(generator)
    }

    var surroundings: Surroundings {
        Surroundings(rules: rules, project: project, ice: ice, version: version, vapidKey: vapidKey)
    }

    // MARK: Taking out

    /// The oldest letter that was not taken out yet.
    package mutating func nextLetter() -> Letter? {
        guard taken < letters.count else {
            letters.removeAll(keepingCapacity: letters.capacity <= Self.maxKeptLetters)
            taken = 0
            return nil
        }
        taken += 1
        return letters[taken - 1]
    }

    /// Everything that the shell is to do by now, in order.
    mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Asking for something

    mutating func tell(_ letter: Letter) { letters.append(letter) }

    mutating func send(_ message: ServerMessage, to client: ConnectionID) {
        letters.append(.client(client, .deliver(message)))
    }

    mutating func ok(_ request: Request) { send(.ok(.init(re: request.re)), to: request.client) }

    mutating func fail(_ error: WireError, _ request: Request) { fail(error, re: request.re, to: request.client) }

    /// - Parameter re: nil for an error that answers no request.
    mutating func fail(_ error: WireError, re: UInt64?, to client: ConnectionID) {
        send(.error(.init(error, re: re)), to: client)
    }

    mutating func persist(_ change: Change) { effects.append(.persist(change)) }
    mutating func transmit(_ socket: SocketID, _ bytes: [UInt8]) { effects.append(.transmit(socket, bytes)) }
    mutating func media(_ command: MediaCommand) { effects.append(.media(command)) }
    mutating func reply(_ socket: SocketID, _ reply: ResourceReply) { effects.append(.reply(socket, reply)) }
    mutating func inquire(_ question: Question) { effects.append(.inquire(question)) }
    mutating func push(_ identity: IdentityID, _ notice: PushNotice) { effects.append(.push(identity, notice)) }

    mutating func close(_ socket: SocketID, _ code: CloseCode, _ reason: String) {
        effects.append(.close(socket, code, reason))
    }
}

extension Turn {
    /// Makes a token that lets its holder into a session.
    ///
    /// - Parameter match: the match or call that the token dies with.
    mutating func admission(to session: SessionID, _ role: Role, match: MatchID?) -> Admission {
        let token = project.makeSessionToken(
            SessionTokenClaims(session: session, role: role, match: match, lifetime: rules.matchTokenLifetime),
            now: now, using: &random)
        return Admission(session: session, token: token)
    }
}

/// Where ids and tokens get their random numbers.
///
/// It holds an existential; the turn has no type parameter. A parameter would make every machine generic, and the shell,
/// another module, would run them unspecialized. `SystemRandomNumberGenerator` has no state and a seeded one a few words:
/// they are stored in place, so nothing is allocated. What is left is a call of a witness for each random number.
struct Randomness: RandomNumberGenerator, Sendable {
    private var source: any RandomNumberGenerator & Sendable

    init(_ source: any RandomNumberGenerator & Sendable) { self.source = source }

    mutating func next() -> UInt64 { source.next() }
}

/// A request of a client connection. It is answered once.
struct Request: Equatable, Sendable {
    var client: ConnectionID
    /// The number that the answer repeats.
    var re: UInt64

    init(_ client: ConnectionID, _ re: UInt64) { (self.client, self.re) = (client, re) }
}

/// Counts for metrics and for `roulette.count`. They are this node's: where there are many, each counts its own.
struct Figures: Equatable, Sendable {
    /// Clients with a socket, or waited for.
    var online = 0
    /// People with a device that has appeared and is connected.
    var present = 0
}

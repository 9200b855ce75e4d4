import Wire

/// The context in which machines act: the current time, shared settings, and the letters and effects they produce.
///
/// The hub keeps one turn and lends it to every machine. A new turn per event would copy the rules, and ids would repeat if the
/// generator's state were lost.
/// Invariant: letters and effects are kept in the order in which machines produced them.
public struct Turn: Sendable {
    /// A broadcast in a large session produces one letter per member. A buffer larger than this is freed afterwards.
    private static let maxKeptLetters = 4096

    /// The current time, the same for everything that one input causes.
    package var now = Timestamp(milliseconds: 0)
    let rules: Rules
    let project: Project
    let ice: ICEProvision
    let version: String
    let vapidKey: String?
    var random: Randomness
    var figures = Figures()

    /// Effects for the shell.
    private var effects: [Effect] = []
    /// Letters for other machines.
    package private(set) var letters: [Letter] = []
    /// Number of letters already taken.
    private var taken = 0

    package init(_ hubSettings: HubSettings, generator: any RandomNumberGenerator & Sendable) {
        (rules, project) = (hubSettings.rules, hubSettings.project)
        (ice, version, vapidKey) = (hubSettings.ice, hubSettings.version, hubSettings.vapidKey)
        random = Randomness(generator)
    }

    var hubSettings: HubSettings {
        HubSettings(rules: rules, project: project, ice: ice, version: version, vapidKey: vapidKey)
    }

    // MARK: Taking letters and effects

    /// Removes and returns the oldest letter.
    package mutating func nextLetter() -> Letter? {
        guard taken < letters.count else {
            letters.removeAll(keepingCapacity: letters.capacity <= Self.maxKeptLetters)
            taken = 0
            return nil
        }
        taken += 1
        return letters[taken - 1]
    }

    /// Removes and returns all effects so far, in order.
    mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Sending letters and effects

    mutating func tell(_ letter: Letter) { letters.append(letter) }

    mutating func send(_ message: ServerMessage, to client: ConnectionID) {
        letters.append(.client(client, .deliver(message)))
    }

    mutating func ok(_ request: Request) { send(.ok(.init(re: request.re)), to: request.client) }

    mutating func fail(_ error: WireError, _ request: Request) { fail(error, re: request.re, to: request.client) }

    /// - Parameter re: nil if the error does not answer a request.
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
    /// Makes a token for joining a session.
    ///
    /// - Parameter match: the match or call whose end invalidates the token.
    mutating func admission(to session: SessionID, _ role: Role, match: MatchID?) -> Admission {
        let token = project.makeSessionToken(
            SessionTokenClaims(session: session, role: role, match: match, lifetime: rules.matchTokenLifetime),
            now: now, using: &random)
        return Admission(session: session, token: token)
    }
}

/// The random number source for ids and tokens.
///
/// Holds an existential rather than making `Turn` generic. A type parameter would make every machine generic, and the shell,
/// which is another module, would run them unspecialized. `SystemRandomNumberGenerator` has no state and a seeded generator has
/// a few words, so both are stored inline without allocation. The remaining cost is one witness call per random number.
struct Randomness: RandomNumberGenerator, Sendable {
    private var source: any RandomNumberGenerator & Sendable

    init(_ source: any RandomNumberGenerator & Sendable) { self.source = source }

    mutating func next() -> UInt64 { source.next() }
}

/// A request from a client connection, answered exactly once.
struct Request: Equatable, Sendable {
    var client: ConnectionID
    /// The request's number, which the answer repeats.
    var re: UInt64

    init(_ client: ConnectionID, _ re: UInt64) { (self.client, self.re) = (client, re) }
}

/// Counts for metrics and `roulette.count`. With several nodes, each counts its own.
struct Figures: Equatable, Sendable {
    /// Clients that are connected or within their resume grace.
    var online = 0
    /// People with a connected device that is present.
    var present = 0
}

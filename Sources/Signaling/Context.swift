import Cluster
import DequeModule
import Wire

/// The context in which state machines handle events: the current time, shared settings, and lists of the letters and effects
/// that they produce.
///
/// The hub keeps one context and passes it to every state machine. Creating a new context per event would copy the
/// rules, and would lose the state of the random number generator, so that ids would repeat. Invariant: letters and
/// effects are kept in the order in which the state machines produced them.
public struct Context: Sendable {
    /// When the buffer of letters becomes empty, its memory is freed if more letters than this were taken since it was
    /// last empty. A broadcast in a large session produces one letter per member, so it can make the buffer large.
    private static let maxKeptLetters = 4096

    /// The name of this node, for clients; nil without a cluster.
    var nodeName: String? { tag?.nodeName }
    /// The current time. It stays the same for everything that one input causes.
    package var moment = Moment(now: Timestamp(milliseconds: 0))
    /// The time for timers and budgets. Setting it also sets the wall clock to the same time.
    package var now: Timestamp {
        get { moment.now }
        set { moment = Moment(now: newValue) }
    }
    /// The time of day, for tokens, bans, and all times that are stored or sent.
    var wallNow: Timestamp { moment.wall }
    /// What the current input may store.
    package var permit = StoragePermit.all
    private(set) var rules: Rules
    private(set) var projects: Projects
    /// The main project. Everything belongs to it, except the sessions of the other projects.
    var project: Project { projects.main }
    private(set) var ice: ICEProvision
    let version: String
    let vapidKey: String?
    /// The tag of this node in its cluster; nil without a cluster.
    let tag: NodeTag?
    var random: Randomness
    var figures = Figures()
    /// The space used by the files of all rooms. Unlike `figures`, it affects decisions of rooms.
    var fileSpace = RoomFileSpace()
    /// What the sessions of each project use, keyed by API key.
    var usage: [String: ProjectUsage] = [:]
    /// The number of archives that are being recorded.
    var runningArchives = 0
    /// The number of broadcasts that run or are about to begin.
    var runningBroadcasts = 0
    /// Whether the disk has enough space for another archive.
    var hasRecordingSpace = true
    /// The disk space left for files.
    var freeDisk = FreeDiskSpace()
    /// The lives of other nodes to which media can cross. Nil until this node has relays; until then, nothing spans nodes.
    var mediaNodes: Set<NodeTag>?

    /// Effects that the shell has not taken yet.
    private var effects: [Effect] = []
    /// Letters to other state machines, oldest first. This is a deque, because removing its first element moves the
    /// letter. Reading it from an array would copy it, and retain everything in it.
    package private(set) var letters: Deque<Letter> = []
    /// The number of letters taken since the buffer was last empty.
    private var taken = 0
    /// In a cluster, the machines with a place that may have ended since the hub looked last.
    private var touched: [PlacedMachine] = []
    /// The time in the id of the latest session that this node of a cluster made.
    private var lastSessionAt = Timestamp(milliseconds: 0)

    package init(_ hubSettings: HubSettings, generator: any RandomNumberGenerator & Sendable) {
        (rules, projects) = (hubSettings.rules, hubSettings.projects)
        (ice, version, vapidKey) = (hubSettings.ice, hubSettings.version, hubSettings.vapidKey)
        tag = hubSettings.tag
        random = Randomness(generator)
    }

    var hubSettings: HubSettings {
        HubSettings(rules: rules, projects: projects, ice: ice, version: version, vapidKey: vapidKey, tag: tag)
    }

    /// Replaces the rules, keys and ICE servers, starting with the next event. The node's tag stays the same.
    mutating func adopt(_ settings: HubSettings) {
        (rules, projects, ice) = (settings.rules, settings.projects, settings.ice)
        usage = usage.filter { projects[$0.key] != nil || $0.value.isInUse }
    }

    // MARK: Taking letters and effects

    /// Removes and returns the oldest letter; returns nil if there is none.
    package mutating func nextLetter() -> Letter? {
        guard let letter = letters.popFirst() else {
            if taken > Self.maxKeptLetters { letters = [] }
            taken = 0
            return nil
        }
        taken += 1
        return letter
    }

    /// Removes and returns all effects, in order.
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

    /// Refuses to admit a client to a room, and counts the refusal. An invalid room token closes the connection, as an
    /// invalid session token does.
    mutating func refuse(_ application: RoomApplication, _ error: WireError) {
        figures.rooms.joins[error.code.rawValue, default: 0] += 1
        let (client, re) = (application.applicant.client, application.re)
        if error.code.isToken {
            tell(.client(client, .joinRefused(re: re, error, match: nil)))
        } else {
            fail(error, application.request)
        }
    }

    mutating func fail(_ error: WireError, _ request: Request) { fail(error, re: request.re, to: request.client) }

    /// Sends an error to a client.
    ///
    /// - Parameter re: the number of the request that the error answers; nil if it answers none.
    mutating func fail(_ error: WireError, re: UInt64?, to client: ConnectionID) {
        send(.error(.init(error, re: re)), to: client)
    }

    mutating func persist(_ change: Change) { effects.append(.persist(change)) }
    mutating func transmit(_ socket: SocketID, _ bytes: [UInt8]) { effects.append(.transmit(socket, bytes)) }
    mutating func media(_ command: MediaCommand) { effects.append(.media(command)) }
    /// Passes a command to the media plane of the node that has this client.
    mutating func media(_ command: MediaCommand, at client: ConnectionID) {
        guard let tag, let other = client.tag(unless: tag) else { return media(command) }
        post(.media(command), to: other)
    }

    /// Passes a command to the media plane of this node, and to those of other nodes.
    mutating func media(_ command: MediaCommand, andOn others: [NodeTag]) {
        media(command)
        for other in others { post(.media(command), to: other) }
    }

    mutating func record(_ command: RecordingCommand) { effects.append(.recording(command)) }
    mutating func broadcast(_ command: BroadcastCommand) { effects.append(.broadcast(command)) }
    mutating func composeAhead(_ archive: ArchiveRecord) { effects.append(.composeAhead(archive)) }
    mutating func compose(_ archive: ArchiveRecord) { effects.append(.compose(archive)) }
    mutating func reply(_ socket: SocketID, _ reply: ResourceReply) { effects.append(.reply(socket, reply)) }
    mutating func answer(_ socket: SocketID, _ reply: OperatorReply) { effects.append(.answer(socket, reply)) }
    /// Sends a list of rooms to the next room, which adds itself. After the last room, sends the list to the operator.
    mutating func pass(_ tour: RoomTour) {
        var tour = tour
        guard let next = tour.rest.popLast() else { return answer(tour.socket, .rooms(tour.list)) }
        tell(.room(next, .list(tour)))
    }

    mutating func reach(_ key: PlaceKey, _ machine: PlacedMachine, claims: Bool) {
        effects.append(.reach(key, machine, claims: claims))
    }

    mutating func releasePlace(_ key: PlaceKey) { effects.append(.releasePlace(key)) }
    mutating func post(_ letter: Letter, to tag: NodeTag) { effects.append(.post(tag, letter)) }
    mutating func relay(_ event: RelayLetter, from tag: NodeTag) { effects.append(.relay(event, from: tag)) }

    /// Notes that this machine may have ended, so that the hub releases its place. Does nothing without a cluster.
    mutating func touch(_ machine: PlacedMachine) { if tag != nil { touched.append(machine) } }

    mutating func takeTouched() -> [PlacedMachine] {
        defer { touched = [] }
        return touched
    }

    mutating func deleteFile(_ file: RoomFileID) { effects.append(.deleteFile(file)) }
    mutating func query(_ question: Question) { effects.append(.query(question)) }
    /// Sends a push notification to a person's devices. Converts the notice's `expires`, a time on the timers' clock
    /// (`now`), to the wall clock, which the push services use.
    mutating func push(_ identity: IdentityID, _ notice: PushNotice) {
        var notice = notice
        notice.expires = moment.wall(at: notice.expires)
        effects.append(.push(identity, notice))
    }

    mutating func close(_ socket: SocketID, _ code: CloseCode, _ reason: String) {
        effects.append(.close(socket, code, reason))
    }
}

extension Context {
    /// Returns a new random id. In a cluster, its first 40 bits are the node's tag.
    ///
    /// - Parameter node: the node that will have the machine with this id; nil if it is this one.
    mutating func newID<ID: Identifier128>(at node: NodeTag? = nil) -> ID {
        let id = ID.random(using: &random)
        guard let tag = node ?? tag else { return id }
        return ID(high: tag.rawValue << 24 | id.high >> 40, low: id.low)
    }

    /// Returns the id of a new session of a room, match, call or legacy client, which begins on this node. In a cluster, the id contains
    /// the node's tag, which leaves few random bytes. So each id has a different time, because two chats must never share a session. The
    /// time runs ahead of the clock if the node makes more than a thousand sessions a second, or if the clock is set back. It has no other
    /// use.
    mutating func makeSessionID(mediaMode: MediaMode, relayedOnly: Bool = false, isPrivate: Bool = false) -> SessionID {
        var madeAt = wallNow
        if tag != nil {
            madeAt = max(madeAt, lastSessionAt + .milliseconds(1))
            lastSessionAt = madeAt
        }
        return project.makeSessionID(
            mediaMode: mediaMode, relayedOnly: relayedOnly, isPrivate: isPrivate, origin: tag, now: madeAt,
            using: &random)
    }

    /// Returns a session and a new token for joining it.
    ///
    /// - Parameters:
    ///   - match: the match or call whose end invalidates the token; nil if the token is not bound to one.
    ///   - identity: the only person who may use the token; nil for a legacy client, which joins the session over
    ///     another connection with another identity.
    mutating func admission(to session: SessionID, _ role: Role, match: MatchID?, for identity: IdentityID? = nil)
        -> Admission
    {
        let claims = SessionTokenClaims(
            session: session, role: role, match: match, identity: identity, lifetime: rules.matchTokenLifetime)
        let token = project.makeSessionToken(claims, now: wallNow, using: &random)
        return Admission(session: session, token: token)
    }

    /// Sends a `resume_failed` error to a client that could not resume, and admits it as a new client.
    mutating func admitWithoutResume(_ arrival: Arrival) {
        let error = WireError(
            .resumeFailed,
            "The connection could not be resumed, so a new one was started. Join your sessions again.")
        transmit(arrival.socket, ServerMessage.error(.init(error)).encode())
        var arrival = arrival
        arrival.resume = nil
        tell(.reception(arrival))
    }
}

/// The random number generator for ids and tokens.
///
/// Stores the generator as an existential, because a type parameter of `Context` would make every state machine generic. The shell
/// is another module and would run the generic code unspecialized. `SystemRandomNumberGenerator` has no state and a seeded
/// generator has a few words, so either is stored inline without allocation. The remaining cost is one dynamic call
/// per random number.
struct Randomness: RandomNumberGenerator, Sendable {
    private var source: any RandomNumberGenerator & Sendable

    init(_ source: any RandomNumberGenerator & Sendable) { self.source = source }

    mutating func next() -> UInt64 { source.next() }
}

/// Counts that are used only for metrics: no decision depends on them. With several nodes, each node counts only what
/// it handles itself.
struct Figures: Equatable, Sendable {
    /// The number of people who are online on at least one connected device.
    var present = 0
    var refusals = BandwidthRefusals()
    var rooms = RoomFigures()
    /// The number of sides of video chats from which no sample came although the server checks them.
    var unsampledChats = 0
    /// Letters of other nodes that this release does not expect from them.
    var unexpectedLetters = 0
    /// Letters to people on other nodes that were dropped: too many waited until it is known where the person is, or this node is
    /// about to stop.
    var droppedLetters = 0
}

/// Totals of all rooms.
public struct RoomFigures: Equatable, Sendable {
    /// The number of people in rooms. A person is counted once per device.
    public var people = 0
    /// The number of people waiting until a host admits them. A person is counted once per device.
    public var waiting = 0
    /// The number of requests to join since the server started, keyed by outcome: `joined`, `waiting`, or an error
    /// code.
    public var joins: [String: Int] = [:]

    public init() {}
}

/// The requests that were refused because a session or the server had reached its bandwidth limit, counted since the
/// server started.
public struct BandwidthRefusals: Equatable, Sendable {
    /// The number of refused requests to publish streams with video.
    public var streams = 0
    /// The number of refused requests to subscribe to video.
    public var subscriptions = 0
    /// The number of refused offers for new peer connections.
    public var connections = 0

    public init() {}
}

/// The hub's settings: rules, keys and ICE servers.
public struct HubSettings: Equatable, Sendable {
    public var rules: Rules
    public var projects: Projects
    public var ice: ICEProvision
    public var version: String
    /// The public key for Web Push; `nil` if push is not available.
    public var vapidKey: String?
    /// This life of the node; nil without a cluster. It cannot change while the hub exists.
    public var tag: NodeTag?

    public init(
        rules: Rules, project: Project, ice: ICEProvision = ICEProvision(), version: String = "0",
        vapidKey: String? = nil, tag: NodeTag? = nil
    ) {
        self.init(
            rules: rules, projects: Projects(main: project), ice: ice, version: version, vapidKey: vapidKey, tag: tag)
    }

    public init(
        rules: Rules, projects: Projects, ice: ICEProvision = ICEProvision(), version: String = "0",
        vapidKey: String? = nil, tag: NodeTag? = nil
    ) {
        self.rules = rules
        self.projects = projects
        self.ice = ice
        self.version = version
        self.vapidKey = vapidKey
        self.tag = tag
    }

    /// The main project.
    public var project: Project {
        get { projects.main }
        set { projects.main = newValue }
    }
}

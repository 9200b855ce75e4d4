/// Decides which places this life has: claims them in Redis, finds who has others, and keeps what it has when Redis forgets.
///
/// Invariants: no two lives that may act have one place. For each epoch, Redis has the claims of all lives that may act before anybody
/// claims a place under it. So a place is claimed only if
///
/// - this node acts,
/// - it is connected to the Redis of the epoch, and has entered all its places there,
/// - each life that has ever registered has registered under the epoch, or has been fenced and has ended,
/// - the place's ``PlaceKey/origin``, if it has one, has ended. Until then it has the place, and Redis is not asked.
///
/// A view of the ledger may be old: under a newer epoch nobody claims before this life has registered, and with that it stops using
/// the older one.
public struct PlaceRegistry: Sendable {
    /// What happened.
    public enum Input: Hashable, Sendable {
        /// This node wants the place, for a state machine that it is about to create.
        case claim(PlaceKey)
        /// This node wants to know who has the place.
        case find(PlaceKey)
        /// The state machine has ended, or the node no longer waits for the answer.
        case release(PlaceKey)
        /// The connection to Redis was made. `store` identifies what that Redis remembers, as in ``Epoch/store``. Answers of an earlier
        /// connection are no longer passed on.
        case connected(store: String)
        /// The connection to Redis was lost, and with it all answers.
        case disconnected
        /// The answer to the command with this number.
        case replied(UInt64, PlaceReply)
        /// The command with this number failed, or was not answered in time. It may have been carried out.
        case failed(UInt64)
        /// ``Lives`` has a new view.
        case looked
        /// The answer to ``Ledger/register(_:under:)``; false if it failed too.
        case noted(Epoch, Bool)
    }

    /// What the shell has to do.
    public enum Effect: Hashable, Sendable {
        /// Send this command to Redis, on the connection that was made last, in order.
        case send(PlaceCommand, number: UInt64)
        /// Call ``Ledger/beginEpoch(of:)``.
        case beginEpoch(store: String)
        /// Call ``Ledger/register(_:under:)`` with this life.
        case note(Epoch)
        /// The answer to `claim` or `find`.
        case answer(PlaceKey, Answer)
        /// Another life has a place that this one had. Give the state machine up, and send its clients there. No release is needed.
        case lost(PlaceKey, to: NodeTag)
    }

    /// The answer to a question about a place.
    public enum Answer: Hashable, Sendable {
        /// The place is this node's.
        case claimed
        /// This life has the place.
        case at(NodeTag)
        /// No life has the place.
        case nowhere
        /// Too many questions wait. Ask again later.
        case refused
    }

    struct Question: Sendable {
        enum Phase: Sendable {
            case waiting
            case asked(UInt64)
            /// The holder is fenced, but its places are not void yet, or this node has not heard of it.
            case blocked(by: NodeTag, heard: Instant)
            /// The command failed. The next look tries again.
            case paused
        }

        var claims: Bool
        var phase = Phase.waiting
        var claim: PlaceClaim?
        var void: [NodeTag] = []
    }

    /// The places that have to be entered in the Redis of a new epoch.
    struct Entering: Sendable {
        var left: [PlaceKey]
        /// Lives that have ended and still had places there.
        var void: [NodeTag] = []
        /// The open command.
        var number: UInt64?
        /// Whether the next step waits for the next look.
        var isPaused = false
    }

    /// How far this life has registered under the current epoch.
    enum Registration: Sendable {
        case none
        case entering(Epoch, Entering)
        /// All places are entered. Waits for the ledger's answer, or for the next look to ask it again.
        case noting(Epoch, isPaused: Bool)
        case noted(Epoch, at: Instant)
    }

    enum Command: Sendable {
        case question(PlaceKey)
        case release(PlaceKey, PlaceClaim)
        case entries([PlaceKey])
    }

    /// Questions that may wait while Redis is away. Each is some hundred bytes.
    static let maxQuestions = 100_000
    /// Places in one command, so that Redis is not blocked for more than about a millisecond.
    public static let chunk = 500

    /// The life whose places these are.
    public let tag: NodeTag
    /// The places that this life has.
    public private(set) var held: [PlaceKey: PlaceClaim] = [:]
    /// How many of them are of each kind. Kinds may be missing.
    public private(set) var heldCounts: [PlaceKey.Kind: Int] = [:]
    var store: String?
    var registration = Registration.none
    var questions: [PlaceKey: Question] = [:]
    var commands: [UInt64: Command] = [:]
    var releasing: [PlaceKey: PlaceClaim] = [:]
    /// Places whose questions can be sent, and those that wait for a look. They may contain some that are no longer asked about.
    var ready: [PlaceKey] = []
    var parked: [PlaceKey] = []
    private var wantsEpoch = false
    /// From when a view proves that this life is known as one that may have places: a failover could lose its first registration, and
    /// then nobody would wait for it.
    private var trusted: Instant?
    private var lastClaim: UInt64 = 0
    var lastNumber: UInt64 = 0

    /// Creates the registry of a life that has just begun, and so has no places.
    public init(of tag: NodeTag) { self.tag = tag }

    /// Whether this life has registered under any epoch. After that it can accept clients: while Redis is away, those that need a new
    /// place wait.
    public private(set) var hasRegistered = false

    /// How many questions wait for an answer.
    public var questionCount: Int { questions.count }

    /// Handles an input.
    ///
    /// - Parameter acting: whether the lease of this life is valid. A frozen node claims nothing.
    public mutating func handle(_ input: Input, lives: Lives, acting: Bool, at now: Instant) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .claim(let key): effects = ask(key, claims: true, lives: lives, at: now)
        case .find(let key): effects = ask(key, claims: false, lives: lives, at: now)
        case .release(let key): effects = release(key)
        case .connected(let store): effects = connect(store)
        case .disconnected: disconnect()
        case .replied(let number, let reply): effects = replied(number, reply, lives: lives, at: now)
        case .failed(let number): fail(number)
        case .looked: effects = look(lives: lives, at: now)
        case .noted(let epoch, let isNoted): noted(epoch, isNoted, at: now)
        }
        return effects + advance(lives: lives, acting: acting, at: now)
    }

    // MARK: Questions

    private mutating func ask(_ key: PlaceKey, claims: Bool, lives: Lives, at now: Instant) -> [Effect] {
        if held[key] != nil { return [.answer(key, claims ? .claimed : .at(tag))] }
        if let question = questions[key] {
            questions[key]?.claims = question.claims || claims
            return []
        }
        guard questions.count < Self.maxQuestions else { return [.answer(key, .refused)] }
        questions[key] = Question(claims: claims)
        // The ledger alone says whether the origin has the place.
        if let origin = key.origin { return resolve(key, holder: origin, heard: now, lives: lives) }
        makeReady(key)
        return []
    }

    private mutating func release(_ key: PlaceKey) -> [Effect] {
        let claim = giveUp(key) ?? questions[key]?.claim
        if let question = questions.removeValue(forKey: key), case .asked(let number) = question.phase {
            commands[number] = nil
        }
        guard let claim else { return [] }
        releasing[key] = claim
        guard store != nil else { return [] }
        return [send(.release(key, claim), as: .release(key, claim))]
    }

    // MARK: Places of this life

    /// Notes that this life has a place, by this claim.
    mutating func hold(_ key: PlaceKey, by claim: PlaceClaim) {
        if held.updateValue(claim, forKey: key) == nil { heldCounts[key.kind, default: 0] += 1 }
    }

    /// Notes that this life no longer has a place. Returns the claim by which it had it; nil if it did not.
    @discardableResult mutating func giveUp(_ key: PlaceKey) -> PlaceClaim? {
        guard let claim = held.removeValue(forKey: key) else { return nil }
        heldCounts[key.kind, default: 0] -= 1
        return claim
    }

    // MARK: Redis

    private mutating func connect(_ store: String) -> [Effect] {
        disconnect()
        (self.store, wantsEpoch) = (store, true)
        return releasing.sorted { $0.key.description < $1.key.description }
            .map { send(.release($0.key, $0.value), as: .release($0.key, $0.value)) }
    }

    private mutating func disconnect() {
        store = nil
        // In the order in which the commands were sent, so that tests repeat.
        for number in commands.keys.sorted() {
            guard case .question(let key) = commands[number] else { continue }
            makeReady(key)
        }
        commands = [:]
        if case .entering(let epoch, var entering) = registration {
            (entering.number, entering.isPaused) = (nil, false)
            registration = .entering(epoch, entering)
        }
    }

    private mutating func fail(_ number: UInt64) {
        switch commands.removeValue(forKey: number) {
        case .question(let key): park(key, .paused)
        case .entries: pauseEntering()
        case .release(let key, let claim):
            // The next look sends it again.
            if releasing[key] == claim { parked.append(key) }
        case nil: break
        }
    }

    private mutating func pauseEntering() {
        guard case .entering(let epoch, var entering) = registration else { return }
        (entering.number, entering.isPaused) = (nil, true)
        registration = .entering(epoch, entering)
    }

    /// Sends the question as soon as places can be claimed.
    mutating func makeReady(_ key: PlaceKey) {
        guard questions[key] != nil else { return }
        questions[key]?.phase = .waiting
        // Places that are no longer asked about must not pile up while Redis is away.
        if ready.count > 2 * questions.count + 64 { ready.removeAll { questions[$0] == nil } }
        ready.append(key)
    }

    mutating func park(_ key: PlaceKey, _ phase: Question.Phase) {
        guard questions[key] != nil else { return }
        questions[key]?.phase = phase
        parked.append(key)
    }

    mutating func nextClaim() -> PlaceClaim {
        lastClaim += 1
        return PlaceClaim(tag: tag, number: lastClaim)
    }

    mutating func send(_ command: PlaceCommand, as kind: Command) -> Effect {
        lastNumber += 1
        commands[lastNumber] = kind
        return .send(command, number: lastNumber)
    }

    // MARK: The ledger

    private mutating func look(lives: Lives, at now: Instant) -> [Effect] {
        wantsEpoch = true
        switch registration {
        case .entering(let epoch, var entering):
            entering.isPaused = false
            registration = .entering(epoch, entering)
        case .noting(let epoch, isPaused: true): registration = .noting(epoch, isPaused: false)
        case .noted(let epoch, let at): noteAgain(epoch, noted: at, lives: lives)
        case .none, .noting: break
        }
        return unpark(lives: lives)
    }

    /// A failover of the ledger may have lost that this life has registered.
    private mutating func noteAgain(_ epoch: Epoch, noted: Instant, lives: Lives) {
        guard let (view, requested) = lives.view, requested >= noted, view.epoch == epoch,
            let row = view.lives.first(where: { $0.tag == tag }), row.epoch != epoch.number
        else { return }
        registration = .noting(epoch, isPaused: false)
    }

    private mutating func noted(_ epoch: Epoch, _ isNoted: Bool, at now: Instant) {
        guard case .noting(let current, _) = registration, current == epoch else { return }
        if isNoted { hasRegistered = true }
        registration = isNoted ? .noted(epoch, at: now) : .noting(epoch, isPaused: true)
        // 2 %, because the ledger's clock may be slower.
        if isNoted, trusted == nil { trusted = now + Terms.settling * 51 / 50 }
    }

    // MARK: What can be done now

    private mutating func advance(lives: Lives, acting: Bool, at now: Instant) -> [Effect] {
        guard let store, let view = lives.view?.view else { return [] }
        guard let epoch = view.epoch, epoch.store == store else {
            guard wantsEpoch else { return [] }
            wantsEpoch = false
            return [.beginEpoch(store: store)]
        }
        var effects = register(under: epoch)
        guard acting, isOpen(epoch, view: view, lives: lives, at: now), !ready.isEmpty else { return effects }
        for key in ready {
            guard case .waiting? = questions[key]?.phase else { continue }
            effects.append(sendQuestion(key, epoch: epoch))
        }
        ready = []
        return effects
    }

    /// Whether a place can be claimed now. Until then, questions wait.
    ///
    /// - Parameter acting: whether the lease of this life is valid.
    public func admitsClaims(lives: Lives, acting: Bool, at now: Instant) -> Bool {
        guard acting, let view = lives.view?.view, let epoch = view.epoch, epoch.store == store else { return false }
        return isOpen(epoch, view: view, lives: lives, at: now)
    }

    /// Whether places can be claimed under this epoch.
    private func isOpen(_ epoch: Epoch, view: LedgerView, lives: Lives, at now: Instant) -> Bool {
        guard case .noted(epoch, _) = registration, view.epochAge >= Terms.settling,
            let requested = lives.view?.requested,
            let trusted, requested >= trusted, view.lives.contains(where: { $0.tag == tag && $0.epoch == epoch.number })
        else { return false }
        return view.lives.allSatisfy { life in
            life.isRegistered(under: epoch) || !life.isUnfenced && lives.standing(of: life.tag, heard: now) == .ended
        }
    }

    private mutating func sendQuestion(_ key: PlaceKey, epoch: Epoch) -> Effect {
        guard let question = questions[key], question.claims else {
            let effect = send(.find(key, epoch: epoch.number), as: .question(key))
            questions[key]?.phase = .asked(lastNumber)
            return effect
        }
        let claim = question.claim ?? nextClaim()
        let effect = send(.claim(key, claim, epoch: epoch.number, void: question.void), as: .question(key))
        questions[key]?.claim = claim
        questions[key]?.phase = .asked(lastNumber)
        return effect
    }
}

import Cluster
import Wire

/// Where the machines are that exist once in the cluster, as far as this node has to know.
///
/// Keeps which places this node has claimed, and the letters that wait until the registry has said where their machine is. What
/// is on other nodes is not remembered: the next letter asks again, so nothing here can be out of date.
/// Invariants: letters to one machine keep their order. A machine is here only if its place is. At most one question about a
/// place is open.
struct Places: Sendable {
    /// A letter that waits for its machine's place.
    struct Waiting: Sendable {
        var letter: Letter
        /// Whether the machine comes into being here if it is nowhere.
        var claims: Bool
        /// If the letter is the arrival of a client that asked for a certain node, that node's name; otherwise nil.
        var at: String?
    }

    /// A place about which the registry is asked, or will be asked again.
    private struct Question: Sendable {
        let key: PlaceKey
        var waiting: [Waiting] = []
        /// When to ask again; nil while a question is open.
        var againAt: Timestamp?
        /// When clients that asked for a certain node stop waiting for another node to release their person.
        var until: Timestamp?
        /// The life that had the place when this node asked first; nil until it has heard.
        var firstHolder: NodeTag?
        /// Whether another life has got the place since.
        var hasMoved = false
        /// Whether only letters that can be posted wait, until the registry answers again.
        var isPostponed: Bool { againAt != nil && until == nil }

        /// Adds a letter to those that wait. It replaces an older one that says the same about the same contact.
        ///
        /// - Returns: false if too many letters wait.
        mutating func add(_ new: Waiting, rules: Rules) -> Bool {
            if new.letter.travels {
                if let old = waiting.firstIndex(where: { new.letter.replaces($0.letter) }) {
                    waiting.remove(at: old)
                } else if waiting.count(where: \.letter.travels) >= Places.maxTraveling(rules) {
                    return false
                }
            }
            guard waiting.count < Places.maxWaiting else { return false }
            waiting.append(new)
            return true
        }
    }

    /// What to do with a letter.
    enum Verdict: Equatable {
        /// Deliver it: the machine's place is here.
        case here
        /// The letter waits. Ask the registry about this place, or nothing if it has been asked.
        case waits(asking: PlaceKey?)
        /// Too many letters wait already.
        case crowded
    }

    /// Maximum number of letters that wait for one place. A large room may open while the registry is slow.
    private static let maxWaiting = 20_000
    /// Maximum number of letters that can be posted and wait for one place, for example while Redis is away. Only the person's
    /// contacts send such letters. There are three kinds, and one of each kind waits for each contact (`Letter.replaces`). A few missed
    /// calls can be added to these.
    private static func maxTraveling(_ rules: Rules) -> Int { 3 * rules.maxContacts }
    /// The pause before the registry is asked again for letters that can be posted.
    private static let pause = Duration.seconds(2)
    /// Maximum number of places about which questions are open. Each is a few hundred bytes with its letters.
    private static let maxQuestions = 100_000
    /// How long clients wait after the node that they asked for has begun another life. HAProxy checks each second, and sends
    /// clients there after two good checks (deploy/haproxy.cfg). Clients that are sent earlier come back, and wait for the end of
    /// that life.
    private static let returnWait = Duration.seconds(2)

    let tag: NodeTag
    private var questions: [PlacedMachine: Question] = [:]
    private var here: [PlacedMachine: PlaceKey] = [:]
    private var byKey: [PlaceKey: PlacedMachine] = [:]
    /// When to ask again about places, in no particular order. Empty, unless Redis is away or a node was lost.
    private var again: Set<PlacedMachine> = []
    /// Not later than the earliest time in `again`, so that each input need not search all of them. An early wake-up is harmless.
    private var earliestAgain: Timestamp?
    /// When the hall's place is released because nobody waits here; nil while a person waits, or if the place is not here.
    var hallUntil: Timestamp?
    /// What an operator has requested of this node: `serving`, `draining` or `drained`.
    private(set) var condition = NodeCondition.serving
    /// The clients that asked for this node while it drains, and until when they may be idle.
    private var newcomers: [ConnectionID: Timestamp] = [:]
    /// The time of the next wake-up that was scheduled and has not happened yet; nil if there is none.
    private var scheduled: Timestamp?

    init(tag: NodeTag) { self.tag = tag }

    func isHere(_ machine: PlacedMachine) -> Bool { here[machine] != nil }
    func isAsked(_ machine: PlacedMachine) -> Bool { questions[machine] != nil }
    func key(of machine: PlacedMachine) -> PlaceKey? { here[machine] }
    func machine(of key: PlaceKey) -> PlacedMachine? { byKey[key] }
    var claimed: [PlacedMachine: PlaceKey] { here }
    var waitingCount: Int { questions.values.reduce(0) { $0 + $1.waiting.count } }

    // MARK: Draining

    /// Whether this node is about to stop, so that it claims no more places. While it is `draining`, it still claims the places of people
    /// whose clients ask for it: they were redirected to a room, session or call here, or could not resume.
    var isDraining: Bool { condition != .serving }

    mutating func change(to condition: NodeCondition) {
        self.condition = condition
        if !isDraining { newcomers = [:] }
    }

    private func admits(_ waiting: Waiting) -> Bool {
        switch condition {
        case .draining: waiting.at == tag.nodeName
        case .drained: false
        default: true
        }
    }

    /// Whether this node should claim the machine's place: a waiting letter needs it, and this node may claim places for that letter.
    func claims(_ machine: PlacedMachine) -> Bool {
        questions[machine]?.waiting.contains { $0.claims && admits($0) } ?? false
    }

    /// Notes that a client has connected.
    ///
    /// - Parameters:
    ///   - name: the node that the client asked for; nil if it asked for none.
    ///   - until: when the client must be in a room, session, chat or call, if this node drains.
    mutating func arrived(_ client: ConnectionID, at name: String?, until: Timestamp) {
        if condition == .draining, name == tag.nodeName { newcomers[client] = until }
    }

    /// Returns the clients that may still be idle, although this node drains.
    mutating func idleNewcomers(now: Timestamp) -> Set<ConnectionID> {
        newcomers = newcomers.filter { $0.value > now }
        return Set(newcomers.keys)
    }

    // MARK: Letters

    /// Decides what to do with a letter to a machine that does not exist yet.
    ///
    /// - Parameter key: the machine's place.
    mutating func admit(
        _ waiting: Waiting, to machine: PlacedMachine, _ key: @autoclosure () -> PlaceKey, rules: Rules
    )
        -> Verdict
    {
        if here[machine] != nil { return .here }
        if let isAdded = questions[machine]?.add(waiting, rules: rules) {
            guard isAdded else { return .crowded }
            // A client does not wait until postponed letters are due.
            guard waiting.claims, questions[machine]?.isPostponed == true else { return .waits(asking: nil) }
            questions[machine]?.againAt = nil
            again.remove(machine)
            return .waits(asking: questions[machine]?.key)
        }
        guard questions.count < Self.maxQuestions else { return .crowded }
        let key = key()
        questions[machine] = Question(key: key, waiting: [waiting])
        byKey[key] = machine
        return .waits(asking: key)
    }

    // MARK: Answers

    /// The place is now here. Returns the letters that waited; nil if nothing waits for this place.
    mutating func claim(_ machine: PlacedMachine) -> [Waiting]? {
        guard let question = remove(machine) else { return nil }
        here[machine] = question.key
        byKey[question.key] = machine
        return question.waiting
    }

    /// Stops asking about this place. Returns the letters that waited.
    mutating func giveUp(_ machine: PlacedMachine) -> [Waiting] { remove(machine)?.waiting ?? [] }

    /// The registry does not answer. Returns the letters that must be answered now. Those that can be posted wait, and the registry is
    /// asked again after a pause.
    mutating func postpone(_ machine: PlacedMachine, now: Timestamp) -> [Waiting] {
        guard let question = questions[machine] else { return [] }
        let staying = question.waiting.filter { $0.letter.travels }
        guard !staying.isEmpty else { return giveUp(machine) }
        questions[machine]?.waiting = staying
        questions[machine]?.until = nil
        questions[machine]?.firstHolder = nil
        questions[machine]?.hasMoved = false
        askAgain(machine, at: now + Self.pause)
        return question.waiting.filter { !$0.letter.travels }
    }

    private mutating func remove(_ machine: PlacedMachine) -> Question? {
        guard let question = questions.removeValue(forKey: machine) else { return nil }
        byKey[question.key] = nil
        again.remove(machine)
        return question
    }

    /// The machine is nowhere. Returns the letters that do not claim it. If others do, they wait on, and `asks` is the place
    /// to claim.
    mutating func unplaced(_ machine: PlacedMachine) -> (letters: [Waiting], asks: PlaceKey?) {
        guard let question = questions[machine] else { return ([], nil) }
        // Letters keep their order: those after the first that claims wait for its machine.
        let first = question.waiting.firstIndex(where: \.claims) ?? question.waiting.count
        let letters = Array(question.waiting[..<first])
        guard first < question.waiting.count else {
            _ = remove(machine)
            return (letters, nil)
        }
        questions[machine]?.waiting.removeFirst(first)
        return (letters, question.key)
    }

    /// The machine is on another node. Returns true if this is asked again after a pause: clients wait whose person that node
    /// should release soon. Either they were redirected here, and the other node does not know yet that they have left. Or they
    /// asked for a node that did not answer, and it takes some seconds until it is known that its life is over.
    ///
    /// If another life gets the place of a lost node meanwhile, it continues something of the person, such as a call. So the
    /// clients are sent to it. If it is the next life of the node that they asked for, the load balancer first has to notice
    /// that the node serves again.
    mutating func waitsOn(_ machine: PlacedMachine, heldBy holder: NodeTag, rules: Rules, now: Timestamp) -> Bool {
        guard let question = questions[machine] else { return false }
        let names = question.waiting.compactMap(\.at)
        guard !names.isEmpty else { return false }
        let isOfLostNode = names.contains { $0 != tag.nodeName }
        var until = question.until ?? now + (isOfLostNode ? rules.lostNodeWait : rules.placeWait)
        if isOfLostNode, let first = question.firstHolder, first != holder {
            questions[machine]?.hasMoved = true
            until = min(until, names.contains(holder.nodeName) ? now + Self.returnWait : now)
        }
        guard now < until else { return false }
        questions[machine]?.firstHolder = question.firstHolder ?? holder
        questions[machine]?.until = until
        askAgain(machine, at: min(until, now + rules.placeRetry))
        return true
    }

    /// Whether another life has got this place since this node asked first.
    func hasMoved(_ machine: PlacedMachine) -> Bool { questions[machine]?.hasMoved ?? false }

    /// Asks again at once about all places that would be asked about later, because a node was lost.
    mutating func hurry(now: Timestamp) { for machine in again { askAgain(machine, at: now) } }

    private mutating func askAgain(_ machine: PlacedMachine, at time: Timestamp) {
        questions[machine]?.againAt = time
        again.insert(machine)
        earliestAgain = earliestAgain.map { min($0, time) } ?? time
    }

    /// Returns the places to ask about now because the pause is over, in a fixed order, and whether to claim them.
    mutating func takeDue(now: Timestamp) -> [(machine: PlacedMachine, key: PlaceKey, claims: Bool)] {
        let due = again.filter { questions[$0]?.againAt.map { $0 <= now } ?? false }
        for machine in due {
            questions[machine]?.againAt = nil
            again.remove(machine)
        }
        earliestAgain = again.compactMap { questions[$0]?.againAt }.min()
        return due.compactMap { machine in
            questions[machine].map { (machine, $0.key, claims(machine)) }
        }.sorted { $0.key.description < $1.key.description }
    }

    // MARK: Releasing

    /// The machine has ended. Returns the place to release; nil if the machine had none.
    mutating func release(_ machine: PlacedMachine) -> PlaceKey? {
        guard let key = here.removeValue(forKey: machine) else { return nil }
        byKey[key] = nil
        if machine == .hall { hallUntil = nil }
        return key
    }

    // MARK: Time

    private var nextTimeout: Timestamp? {
        [again.isEmpty ? nil : earliestAgain, hallUntil].compactMap(\.self).min()
    }

    /// Returns when to wake up; nil if nothing is due or a wake-up is already scheduled early enough.
    mutating func wakeUp() -> Timestamp? {
        guard !again.isEmpty || hallUntil != nil, let next = nextTimeout, scheduled.map({ next < $0 }) ?? true else {
            return nil
        }
        scheduled = next
        return next
    }

    /// Records that a wake-up happened. Returns false if it is outdated.
    mutating func woke(at moment: Timestamp) -> Bool {
        guard scheduled == moment else { return false }
        scheduled = nil
        return true
    }
}

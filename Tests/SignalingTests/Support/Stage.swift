import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// Storage that several stages share.
final class Shelf {
    var archive = Archive()
}

/// A hub in simulated time. The stage replaces the server around the hub: it numbers sockets, answers a close with
/// `closed`, and fires timers when they are due.
///
/// In every test, the stage checks that messages to a client are numbered without gaps, that every request is answered
/// exactly once, and that every command to the media plane is valid after the previous ones.
final class Stage {
    static let apiKey = "45000001"
    static let secret = "00112233445566778899aabbccddeeff0011223344556677"

    let project: Project
    let rules: Rules
    private(set) var hub: Hub
    private(set) var now = Timestamp(milliseconds: 1_790_000_000_000)
    /// How far the wall clock is ahead of the clock of the timers.
    var wallOffset: Duration = .zero
    /// Whether the wall clock is known to be right.
    var isClockConfirmed = true
    var generator: SeededGenerator
    /// Changes sent to storage so far.
    private(set) var changes: [Change] = []
    /// The archives of which the recorder has a folder.
    var foldersOfRecorder: Set<ArchiveID> = []
    /// The storage that applies the changes. The nodes of a cluster share it.
    var archive: Archive {
        get { shelf.archive }
        _modify { yield &shelf.archive }
    }
    private let shelf: Shelf
    /// Push notifications sent so far.
    private(set) var pushes: [(identity: IdentityID, notice: PushNotice)] = []
    /// The effects of the most recent event, in order.
    private(set) var effects: [Effect] = []
    /// The media commands of the most recent event. `ledger` is the resulting state of the media plane.
    private(set) var media: [MediaCommand] = []
    private(set) var ledger = MediaLedger()
    /// Commands for the recorder that no test has taken yet.
    private(set) var recorder: [RecordingCommand] = []
    /// Commands for the broadcaster that no test has taken yet.
    private(set) var broadcaster: [BroadcastCommand] = []
    /// The archives that were to be composed.
    private(set) var composer: [ArchiveID] = []
    /// The archives that may be composed while they are recorded.
    private(set) var composedAhead: [ArchiveID] = []
    /// Answers to HTTP requests.
    private(set) var replies: [SocketID: [ResourceReply]] = [:]
    /// Answers to requests of operators.
    private(set) var answers: [SocketID: [OperatorReply]] = [:]
    /// Sockets that the hub has closed, including WHIP resources.
    private(set) var overResources: Set<SocketID> = []
    private var guests: [SocketID: Guest] = [:]
    private var legacyGuests: [SocketID: LegacyGuest] = [:]
    private var perchGuests: [SocketID: PerchGuest] = [:]
    private var lastSocket: UInt64 = 0
    /// What events may cause to be stored.
    var permit = StoragePermit.all
    /// If true, results from storage are held until `hearStorage`.
    var isStorageSlow = false
    private var unheard: [(Question, Finding)] = []
    /// Gets the questions to the registry of a cluster, the released places and the letters to other nodes, in order.
    var carryOutPlace: (Effect) -> Void = { _ in }
    /// Gets the effects of each event and each timer, in order.
    var inspect: ([Effect]) -> Void = { _ in }

    init(
        seed: UInt64 = 1, ice: ICEProvision = ICEProvision(), tag: NodeTag? = nil, shelf: Shelf = Shelf(),
        _ adjust: (inout Rules) -> Void = { _ in }
    ) {
        self.shelf = shelf
        var rules = Rules()
        adjust(&rules)
        (project, self.rules) = (Self.project, rules)
        generator = SeededGenerator(seed: seed)
        ledger.tag = tag
        hub = Hub(
            hubSettings: HubSettings(rules: rules, project: project, ice: ice, version: "test", tag: tag),
            generator: SeededGenerator(seed: seed &+ 1)
        )
    }

    // MARK: Time

    private var moment: Moment { Moment(now: now, wall: now + wallOffset, isConfirmed: isClockConfirmed) }

    /// Passes time, and fires every timer at the time when it is due.
    func pass(_ duration: Duration) {
        let end = now + duration
        media = []
        while let next = hub.nextTimeout, next <= end {
            now = max(now, next)
            carryOut(hub.handleTimeout(at: moment))
        }
        now = end
    }

    // MARK: Events

    func handle(_ input: Input) {
        media = []
        carryOut(hub.handle(input, at: moment, permit: permit))
        var all = effects
        // Some work is scheduled on a timer that is due immediately.
        while let next = hub.nextTimeout, next <= now {
            carryOut(hub.handleTimeout(at: moment))
            all += effects
        }
        effects = all
    }

    private func carryOut(_ effects: [Effect]) {
        self.effects = effects
        inspect(effects)
        var closing: [(SocketID, CloseCode)] = []
        var questions: [Question] = []
        for effect in effects {
            switch effect {
            case .persist(let change):
                changes.append(change)
                archive.apply(change)
                if case .callPlaced(let call) = change { archive.callHomes[call.id] = hub.hubSettings.tag }
            case .query(let question): questions.append(question)
            case .push(let identity, let notice): pushes.append((identity, notice))
            case .media(let command): note(command)
            case .deleteFile, .relay: break
            case .recording(let command): recorder.append(command)
            case .broadcast(let command): broadcaster.append(command)
            case .composeAhead(let archive): composedAhead.append(archive.id)
            case .compose(let archive): composer.append(archive.id)
            case .reach, .releasePlace, .post: carryOutPlace(effect)
            case .reply(let socket, let reply): replies[socket, default: []].append(reply)
            case .answer(let socket, let reply): answers[socket, default: []].append(reply)
            case .transmit(let socket, let bytes):
                guests[socket]?.receive(bytes, on: socket)
                legacyGuests[socket]?.receive(bytes)
                perchGuests[socket]?.receive(bytes)
            case .close(let socket, let code, _):
                guests[socket]?.closed(code, on: socket)
                legacyGuests[socket]?.isBooted = true
                perchGuests[socket]?.closeCode = code
                overResources.insert(socket)
                closing.append((socket, code))
            }
        }
        for (socket, code) in closing
        where forget(socket) {
            carryOutMore(hub.handle(.closed(socket, leaving: code.isLeaving), at: moment))
        }
        for question in questions {
            let finding = archive.answer(question)
            if isStorageSlow {
                unheard.append((question, finding))
            } else {
                carryOutMore(hub.handle(.answered(question, finding), at: moment))
            }
        }
        for guest in Set(guests.values) where guest.owesAcknowledgement { guest.acknowledge() }
    }

    /// Delivers the results that were held while storage was slow.
    func hearStorage() {
        isStorageSlow = false
        let findings = unheard
        unheard = []
        for (question, finding) in findings { handle(.answered(question, finding)) }
    }

    private func note(_ command: MediaCommand) {
        media.append(command)
        if let fault = ledger.note(command) { Issue.record("the media plane: \(fault)") }
    }

    /// Prevents the effects of a close from replacing those of the event itself.
    private func carryOutMore(_ more: [Effect]) {
        let first = effects
        carryOut(more)
        effects = first + more
    }

    // MARK: Sockets

    func connect(_ guest: Guest) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        guests[socket] = guest
        return socket
    }

    func resource() -> SocketID {
        lastSocket += 1
        return SocketID(rawValue: lastSocket)
    }

    /// Sends a request of an operator or application and returns the answer.
    @discardableResult func operate(_ action: OperatorRequest.Action) -> OperatorReply? {
        let socket = resource()
        handle(.operated(OperatorRequest(socket: socket, action)))
        if answers[socket]?.count != 1 { Issue.record("\(action) was answered with \(answers[socket] ?? [])") }
        return answers.removeValue(forKey: socket)?.first
    }

    /// Returns the commands for the broadcaster since the previous call.
    func takeBroadcast() -> [BroadcastCommand] {
        defer { broadcaster = [] }
        return broadcaster
    }

    /// Returns the commands for the recorder since the previous call.
    func takeRecorder() -> [RecordingCommand] {
        defer { recorder = [] }
        return recorder
    }

    /// Returns the answer to a request of an operator, once.
    func takeAnswer(_ socket: SocketID) -> OperatorReply? { answers.removeValue(forKey: socket)?.first }

    func connect(_ guest: LegacyGuest) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        legacyGuests[socket] = guest
        return socket
    }

    func disconnect(_ socket: SocketID, leaving: Bool) {
        if forget(socket) { handle(.closed(socket, leaving: leaving)) }
    }

    /// Returns false if no client has this socket.
    private func forget(_ socket: SocketID) -> Bool {
        guests.removeValue(forKey: socket) != nil || legacyGuests.removeValue(forKey: socket) != nil
            || perchGuests.removeValue(forKey: socket) != nil
    }

    func connect(_ guest: PerchGuest) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        perchGuests[socket] = guest
        return socket
    }

    /// Restarts the server: everything in memory is lost, all connections drop, and a new server starts with what was
    /// stored, after a pause.
    func restart(after pause: Duration = .zero) {
        now = now + pause
        for guest in Set(guests.values) { guest.lostServer() }
        (guests, legacyGuests, perchGuests) = ([:], [:], [:])
        hub = Hub(
            hubSettings: hub.hubSettings,
            generator: SeededGenerator(seed: UInt64.random(in: 0 ... .max, using: &generator))
        )
        (media, ledger) = ([], MediaLedger())
        for call in archive.openCalls.values.sorted(by: { $0.id < $1.id }) {
            handle(.restored(call, caller: archive.record(of: call.caller), callee: archive.record(of: call.callee)))
        }
        let unfinished = archive.archives.values.filter { $0.status.isRunning || $0.status == .stopped }
        for record in unfinished.sorted(by: { $0.id < $1.id }) {
            handle(.restoredArchive(record, hasFiles: foldersOfRecorder.contains(record.id)))
        }
        // Newest first, as the server does.
        let rooms = archive.rooms.values.sorted { ($1.createdAt, $1.id) < ($0.createdAt, $0.id) }
        for room in rooms { handle(.restoredRoom(room)) }
    }

    // MARK: Guests and sessions

    func identity() -> IdentityID { .random(using: &generator) }

    @discardableResult func arrive(
        _ identity: IdentityID? = nil, name: String? = nil, address: String = "", record: PersonRecord? = nil
    ) -> Guest {
        let guest = Guest(on: self, as: identity ?? self.identity(), name: name, address: address)
        guest.arrive(record: record)
        return guest
    }

    /// Returns a legacy client that has just received its session.
    func arriveLegacy(address: String = "") -> LegacyGuest {
        let guest = LegacyGuest(on: self)
        guest.arrive(address: address)
        return guest
    }

    func room(
        _ mode: MediaMode = .relayed, relayedOnly: Bool = false, archive: CompositionResolution? = nil
    ) -> SessionID {
        project.makeSessionID(
            mediaMode: mode, relayedOnly: relayedOnly, archive: archive, now: now, using: &generator)
    }

    func token(
        _ session: SessionID, _ role: Role = .publisher, data: String = "", match: MatchID? = nil,
        lifetime: Duration = .seconds(3600)
    ) -> String {
        project.makeSessionToken(
            SessionTokenClaims(session: session, role: role, data: data, match: match, lifetime: lifetime), now: now,
            using: &generator)
    }

    /// Returns two guests who have just been paired, with empty inboxes.
    func pair(_ first: Guest? = nil, _ second: Guest? = nil) -> (Guest, Guest, RouletteNotice.Matched) {
        let (first, second) = (first ?? arrive(), second ?? arrive())
        first.say(.roulette(.start(.init())))
        second.say(.roulette(.start(.init())))
        guard let matched = first.match else {
            Issue.record("the two were not paired")
            return (first, second, RouletteNotice.Matched())
        }
        first.take()
        second.take()
        return (first, second, matched)
    }
}

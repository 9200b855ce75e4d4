import Cluster
import CoreMetrics
import DequeModule
import Logging
import NIOCore
import Signaling
import Wire

/// Runs the hub on one event loop: feeds it inputs from the sockets, carries out its effects in order, and fires its timers.
///
/// It makes no decisions. Invariant: effects for clients that follow a `persist` are carried out only after the change
/// is committed or has failed. The hub continues during a commit: `CommitQueue` holds back the effects that depend on
/// the commit, and changes made in the meantime are committed together (group commit).
final class HubRunner {
    var hub: Hub
    let queryHandler: QueryHandler
    private let pushNotifier: (any PushNotifier)?
    /// The budgets of clients. Set by the gateway.
    weak var clientBudgets: (any ClientBudgets)?
    let clock: ServerClock
    let logger: Logger
    let metrics: GatewayMetrics
    let eventLoop: any EventLoop

    /// The store of the files in rooms. Set when the server starts. While it is nil, uploads and downloads fail.
    var roomFiles: RoomFileStore?
    /// Records sessions. Set when the server starts; nil if it does not record.
    var recorder: (any SessionRecorder)?
    /// Composes broadcasts. Set when the server starts; nil if it does not broadcast.
    var broadcaster: (any SessionBroadcaster)?
    /// Composes archives. Set when the server starts; nil if it does not compose.
    var composer: (any ArchiveComposer)?
    /// Records traces. Set when the server starts; nil if it does not trace.
    var traces: TraceRecorder?
    /// Where the machines of the cluster are. Set when the server starts; nil without a cluster.
    var places: (any MachinePlaces)?
    /// Posts letters to the other nodes of the cluster. Set when the server starts; nil without a cluster.
    var post: (any LetterPost)?
    /// The relays to the other nodes of the cluster. Set when the server starts; nil if this node has none.
    var relays: (any MediaRelays)?
    private let media: MediaPlane?
    private(set) var sockets = SocketTable()
    var inputs: Deque<Input> = []
    /// The number of inputs that were handled.
    private(set) var handledInputs: UInt64 = 0
    /// What to call when letters of other nodes were handled, and when their effects are carried out; in order.
    var receipts: Deque<Receipt> = []
    private var isPumping = false
    private var queue = CommitQueue()
    let writer: BatchWriter
    /// Functions to call when all transactions before a number have been committed or have failed.
    private var afterCommit: [(number: UInt64, body: () -> Void)] = []
    let laterTurns: LaterTurns
    private let flushes: PendingFlushes
    private var paused: [any PausedReader] = []
    /// Maximum number of uncommitted transactions. Above it, the sockets of people with uncommitted changes are not
    /// read, so a stalled disk cannot fill the memory.
    private static let maxUncommitted = 4096
    private static let maxHeldBytesOfAll = 64 << 20
    /// Maximum size of the messages that wait for one socket, in bytes. The same limit applies to a client that reads slowly.
    private let maxHeldBytes: Int
    /// Recent changes of devices' owners (the people to whom the devices' secrets belong), for detecting outdated
    /// lookups.
    private(set) var identityChanges = RecentChanges<IdentityID> { $0.summary.provenIdentity.map { [$0] } ?? [] }
    /// Recent changes to people's stored data, for detecting outdated lookups.
    private(set) var recordChanges = RecentChanges<IdentityID> { $0.summary.people }
    /// Recent changes to persistent rooms, for detecting outdated reads.
    private(set) var roomChanges = RecentChanges<RoomID> { $0.summary.room.map { [$0] } ?? [] }
    /// For each queued arrival, the identities that were looked up, and the numbers of the last changes before the
    /// lookup.
    private var lookups: [SocketID: (identities: [IdentityID], start: LookupStart)] = [:]
    /// For each queued claim of a person's place, the person whose record was read, and the numbers of the last changes before.
    var claimedRecords: [PlaceKey: (person: IdentityID, start: LookupStart)] = [:]
    var queries = QueryCounts()
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?

    init(
        hubSettings: HubSettings, storage: any Storage, media: MediaPlane?, pushNotifier: (any PushNotifier)? = nil,
        trouble: StorageTrouble, maxHeldBytes: Int, clock: ServerClock, logger: Logger, metrics: GatewayMetrics,
        eventLoop: any EventLoop
    ) {
        self.media = media
        self.pushNotifier = pushNotifier
        queryHandler = QueryHandler(storage: storage, pushNotifier: pushNotifier, logger: logger)
        hub = Hub(hubSettings: hubSettings, generator: SystemRandomNumberGenerator())
        self.clock = clock
        self.logger = logger
        self.metrics = metrics
        self.eventLoop = eventLoop
        laterTurns = LaterTurns(eventLoop: eventLoop)
        flushes = PendingFlushes(laterTurns: laterTurns)
        writer = BatchWriter(
            storage: storage, trouble: trouble, logger: logger, metrics: metrics, eventLoop: eventLoop)
        self.maxHeldBytes = maxHeldBytes
        flushes.flushOne = { [weak self] in self?.sockets[$0]?.flush() }
    }

    var hubSettings: HubSettings { hub.hubSettings }
    var now: Timestamp { clock.now }
    var wallNow: Timestamp { clock.wallNow }

    // MARK: Sockets

    func register(_ socket: any RunnerSocket) -> SocketID {
        eventLoop.preconditionInEventLoop()
        return sockets.add(socket)
    }

    /// Replaces a client's socket by another one, which keeps the id. The hub does not notice.
    func replace(_ id: SocketID, by socket: any RunnerSocket) { sockets.replace(id, by: socket) }

    /// Removes a closed socket and informs the hub. Does nothing if the socket was removed before.
    ///
    /// - Parameter leaving: True if the client left on purpose, false if the connection dropped.
    func unregister(_ id: SocketID, leaving: Bool) {
        guard sockets.remove(id) else { return }
        traces?.closed(id)
        submit(.closed(id, leaving: leaving))
    }

    /// Removes all sockets without reporting them closed: on shutdown, clients need no events about each other.
    func forgetSockets() {
        sockets.removeAll()
        traces?.closedAll()
    }

    var socketCount: Int { sockets.count }

    /// The number of sockets ever registered.
    var arrivals: UInt64 { sockets.added }

    // MARK: Inputs and effects

    func submit(_ input: Input) {
        eventLoop.preconditionInEventLoop()
        if !isFrozen || !holdsBack(input) { inputs.append(input) }
        pump()
    }

    /// Submits an arrival whose record was looked up.
    func submit(_ arrival: Arrival, lookupStart: LookupStart) {
        lookups[arrival.socket] = ([arrival.device, arrival.identity.id], lookupStart)
        submit(.arrived(arrival))
    }

    /// Returns whether the input is an arrival whose lookup is outdated, because an earlier input changed the device's
    /// identity. If so, closes the socket, so that the client reconnects. A record that was read for a claim is read again.
    private func isOutOfDate(_ input: Input) -> Bool {
        if case .claimed(let key, _) = input { return readsAgain(key) }
        guard case .arrived(let arrival) = input, let lookup = lookups.removeValue(forKey: arrival.socket),
            identityChanges.concern(lookup.identities, since: lookup.start.identities)
        else { return false }
        sockets[arrival.socket]?.close(.serviceRestart, "Your identity has changed. Reconnect.")
        return true
    }

    var lookupStart: LookupStart { LookupStart(identities: identityChanges.number, records: recordChanges.number) }

    /// Returns whether data of these people that was read since `start` may be outdated. If so, the caller must repeat
    /// the lookup, after the next commit.
    func isOutdated(_ people: [IdentityID], since start: LookupStart) -> Bool {
        identityChanges.concern(people, since: start.identities) || recordChanges.concern(people, since: start.records)
    }

    func pump() { run {} }

    private func timerFired() {
        timer = nil
        timerAt = nil
        run { handleTimers() }
    }

    /// Handles each due timer as a separate event, so that its changes are committed or fail independently.
    private func handleTimers() {
        while let effects = hub.handleNextTimeout(at: clock.moment) { carryOut(effects, from: .none) }
    }

    /// Calls `first` and handles all queued inputs. Does nothing if it is called while it is already running, because
    /// the running call handles the inputs. Flushing may close sockets and thereby queue more inputs, so this repeats
    /// until the queue is empty.
    private func run(_ first: () -> Void) {
        guard !isPumping, !freezesUnlessAllowed() else { return }
        isPumping = true
        first()
        repeat {
            while let input = inputs.popFirst() {
                handledInputs += 1
                handle(input)
            }
            flushes.flush()
        } while !inputs.isEmpty
        isPumping = false
        commit()
        giveReceipts()
        schedule()
    }

    // MARK: Freezing

    /// Whether the rules may act now: on a node of a cluster, whether its lease is valid. Asked before every run, because a
    /// process that was stopped for some time does not notice it.
    var mayAct: () -> Bool = { true }
    /// Inputs, timers and settled batches wait while this says so. Media and open sockets continue.
    var freeze = Freeze()
    var freezeTimer: Scheduled<Void>?
    /// A batch that storage has committed or refused while the rules were frozen.
    private(set) var unsettled: (batch: [[Change]], results: [StorageError?])?

    /// Handles what has waited, if the rules may act again.
    func thaw() {
        guard isFrozen, mayAct() else { return }
        endFreeze()
        if let (batch, results) = unsettled {
            unsettled = nil
            settle(batch, results)
        }
        run { handleTimers() }
        resumeReaders()
    }

    private func handle(_ input: Input) {
        guard !isOutOfDate(input) else { return }
        let origin = origin(of: input)
        traces?.received(input)
        let effects = hub.handle(input, at: clock.moment, permit: permit(for: input))
        traces?.caused(effects, by: input)
        // Set the socket's person before handling the effects: messages that are repeated after a resume must wait
        // for the same commits as before.
        if case .arrived(let arrival) = input, let person = hub.person(on: arrival.socket) {
            sockets.identify(arrival.socket, as: person)
        }
        carryOut(effects, from: origin, chargedTo: account(for: input))
    }

    /// Returns the account to charge for data stored because of a query's answer, even if the client is gone; nil for
    /// other inputs.
    private func account(for input: Input) -> AddressBudgets.Slot? {
        if case .answered(let question, _) = input { queries.slot(of: question.client) } else { nil }
    }

    private func permit(for input: Input) -> StoragePermit {
        guard case .message(let socket, let envelope) = input, envelope.message.mayStore else { return .all }
        return clientBudgets?.storagePermit(sockets[socket]?.slot) ?? .all
    }

    /// Returns the client and the request that caused the input, to which a storage failure is reported; `.none` if
    /// no request did.
    private func origin(of input: Input) -> CommitQueue.Origin {
        switch input {
        case .message(let socket, let envelope):
            CommitQueue.Origin(socket: socket, person: sockets.person(on: socket), request: envelope.seq)
        case .answered(let question, _):
            CommitQueue.Origin(socket: hub.socket(of: question.client), person: question.identity, request: question.re)
        case .operated(let request): CommitQueue.Origin(socket: request.socket)
        default: .none
        }
    }

    /// Carries out the effects of one event. Charges the bytes that they store, and holds back those that must wait
    /// for a commit.
    ///
    /// - Parameter account: the account to charge for stored bytes; nil for the account of the origin's socket.
    func carryOut(
        _ effects: [Effect], from origin: CommitQueue.Origin, chargedTo account: AddressBudgets.Slot? = nil
    ) {
        let effects = beginQueries(effects)
        var storedBytes = 0
        for effect in effects {
            switch effect {
            case .persist(let change):
                identityChanges.begin(change)
                recordChanges.begin(change)
                roomChanges.begin(change)
                let summary = change.summary
                if let counted = summary.counted { metrics.count(counted) }
                storedBytes += summary.storedBytes
            case .query(let question):
                if case .register(let registration) = question.query { storedBytes += StoredSize.of(registration) }
            default: break
            }
        }
        if storedBytes > 0, let slot = account ?? origin.socket.flatMap({ sockets[$0]?.slot }) {
            clientBudgets?.charge(storedBytes: storedBytes, to: slot)
        }
        for effect in queue.add(effects, from: origin, person: { sockets.person(on: $0) }) { carryOut(effect) }
        if !queue.isEmpty { closeSlowReaders(effects) }
    }

    /// Drops clients for which too many messages wait for a commit, as if they read too slowly. They can resume. For
    /// other clients with waiting messages, updates the count of queued bytes.
    private func closeSlowReaders(_ effects: [Effect]) {
        for socket in Set(effects.compactMap(\.socket)) where queue.heldBytes(for: socket) > 0 {
            if queue.heldBytes(for: socket) > maxHeldBytes {
                sockets[socket]?.drop()
            } else {
                sockets[socket]?.queueChanged()
            }
        }
    }

    /// Returns the size of the messages to this socket that wait for a commit, in bytes.
    func heldBytes(for socket: SocketID) -> Int { queue.heldBytes(for: socket) }

    /// Drops the messages that wait for this socket, which is about to be closed.
    func discardHeld(for socket: SocketID) { queue.discard([socket]) }

    func carryOut(_ effect: Effect) {
        switch effect {
        case .transmit(let id, let bytes):
            guard let socket = sockets[id] else { return }
            socket.write(bytes)
            flushes.add(id)
            traces?.transmitted(bytes, to: id)
            metrics.sent.increment()
        case .close(let id, let code, let reason):
            sockets[id]?.close(code, reason)
        case .reply(let id, let reply): sockets[id]?.reply(reply)
        case .answer(let id, let reply): sockets[id]?.answer(reply)
        case .deleteFile(let file): roomFiles?.delete(file)
        case .media(let command):
            media?.perform(command)
            relays?.note(command)
        case .recording(let command): recorder?.send(command)
        case .broadcast(let command): broadcaster?.send(command)
        case .composeAhead(let archive): composer?.composeAhead(archive)
        case .compose(let archive):
            guard let composer else { return inputs.append(.notComposed(archive.id)) }
            composer.compose(archive)
        case .query(let question): query(question)
        case .push(let identity, let notice): pushNotifier?.wake(identity, notice)
        case .reach(let key, let machine, let claims):
            guard let places else { return inputs.append(.placesUnavailable(key)) }
            places.reach(key, machine, claims: claims)
        case .releasePlace(let key): places?.release(key)
        case .post(let life, let letter): post?.post(letter, to: life)
        case .relay(let event, let life): relays?.receive(event, from: life)
        case .persist: assertionFailure("the commit queue collects changes")
        }
    }

    // MARK: Committing

    /// True if no change is waiting for storage or being written.
    var isSettled: Bool { queue.isEmpty }

    /// Calls `body` once all changes that are currently queued for storage have been committed or have failed, or
    /// immediately if none are queued.
    func afterCommit(_ body: @escaping () -> Void) {
        if queue.isEmpty { body() } else { afterCommit.append((queue.nextNumber, body)) }
    }

    private func commit() {
        guard let batch = queue.takeBatch() else { return }
        writer.write(batch) { self.settle(batch, $0) }
    }

    /// Ends a batch: carries out the effects that waited for it, handles failures, and continues everything else that
    /// waited for the commit.
    private func settle(_ batch: [[Change]], _ results: [StorageError?]) {
        guard !freezesUnlessAllowed() else { return unsettled = (batch, results) }
        identityChanges.settle(batch.joined())
        recordChanges.settle(batch.joined())
        roomChanges.settle(batch.joined())
        // Until the held effects are carried out, only queue new inputs. The effects of these inputs then cannot
        // overtake the held ones.
        isPumping = true
        let settled = queue.settle(results.map { $0 == nil })
        let lost = sockets(of: settled.failures)
        queue.discard(lost)
        let people = settled.failures.reduce(into: Set<IdentityID>()) { $0.formUnion($1.people) }
        for effect in settled.effects { carryOut(effect, unlessLost: lost, people) }
        for (failure, error) in zip(settled.failures, results.compactMap { $0 }) { fail(failure, error) }
        flushes.flush()
        isPumping = false
        // Handle due timers here: if commits follow each other without a pause, timers can run nowhere else.
        run { handleTimers() }
        // Call only the functions whose transactions have been settled. The others wait for a later batch.
        let waiting = afterCommit.filter { queue.isSettled(before: $0.number) }
        afterCommit.removeAll { queue.isSettled(before: $0.number) }
        for waiter in waiting { waiter.body() }
        resumeReaders()
    }

    // MARK: Reading

    /// Returns whether this socket should not be read, because the rules are frozen, because too many letters wait for Redis, or
    /// because too many changes wait for storage. In the last case, clients without uncommitted changes are still read.
    func isCongested(_ socket: SocketID) -> Bool {
        if isFrozen || post?.isCongested == true { return true }
        guard queue.count > Self.maxUncommitted || queue.heldBytes > Self.maxHeldBytesOfAll else { return false }
        return sockets.person(on: socket).map { queue.isUncommitted($0) } ?? false
    }

    /// Pauses a reader until the next batch is committed or has failed, until the rules may act again, or until letters have left.
    func pause(_ reader: any PausedReader) { paused.append(reader) }

    func resumeReaders() {
        let readers = paused
        paused = []
        for reader in readers { reader.resumeReading() }
    }

    /// Updates the gauges. Called once per scrape.
    func recordMetrics() {
        metrics.sockets.record(sockets.count)
        metrics.uncommitted.record(queue.count)
        metrics.waitingInputs.record(inputs.count + queries.total)
        metrics.record(hub)
        if let media { metrics.media.record(media.loopCounters) }
        if let recorder { metrics.recordings.record(recorder.counters) }
        if let broadcaster { metrics.broadcasting.record(broadcaster.figures) }
    }

    private func schedule() {
        guard let next = hub.nextTimeout else { return }
        if let timerAt, timerAt <= next { return }
        timer?.cancel()
        timerAt = next
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        // Timestamps are rounded down to milliseconds, so add one to make sure that the deadline has passed.
        let delay = max(0, (next - clock.now).wholeMilliseconds) + 1
        timer = eventLoop.scheduleTask(in: .milliseconds(delay)) { runner.value.timerFired() }
    }
}

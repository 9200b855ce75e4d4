import HeapModule
import Wire

/// Routes events to the state machines. Turns each input from the shell into letters, delivers every letter to the machine that
/// it is addressed to, and returns the resulting effects in order.
///
/// The hub makes no decisions. Each client connection, person, session, match, call and room is a separate state
/// machine, and so is the pool. Machines communicate only through letters. In a cluster, each node has a hub, and `Places` decides
/// whether a machine that may exist only once is created here.
/// Invariants: letters are delivered in the order in which they were sent, and each is handled completely before the
/// next. A machine that has finished is removed.
public struct Hub: Sendable {
    var context: Context
    var clients = Clients()
    var people = People()
    var sessions = Machines<Session>()
    var matches = Machines<Match>()
    var calls = Machines<Call>()
    var archives = Machines<Archive>()
    var broadcasts = Machines<Broadcast>()
    var rooms = Machines<Room>()
    var roomRegistry = Slot(RoomRegistry())
    var lookups = Machines<Lookup>()
    var pool: Slot<Pool>
    var directory: Slot<Directory>
    var deviceCodes = Slot(DeviceCodes())
    var timers = Timers()
    /// Where the machines are that exist once in the cluster; nil without a cluster.
    var places: Places?
    var lostContacts = LostContacts()
    /// The rooms on other nodes in which clients of this node are.
    var distant = DistantRooms()
    /// The chats and calls on other nodes that people of this node take part in.
    var distantSessions = DistantSessions()
    /// Whether a timer will look at the requests that other nodes have not answered.
    var awaitsAnswers = false
    /// What the other nodes of the cluster have.
    var others = ClientCounts()

    public init(hubSettings: HubSettings, generator: any RandomNumberGenerator & Sendable) {
        context = Context(hubSettings, generator: generator)
        pool = Slot(Pool(rules: hubSettings.rules))
        directory = Slot(Directory(rules: hubSettings.rules, project: hubSettings.project))
        places = hubSettings.tag.map(Places.init)
    }

    // MARK: Events

    /// Handles an input and everything that it causes. Returns the resulting effects in order.
    ///
    /// - Parameter permit: what this input may store.
    public mutating func handle(_ input: Input, at moment: Moment, permit: StoragePermit = .all) -> [Effect] {
        context.moment = moment
        context.permit = permit
        receive(input)
        deliverAll()
        settlePlaces()
        context.permit = .all
        return context.takeEffects()
    }

    /// Handles an input at a time that is the same on both clocks.
    public mutating func handle(_ input: Input, now: Timestamp, permit: StoragePermit = .all) -> [Effect] {
        handle(input, at: Moment(now: now), permit: permit)
    }

    public var nextTimeout: Timestamp? { timers.next }

    /// Wakes the machine whose timer is due first.
    ///
    /// - Returns: the resulting effects; nil if no timer is due.
    public mutating func handleNextTimeout(at moment: Moment) -> [Effect]? {
        context.moment = moment
        guard let timer = timers.take(until: moment.now) else { return nil }
        timers.schedule(timer.address, wake(timer))
        deliverAll()
        settlePlaces()
        return context.takeEffects()
    }

    public mutating func handleNextTimeout(now: Timestamp) -> [Effect]? { handleNextTimeout(at: Moment(now: now)) }

    /// Wakes all machines whose timers are due.
    public mutating func handleTimeout(at moment: Moment) -> [Effect] {
        context.moment = moment
        while let timer = timers.take(until: moment.now) {
            timers.schedule(timer.address, wake(timer))
            deliverAll()
            settlePlaces()
        }
        return context.takeEffects()
    }

    public mutating func handleTimeout(now: Timestamp) -> [Effect] { handleTimeout(at: Moment(now: now)) }

    // MARK: Delivering

    /// Delivers all letters, including those sent while letters are being delivered, until none are left.
    private mutating func deliverAll() {
        while let letter = context.nextLetter() { deliver(letter) }
    }

    private mutating func deliver(_ letter: Letter) {
        if places != nil, posts(letter) || holdsBack(letter) { return }
        dispatch(letter)
    }

    /// Delivers a letter to its machine on this node, or lets its event be handled as one without a machine.
    mutating func dispatch(_ letter: Letter) {
        switch letter {
        case .client(let id, let event): timers.schedule(.client(id), clients.deliver(event, to: id, &context))
        case .clients(let ids, let message):
            for id in ids { deliver(.client(id, .deliverBroadcast(message))) }
        case .person(let id, let event):
            context.touch(.person(id))
            timers.schedule(.person(id), people.deliver(event, to: id, &context))
        case .session(let id, let event):
            context.touch(.session(id))
            timers.schedule(.session(id), sessions.deliver(event, to: id, &context).wakeUp)
        case .match(let id, let event): _ = matches.deliver(event, to: id, &context)
        case .call(let id, let event): timers.schedule(.call(id), calls.deliver(event, to: id, &context).wakeUp)
        case .archive(let id, let event):
            timers.schedule(.archive(id), archives.deliver(event, to: id, &context).wakeUp)
        case .broadcast(let id, let event):
            timers.schedule(.broadcast(id), broadcasts.deliver(event, to: id, &context).wakeUp)
        case .room(let id, let event):
            context.touch(.room(id))
            timers.schedule(.room(id), rooms.deliver(event, to: id, &context).wakeUp)
        case .roomRegistry(let event): timers.schedule(.roomRegistry, roomRegistry.deliver(event, &context))
        case .newCall(let attempt): deliver(.call(context.newID(), .begin(attempt)))
        case .lookup(let id, let event): _ = lookups.deliver(event, to: id, &context)
        case .pool(let event): timers.schedule(.pool, pool.deliver(event, &context))
        case .directory(let event): timers.schedule(.directory, directory.deliver(event, &context))
        case .deviceCodes(let event): timers.schedule(.deviceCodes, deviceCodes.deliver(event, &context))
        case .reception(let arrival): clients.makeClient(arrival, &context)
        case .countClients(let client, let re):
            var counts = others
            counts.clients += clients.count
            context.tell(.pool(.count(client, re: re, counts)))
        case .media(let command): context.media(command)
        // The hall is here, so the stranger has come to the right node, or waits in the pool of another one.
        case .hall(let person):
            if context.spansNodes, let own = context.tag { context.tell(.person(person, .hallIsAt(own))) }
        // Letters about relays are for other nodes.
        case .relay: break
        }
    }

    private mutating func wake(_ timer: Timers.Timer) -> Timestamp? {
        switch timer.address {
        case .client(let id): return clients.wake(id, at: timer.at, &context)
        case .person(let id):
            context.touch(.person(id))
            return people.wake(id, at: timer.at, &context)
        case .session(let id):
            context.touch(.session(id))
            return sessions.wake(id, at: timer.at, &context).wakeUp
        case .call(let id): return calls.wake(id, at: timer.at, &context).wakeUp
        case .archive(let id): return archives.wake(id, at: timer.at, &context).wakeUp
        case .broadcast(let id): return broadcasts.wake(id, at: timer.at, &context).wakeUp
        case .room(let id):
            context.touch(.room(id))
            return rooms.wake(id, at: timer.at, &context).wakeUp
        case .roomRegistry: return roomRegistry.wake(at: timer.at, &context)
        case .pool: return pool.wake(at: timer.at, &context)
        case .directory: return directory.wake(at: timer.at, &context)
        case .deviceCodes: return deviceCodes.wake(at: timer.at, &context)
        case .places:
            wakePlaces(at: timer.at)
            return nil
        case .lostContacts: return refreshNextContacts()
        case .postedRequests: return failUnanswered()
        }
    }
}

/// The scheduled wake-ups of all state machines.
struct Timers: Sendable {
    /// The state machine that a timer wakes.
    enum Address: Hashable, Sendable {
        case client(ConnectionID)
        case person(IdentityID)
        case session(SessionID)
        case call(CallID)
        case archive(ArchiveID)
        case broadcast(BroadcastID)
        case room(RoomName)
        case roomRegistry
        case pool
        case directory
        case deviceCodes
        case places
        case lostContacts
        case postedRequests
    }

    /// One scheduled wake-up.
    struct Timer: Comparable, Sendable {
        var at: Timestamp
        var order: UInt64
        var address: Address
        static func < (left: Timer, right: Timer) -> Bool { (left.at, left.order) < (right.at, right.order) }
        static func == (left: Timer, right: Timer) -> Bool { left.order == right.order }
    }

    private var heap = Heap<Timer>()
    private var lastOrder: UInt64 = 0

    var next: Timestamp? { heap.min?.at }

    /// Schedules a wake-up of a state machine.
    ///
    /// - Parameter at: the time of the wake-up; nil to schedule nothing.
    mutating func schedule(_ address: Address, _ at: Timestamp?) {
        guard let at else { return }
        lastOrder += 1
        heap.insert(Timer(at: at, order: lastOrder, address: address))
    }

    /// Removes and returns the first timer that is due; returns nil if none is.
    mutating func take(until now: Timestamp) -> Timer? {
        guard let first = heap.min, first.at <= now else { return nil }
        return heap.popMin()
    }
}

import Cluster
import Foundation
import Signaling
import TestSupport
import Wire

/// Many people with simple clients on the nodes of a cluster, with one clock. The seed determines everything in a run.
///
/// It is `ClusterWorld` for numbers: a person takes some bytes and an event a few microseconds, so that a million people can be
/// simulated. In exchange nothing fails: no node, no engine and no network. Sessions are relayed, so there is no media plane.
/// Some rules are judged at each event: the numbers of messages, answers to requests, who is matched with whom, where a room is, and
/// that a call is stored before it rings. All others are judged once a minute and at the end.
final class PopulationWorld {
    let seed: UInt64
    let count: Int
    var random: SeededGenerator
    let cluster: PopulationCluster
    var residents: [PopulationResident]
    private var alarms: PopulationAlarms
    /// How often each kind of event happened.
    private(set) var figures: [String: Int] = [:]
    /// The two people of each match, and how many of them have left it.
    var matches: [MatchID: (first: Int, second: Int?, left: Int)] = [:]
    /// The node of each room and the number of people who are in it.
    var rooms: [Int: (node: UInt8, people: Int)] = [:]
    /// Whether nobody begins anything more, so that everything comes to rest.
    private(set) var isCalm = false

    /// - Parameters:
    ///   - nodes: at most 200.
    ///   - people: rounded down to whole blocks of `PopulationHabit`.
    ///   - duration: how long the simulation lasts at most.
    init(nodes: Int, people: Int, seed: UInt64, project: Project, for duration: Duration) {
        let count = max(1, people / PopulationHabit.block) * PopulationHabit.block
        (self.seed, self.count) = (seed, count)
        random = SeededGenerator(seed: seed)
        let start = Timestamp(milliseconds: 1_790_000_000_000)
        cluster = PopulationCluster(nodes: nodes, people: count, seed: seed &+ 1, project: project, at: start)
        residents = Array(repeating: PopulationResident(), count: count)
        alarms = PopulationAlarms(from: start, for: duration)
    }

    var now: Timestamp { cluster.now }
    var fault: String? { cluster.fault }
    func fail(_ text: String) { cluster.fail("\(now.milliseconds % 100_000_000) \(text)") }
    func note(_ what: String) { figures[what, default: 0] += 1 }

    // MARK: Time

    /// Everyone comes within this time, evenly.
    func fill(within duration: Duration) {
        for person in residents.indices {
            let share = Int64.random(in: 0...duration.wholeMilliseconds, using: &random)
            alarms.add(.come, of: person, stamp: 0, at: now + .milliseconds(share))
        }
    }

    /// Nobody begins anything more, and everyone who is away comes back soon.
    func beCalm() {
        isCalm = true
        for person in residents.indices where !residents[person].isConnected { comeBack(person, after: .seconds(1)) }
    }

    /// Passes time. Everything happens at the time when it is due, until something is at fault.
    func pass(_ duration: Duration) {
        let end = now + duration
        settle()
        while fault == nil {
            guard let next = [cluster.nextDue, alarms.nextTime()].compactMap(\.self).min(), next <= end else { break }
            cluster.advance(to: max(now, next))
            settle()
            for alarm in alarms.take(until: now) {
                ring(alarm)
                settle()
            }
        }
        if fault == nil { cluster.advance(to: end) }
        settle()
    }

    /// Lets everything arrive that the nodes have sent to clients.
    private func settle() {
        while let delivery = cluster.takeDelivery() {
            switch delivery {
            case .message(let socket, let bytes): if let person = person(on: socket) { receive(bytes, person) }
            case .close(let socket, let code):
                guard let person = person(on: socket) else { continue }
                disconnect(person, leaving: code.isLeaving)
                comeBack(person, after: .milliseconds(Int64.random(in: 300...1000, using: &random)))
            }
        }
    }

    /// Returns a random time with this average. Whether something happens does not depend on how long it has not happened.
    private func time(around average: Duration, atLeast shortest: Duration = .zero) -> Duration {
        let unit = Double.random(in: 0..<1, using: &random)
        return shortest + .milliseconds(Int64(-log(1 - unit) * Double(average.wholeMilliseconds)))
    }

    /// Does something later, unless the person's state is another one by then.
    func plan(
        _ kind: PopulationAlarms.Kind, _ person: Int, around average: Duration, atLeast shortest: Duration = .zero
    ) {
        let due = now + time(around: average, atLeast: shortest)
        alarms.add(kind, of: person, stamp: residents[person].states, at: due)
    }

    private func ring(_ alarm: PopulationAlarms.Alarm) {
        let person = Int(alarm.person)
        switch alarm.kind {
        case .come: if alarm.stamp == residents[person].connections { connect(person) }
        case .leave: if alarm.stamp == residents[person].connections { leave(person) }
        case .ping: if alarm.stamp == residents[person].connections { ping(person) }
        case .act: if alarm.stamp == residents[person].states { act(person) }
        case .line: if alarm.stamp == residents[person].states { write(person) }
        }
    }

    // MARK: Connections

    private func socket(_ person: Int) -> SocketID {
        SocketID(rawValue: UInt64(residents[person].connections) << 32 | UInt64(person))
    }

    /// The person who has this socket; nil if the socket is an earlier one.
    private func person(on socket: SocketID) -> Int? {
        let person = Int(socket.rawValue & 0xFFFF_FFFF)
        return residents[person].isConnected && self.socket(person) == socket ? person : nil
    }

    private func connect(_ person: Int) {
        guard !residents[person].isConnected else { return }
        let target = residents[person].target
        let node = target > 0 ? Int(target) - 1 : Int.random(in: cluster.tags.indices, using: &random)
        residents[person].target = 0
        residents[person].connect(to: UInt8(node), at: now)
        note("arrivals")
        // Each person has an address of their own, because addresses have limits.
        let address = "10.\(person >> 16 & 255).\(person >> 8 & 255).\(person & 255)"
        let arrival = Arrival(
            socket: socket(person), identity: Identity(id: PopulationStorage.identity(person)),
            record: cluster.storage.record(of: person), address: address,
            at: target > 0 ? cluster.tags[node].nodeName : nil)
        let stamp = residents[person].connections
        alarms.add(.leave, of: person, stamp: stamp, at: now + time(around: PopulationHabit.stay))
        let firstPing = Int64.random(in: 1...PopulationHabit.ping.wholeMilliseconds, using: &random)
        alarms.add(.ping, of: person, stamp: stamp, at: now + .milliseconds(firstPing))
        cluster.handle(.arrived(arrival), on: node)
    }

    private func ping(_ person: Int) {
        send(Envelope(ack: residents[person].acknowledge(), message: .ping), person)
        alarms.add(.ping, of: person, stamp: residents[person].connections, at: now + PopulationHabit.ping)
    }

    /// Closes the page, or loses the connection, and comes back.
    private func leave(_ person: Int) {
        guard residents[person].isConnected, !isCalm else { return }
        note("departures")
        disconnect(person, leaving: Bool.random(using: &random))
        (residents[person].wish, residents[person].redirects) = (.nothing, 0)
        comeBack(person, after: time(around: PopulationHabit.absence))
    }

    private func comeBack(_ person: Int, after pause: Duration) {
        alarms.add(.come, of: person, stamp: residents[person].connections, at: now + pause)
    }

    private func disconnect(_ person: Int, leaving: Bool) {
        let (socket, node) = (socket(person), Int(residents[person].node))
        leaveState(person)
        residents[person].become(.away, at: now)
        cluster.handle(.closed(socket, leaving: leaving), on: node)
    }

    /// Leaves this node, and comes to the one that an error names.
    func follow(_ error: WireError, _ person: Int) {
        guard let name = error.at, let node = cluster.node(named: name) else { return fail("a redirect to \(error)") }
        note("redirects")
        residents[person].redirects += 1
        guard residents[person].redirects < 40 else { return fail("person \(person) is redirected again and again") }
        residents[person].target = UInt8(node + 1)
        // What the person wants cannot be had now, because another device keeps the person elsewhere.
        if !error.retryable { residents[person].wish = .nothing }
        disconnect(person, leaving: true)
        comeBack(person, after: .milliseconds(Int64.random(in: 20...120, using: &random)))
    }

    // MARK: Sending

    private func send(_ envelope: Envelope<ClientMessage>, _ person: Int) {
        cluster.handle(.message(socket(person), envelope), on: Int(residents[person].node))
    }

    /// Sends a request. Returns its number.
    @discardableResult func say(_ message: ClientMessage, _ person: Int) -> UInt32 {
        guard let number = residents[person].ask(at: now) else {
            fail("a request of person \(person) was not answered")
            return 0
        }
        send(Envelope(seq: UInt64(number), ack: residents[person].acknowledge(), message: message), person)
        return number
    }

    func acknowledgeIfOwed(_ person: Int) {
        guard residents[person].isConnected, residents[person].owesAcknowledgment else { return }
        send(Envelope(ack: residents[person].acknowledge(), message: .ack), person)
    }

    // MARK: Acting

    /// Asks for what the person wants.
    func pursue(_ person: Int) {
        switch residents[person].wish {
        case .nothing: return
        case .chat: residents[person].asked = say(.roulette(.start(.init())), person)
        case .room:
            guard case .room(let room) = PopulationHabit(person), let name = RoomName("room \(room)") else { return }
            let join = RoomVerb.Join(name: name, displayName: "Ada")
            residents[person].asked = say(.room(.join(join)), person)
        case .call:
            let callee = cluster.storage.people[Int(residents[person].callee)]
            residents[person].asked = say(.call(.start(.init(person: callee, video: true))), person)
        }
    }

    /// Does what follows in the person's state.
    private func act(_ person: Int) {
        guard !isCalm else { return }
        switch residents[person].state {
        case .idle: want(person)
        case .chatting: say(.roulette(.next(.init())), person)
        case .ringing: say(.call(.accept(.init(call: call(of: person), video: true))), person)
        case .talking: say(.call(.end(.init(call: call(of: person)))), person)
        case .away, .searching, .calling, .inRoom: break
        }
    }

    private func want(_ person: Int) {
        guard residents[person].wish == .nothing else { return }
        switch PopulationHabit(person) {
        case .roulette: residents[person].wish = .chat
        case .room: residents[person].wish = .room
        case .calls:
            residents[person].wish = .call
            let contacts = PopulationHabit.contacts(of: person)
            residents[person].callee = UInt32(contacts.randomElement(using: &random) ?? person)
        }
        pursue(person)
    }

    private func write(_ person: Int) {
        guard !isCalm else { return }
        switch residents[person].state {
        case .chatting:
            guard let session = residents[person].session else { return }
            say(.session(.signal(.init(session: session, type: "chat", data: "Hello, how are you?"))), person)
        case .inRoom:
            say(.room(.say(.init(text: "Hello, everyone."))), person)
            plan(.line, person, around: PopulationHabit.roomLine)
        default: break
        }
    }

    func match(of person: Int) -> MatchID {
        MatchID(high: residents[person].binding.high, low: residents[person].binding.low)
    }

    func call(of person: Int) -> CallID {
        CallID(high: residents[person].binding.high, low: residents[person].binding.low)
    }
}

import Cluster
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Effects that wait for commits") struct CommitQueueTests {
    private let ada: IdentityID
    private let bob: IdentityID
    private let stream: StreamID
    private let client: ConnectionID

    init() {
        var random = SeededGenerator(seed: 1)
        ada = .random(using: &random)
        bob = .random(using: &random)
        stream = .random(using: &random)
        client = .random(using: &random)
    }

    /// The queue as a reference, because `#expect` cannot mutate values. Ada is on sockets 1 and 11, Bob on 2.
    private final class Queue {
        var queue = CommitQueue()
        let people: [SocketID: IdentityID]
        init(_ people: [UInt64: IdentityID]) {
            self.people = Dictionary(uniqueKeysWithValues: people.map { (SocketID(rawValue: $0), $1) })
        }
        func add(_ effects: [Effect], from origin: CommitQueue.Origin = .none) -> [Effect] {
            queue.add(effects, from: origin) { people[$0] }
        }
        func takeBatch() -> [[Change]]? { queue.takeBatch() }
        func settle(_ succeeded: [Bool]) -> CommitQueue.Settled { queue.settle(succeeded) }
    }

    private func makeQueue() -> Queue { Queue([1: ada, 11: ada, 2: bob]) }

    private func block(_ owner: IdentityID? = nil) -> Effect {
        .persist(.block(owner: owner ?? ada, blocked: stranger, at: Timestamp(milliseconds: 0)))
    }
    private var stranger: IdentityID { IdentityID(high: 9, low: 9) }
    private func send(_ socket: UInt64, _ text: String) -> Effect {
        .transmit(SocketID(rawValue: socket), Array(text.utf8))
    }

    @Test("effects before a change are carried out at once, those after it when it is committed")
    func order() {
        let queue = makeQueue()
        #expect(queue.add([send(1, "a"), block(), send(1, "ok"), send(3, "b")]) == [send(1, "a")])
        #expect(queue.takeBatch()?.count == 1)
        #expect(queue.settle([true]).effects == [send(1, "ok"), send(3, "b")])
        #expect(queue.queue.isEmpty)
    }

    @Test("the recorder's commands wait for all earlier changes, and keep their order")
    func recorder() {
        let queue = makeQueue()
        let begin = Effect.recording(.pause(ArchiveID(high: 1, low: 1)))
        let add = Effect.recording(.resume(ArchiveID(high: 1, low: 1)))
        #expect(queue.add([begin]) == [begin])
        _ = queue.add([block()])
        #expect(queue.add([begin]).isEmpty)
        #expect(queue.takeBatch()?.count == 1)
        _ = queue.add([block(bob)])
        #expect(queue.add([add]).isEmpty)
        #expect(queue.settle([true]).effects == [begin])
        _ = queue.takeBatch()
        #expect(queue.settle([true]).effects == [add])
    }

    @Test("an archive is composed ahead only after its start is stored, and before it is composed")
    func composing() {
        let queue = makeQueue()
        let record = ArchiveRecord(
            id: ArchiveID(high: 1, low: 1), project: "1000", session: .unset, request: ArchiveRequest(),
            createdAt: Timestamp(milliseconds: 0))
        #expect(queue.add([.persist(.archiveStored(record)), .composeAhead(record)]).isEmpty)
        #expect(queue.add([.compose(record)]).isEmpty)
        _ = queue.takeBatch()
        #expect(queue.settle([true]).effects == [.composeAhead(record), .compose(record)])
    }

    @Test("a change of an archive that was not stored is reported with the archive")
    func archive() {
        let queue = makeQueue()
        let record = ArchiveRecord(
            id: ArchiveID(high: 1, low: 1), project: "1000", session: .unset, request: ArchiveRequest(),
            createdAt: Timestamp(milliseconds: 0))
        _ = queue.add([.persist(.archiveStored(record))])
        _ = queue.takeBatch()
        #expect(queue.settle([false]).failures.map(\.archives) == [[record.id]])
    }

    @Test("a change of a broadcast that was not stored is reported with the broadcast, and its commands wait for it")
    func broadcast() {
        let queue = makeQueue()
        let record = BroadcastRecord(
            id: BroadcastID(high: 1, low: 1), project: "1000", session: .unset, request: BroadcastRequest(),
            key: BroadcastKey(high: 1, low: 2), createdAt: Timestamp(milliseconds: 0))
        #expect(queue.add([.persist(.broadcastStored(record)), .broadcast(.begin(record))]).isEmpty)
        _ = queue.takeBatch()
        let settled = queue.settle([false])
        #expect(settled.failures.map(\.broadcasts) == [[record.id]] && settled.effects == [.broadcast(.begin(record))])
    }

    @Test("events of people without uncommitted changes do not wait")
    func others() {
        let queue = makeQueue()
        _ = queue.add([block(), send(1, "ok")])
        _ = queue.takeBatch()
        #expect(queue.add([send(2, "x"), send(3, "y")]) == [send(2, "x"), send(3, "y")])
    }

    @Test("a person's other sockets wait too, so a repeated request or a resume does not tell earlier that it is done")
    func otherSocket() {
        let queue = makeQueue()
        _ = queue.add([block(), send(1, "ok")])
        _ = queue.takeBatch()
        #expect(queue.add([send(11, "ok"), send(2, "x")]) == [send(2, "x")])
        #expect(queue.settle([true]).effects == [send(1, "ok"), send(11, "ok")])
        #expect(queue.add([send(11, "free")]) == [send(11, "free")])
    }

    @Test("places are asked for and released after all changes, because another node may then read what is stored")
    func places() {
        let queue = makeQueue()
        let reach = Effect.reach(PlaceKey(.hall), .hall, claims: true)
        let release = Effect.releasePlace(PlaceKey(.person, "bob"))
        #expect(queue.add([reach, release]) == [reach, release])
        _ = queue.add([block()])
        _ = queue.takeBatch()
        #expect(queue.add([reach, release]).isEmpty)
        #expect(queue.settle([false]).effects == [reach, release])
    }

    @Test("letters to other nodes wait for all changes that were made before, and keep their order")
    func letters() {
        let queue = makeQueue()
        func post(_ number: Int) -> Effect {
            .post(NodeTag(node: 2, life: 2)!, .call(CallID(high: 0, low: 1), .rings(devices: number)))
        }
        #expect(queue.add([post(1)]) == [post(1)])
        #expect(queue.add([post(2), block(), post(3)]) == [post(2)])
        _ = queue.takeBatch()
        #expect(queue.add([post(4)]).isEmpty)
        #expect(queue.add([block(), post(5)]).isEmpty)
        #expect(queue.settle([true]).effects == [post(3), post(4)])
        #expect(queue.add([post(6)]).isEmpty)
        _ = queue.takeBatch()
        #expect(queue.settle([false]).effects == [post(5), post(6)])
        #expect(queue.add([post(7)]) == [post(7)])
    }

    @Test("a later effect for a socket waits behind an earlier one, also if its person has stored nothing")
    func sameSocket() {
        let queue = makeQueue()
        _ = queue.add([block(), send(2, "ended")])
        _ = queue.takeBatch()
        #expect(queue.add([send(2, "later")]).isEmpty)
        #expect(queue.settle([true]).effects == [send(2, "ended"), send(2, "later")])
    }

    @Test("media commands never wait: hanging up takes effect while the disk is slow")
    func media() {
        let queue = makeQueue()
        let command = Effect.media(.unpublish(stream, by: ConnectionID(high: 0, low: 1)))
        #expect(queue.add([block(), command, send(1, "ok")]) == [command])
    }

    @Test("an query waits for the changes of its own person only")
    func query() {
        let queue = makeQueue()
        func question(_ person: IdentityID) -> Effect {
            .query(Question(identity: person, client: client, re: 1, .callLog(.init())))
        }
        _ = queue.add([block()])
        #expect(queue.add([question(bob)]) == [question(bob)])
        #expect(queue.add([question(ada)]).isEmpty)
        _ = queue.takeBatch()
        #expect(queue.settle([true]).effects == [question(ada)])
    }

    @Test("changes that arrive while a batch is written are committed together afterwards")
    func groups() {
        let queue = makeQueue()
        _ = queue.add([block(), send(1, "1")])
        _ = queue.takeBatch()
        _ = queue.add([block(bob), send(2, "2")])
        _ = queue.add([block(), send(1, "3")])
        #expect(queue.takeBatch() == nil, "one batch at a time")
        #expect(queue.settle([true]).effects == [send(1, "1")])
        #expect(queue.takeBatch()?.count == 2)
        #expect(queue.settle([true, true]).effects == [send(2, "2"), send(1, "3")])
    }

    @Test("a failed change names the people concerned and the request, and does not disturb the order of the others")
    func failure() {
        let queue = makeQueue()
        let origin = CommitQueue.Origin(socket: SocketID(rawValue: 1), person: ada, request: 7)
        _ = queue.add([block(), send(1, "ok")], from: origin)
        _ = queue.add([block(bob), send(2, "ok")])
        _ = queue.takeBatch()
        let settled = queue.settle([false, true])
        #expect(settled.failures == [.init(origin: origin, people: [ada])])
        #expect(settled.effects == [send(1, "ok"), send(2, "ok")])
    }

    @Test("who waits for all changes also waits for those behind the batch that is being written")
    func laterBatch() {
        let queue = makeQueue()
        _ = queue.add([block()])
        _ = queue.takeBatch()
        _ = queue.add([block(bob)])
        let number = queue.queue.nextNumber
        _ = queue.settle([true])
        #expect(!queue.queue.isSettled(before: number))
        _ = queue.takeBatch()
        _ = queue.settle([false])
        #expect(queue.queue.isSettled(before: number))
    }

    @Test("a failed change of a room names the room")
    func failureOfRoom() {
        let queue = makeQueue()
        _ = queue.add([.persist(.roomForgotten(RoomID(high: 1, low: 2)))])
        _ = queue.takeBatch()
        #expect(queue.settle([false]).failures == [.init(origin: .none, people: [], rooms: [RoomID(high: 1, low: 2)])])
    }

    @Test("a change that names only a call concerns both people in it")
    func callPeople() {
        let queue = makeQueue()
        _ = queue.add([.persist(.callOver(CallID(high: 1, low: 1), people: [ada, bob]))])
        _ = queue.takeBatch()
        #expect(queue.settle([false]).failures.first?.people == [ada, bob])
    }

    @Test("effects for discarded sockets are forgotten, and later ones do not wait for them")
    func discard() {
        let queue = makeQueue()
        _ = queue.add([block(), send(3, "a"), send(2, "b")])
        #expect(queue.queue.heldBytes(for: SocketID(rawValue: 3)) == 1)
        queue.queue.discard([SocketID(rawValue: 3)])
        #expect(queue.queue.heldBytes == 1)
        #expect(queue.add([send(3, "closing")]) == [send(3, "closing")])
        _ = queue.takeBatch()
        #expect(queue.settle([true]).effects == [send(2, "b")])
        #expect(queue.queue.heldBytes == 0)
    }

    @Test("dropping a slow reader frees what waits for it, even while the batch is being written")
    func discardWhileWriting() {
        let queue = makeQueue()
        _ = queue.add([block(), send(3, "a"), send(2, "b")])
        _ = queue.takeBatch()
        #expect(queue.add([send(3, "later")]).isEmpty)
        #expect(queue.queue.heldBytes == 7)
        queue.queue.discard([SocketID(rawValue: 3)])
        #expect(queue.queue.heldBytes == 1)
        #expect(queue.queue.heldBytes(for: SocketID(rawValue: 3)) == 0)
        #expect(queue.settle([true]).effects == [send(2, "b")])
        #expect(queue.queue.heldBytes == 0)
    }

    @Test(
        "whatever happens, each socket gets its effects in order and none is lost",
        arguments: [1, 2, 3, 4, 5] as [UInt64])
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let queue = makeQueue()
        var sent: [UInt64: [Int]] = [:]
        var expected: [UInt64: [Int]] = [:]
        var next = 0
        func carryOut(_ effects: [Effect]) {
            for case .transmit(let socket, let bytes) in effects {
                sent[socket.rawValue, default: []].append(Int(String(decoding: bytes, as: UTF8.self)) ?? -1)
            }
        }
        func settle() {
            guard queue.queue.writingCount > 0 else { return }
            carryOut(queue.settle((0..<queue.queue.writingCount).map { _ in Bool.random(using: &random) }).effects)
        }
        for _ in 0..<2000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: _ = queue.takeBatch()
            case 1: settle()
            default:
                let effects = (0..<Int.random(in: 1...4, using: &random)).map { _ -> Effect in
                    if Int.random(in: 0..<5, using: &random) == 0 {
                        return block(Bool.random(using: &random) ? ada : bob)
                    }
                    let socket = ([1, 2, 3, 4, 11] as [UInt64]).randomElement(using: &random) ?? 1
                    next += 1
                    expected[socket, default: []].append(next)
                    return send(socket, "\(next)")
                }
                carryOut(queue.add(effects))
            }
        }
        for _ in 0..<2 {
            settle()
            _ = queue.takeBatch()
        }
        settle()
        #expect(queue.queue.isEmpty)
        #expect(sent == expected, "seed \(seed)")
        #expect(queue.queue.heldBytes == 0)
    }
}

import Signaling
import Testing
import TestSupport
import Wire

@testable import Server

@Suite("Effects that wait for commits") struct CommitQueueTests {
    private var random = SeededGenerator(seed: 1)
    private let ada: IdentityID
    private let bob: IdentityID

    init() {
        ada = .random(using: &random)
        bob = .random(using: &random)
    }

    /// The queue as a reference, because `#expect` cannot mutate values.
    private final class Queue {
        private var queue = CommitQueue()
        var isEmpty: Bool { queue.isEmpty }
        var isWriting: Bool { queue.isWriting }
        var writingCount: Int { queue.writingCount }
        func add(_ effects: [Effect], from origin: CommitQueue.Origin) -> [Effect] { queue.add(effects, from: origin) }
        func takeBatch() -> [[Change]]? { queue.takeBatch() }
        func settle(_ succeeded: [Bool]) -> [CommitQueue.Outcome] { queue.settle(succeeded) }
        func discard(_ sockets: Set<SocketID>) { queue.discard(sockets) }
    }

    private func block() -> Effect { .persist(.block(owner: ada, blocked: bob, at: Timestamp(milliseconds: 0))) }
    private func send(_ socket: UInt64, _ text: String) -> Effect {
        .transmit(SocketID(rawValue: socket), Array(text.utf8))
    }

    @Test("effects before a change go out at once, those after it when it is committed")
    func order() {
        let queue = Queue()
        #expect(queue.add([send(1, "a"), block(), send(1, "ok"), send(2, "b")], from: .none) == [send(1, "a")])
        #expect(queue.takeBatch()?.count == 1)
        #expect(queue.settle([true]) == [.committed([send(1, "ok"), send(2, "b")])])
        #expect(queue.isEmpty)
    }

    @Test("an event that has nothing to do with the change does not wait for it")
    func others() {
        let queue = Queue()
        _ = queue.add([block(), send(1, "ok")], from: .none)
        _ = queue.takeBatch()
        #expect(queue.add([send(2, "x"), send(3, "y")], from: .none) == [send(2, "x"), send(3, "y")])
    }

    @Test("a later effect for the same socket waits behind the earlier one")
    func sameSocket() {
        let queue = Queue()
        _ = queue.add([block(), send(1, "ok")], from: .none)
        _ = queue.takeBatch()
        #expect(queue.add([send(1, "later"), send(2, "x")], from: .none) == [send(2, "x")])
        #expect(queue.settle([true]) == [.committed([send(1, "ok"), send(1, "later")])])
        #expect(queue.add([send(1, "free")], from: .none) == [send(1, "free")])
    }

    @Test("media commands for one stream keep their order")
    func sameStream() {
        var random = random
        let queue = Queue()
        let stream = StreamID.random(using: &random)
        _ = queue.add([block(), .media(.unpublish(stream))], from: .none)
        #expect(queue.add([.media(.update(stream, audio: true, video: true))], from: .none).isEmpty)
    }

    @Test("an inquiry waits for every change that came before it")
    func inquiry() {
        var random = random
        let queue = Queue()
        let question = Effect.inquire(
            Question(identity: ada, client: .random(using: &random), re: 1, .callLog(.init())))
        #expect(queue.add([question], from: .none) == [question])
        _ = queue.add([block()], from: .none)
        #expect(queue.add([question], from: .none).isEmpty)
        _ = queue.takeBatch()
        #expect(queue.settle([true]) == [.committed([question])])
    }

    @Test("changes that come while a batch is written are committed together afterwards")
    func groups() {
        let queue = Queue()
        _ = queue.add([block(), send(1, "1")], from: .none)
        _ = queue.takeBatch()
        _ = queue.add([block(), send(2, "2")], from: .none)
        _ = queue.add([block(), send(3, "3")], from: .none)
        #expect(queue.takeBatch() == nil, "one batch at a time")
        #expect(queue.settle([true]) == [.committed([send(1, "1")])])
        #expect(queue.takeBatch()?.count == 2)
    }

    @Test("a change that fails fails alone, and says whose it was and which request asked for it")
    func failure() {
        let queue = Queue()
        let origin = CommitQueue.Origin(socket: SocketID(rawValue: 1), request: 7)
        _ = queue.add([block(), send(1, "ok")], from: origin)
        _ = queue.add([block(), send(2, "ok")], from: .none)
        _ = queue.takeBatch()
        #expect(
            queue.settle([false, true]) == [
                .failed(.init(origin: origin, identities: [ada], held: [send(1, "ok")])), .committed([send(2, "ok")]),
            ])
    }

    @Test("effects for a discarded socket are forgotten, and later ones do not wait for them")
    func discard() {
        let queue = Queue()
        _ = queue.add([block(), send(1, "a"), send(2, "b")], from: .none)
        queue.discard([SocketID(rawValue: 1)])
        #expect(queue.add([send(1, "closing")], from: .none) == [send(1, "closing")])
        _ = queue.takeBatch()
        #expect(queue.settle([true]) == [.committed([send(2, "b")])])
    }

    @Test(
        "whatever comes, each socket gets its effects in order and none is lost",
        arguments: [1, 2, 3, 4, 5] as [UInt64])
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let queue = Queue()
        var sent: [UInt64: [Int]] = [:]
        var expected: [UInt64: [Int]] = [:]
        var next = 0
        func carryOut(_ effects: [Effect]) {
            for case .transmit(let socket, let bytes) in effects {
                sent[socket.rawValue, default: []].append(Int(String(decoding: bytes, as: UTF8.self))!)
            }
        }
        for _ in 0..<2000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: _ = queue.takeBatch()
            case 1:
                guard queue.isWriting else { continue }
                let results = Array(repeating: true, count: queue.writingCount)
                for case .committed(let effects) in queue.settle(results) { carryOut(effects) }
            default:
                let effects = (0..<Int.random(in: 1...4, using: &random)).map { _ -> Effect in
                    if Int.random(in: 0..<5, using: &random) == 0 { return block() }
                    let socket = UInt64.random(in: 1...6, using: &random)
                    next += 1
                    expected[socket, default: []].append(next)
                    return send(socket, "\(next)")
                }
                carryOut(queue.add(effects, from: .none))
            }
        }
        for _ in 0..<2 {
            _ = queue.takeBatch()
            for case .committed(let effects) in queue.settle(Array(repeating: true, count: queue.writingCount)) {
                carryOut(effects)
            }
        }
        #expect(queue.isEmpty)
        #expect(sent == expected, "seed \(seed)")
    }
}

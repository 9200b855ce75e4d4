import Cluster
import Signaling
import TestSupport
import Wire

/// The nodes of a simulated population: hubs with one storage, one table of places and letters between them. What a node sends to the
/// table or to another node takes a millisecond each way. No engine fails here; `ClusterWorld` judges that.
final class PopulationCluster {
    /// Something that arrives at a client.
    enum Delivery {
        case message(SocketID, [UInt8])
        case close(SocketID, CloseCode)
    }

    /// What has happened since the start.
    struct Figures {
        /// Inputs from clients, and inputs that were committed because they changed something. A server commits those of many inputs
        /// at once.
        var inputs = 0
        var commits = 0
        var changes = 0
        var messages = 0
        var messageBytes = 0
        var claims = 0
        var lookUps = 0
        var releases = 0
        var letters = 0
        /// Entries with letters. Letters to one node that follow each other in one input share an entry. A server also joins those of
        /// several inputs.
        var entries = 0
        var letterBytes = 0
    }

    private enum Step {
        case reach(PlaceKey, PlacedMachine, claims: Bool)
        case release(PlaceKey)
        case answer(Input)
    }

    private struct Question {
        let at: Timestamp
        let node: Int
        let step: Step
    }

    private struct Entry {
        let at: Timestamp
        let sender: Int
        let receiver: Int
        let bytes: [UInt8]
    }

    private static let hop = Duration.milliseconds(1)

    let tags: [NodeTag]
    private(set) var hubs: [Hub]
    private(set) var storage: PopulationStorage
    private(set) var figures = Figures()
    private(set) var now: Timestamp
    private(set) var fault: String?
    private var deliveries = PopulationQueue<Delivery>()
    private var questions = PopulationQueue<Question>()
    private var entries = PopulationQueue<Entry>()
    /// For each receiver and sender.
    private var unpackers: [[LetterUnpacker]]

    init(nodes: Int, people: Int, seed: UInt64, project: Project, at now: Timestamp) {
        self.now = now
        var random = SeededGenerator(seed: seed)
        var rules = Rules()
        // A node of the server has these limits so that its memory is limited, too. Here it is measured.
        rules.connectionsPerProject = people
        rules.maxRooms = people
        let tags = (1...nodes).compactMap { NodeTag(node: UInt16($0), life: UInt32($0)) }
        self.tags = tags
        hubs = tags.map { tag in
            Hub(
                hubSettings: HubSettings(rules: rules, project: project, version: "test", tag: tag),
                generator: SeededGenerator(seed: random.next()))
        }
        storage = PopulationStorage(people: people, project: project)
        unpackers = Array(repeating: Array(repeating: LetterUnpacker(), count: nodes), count: nodes)
    }

    func fail(_ text: String) { if fault == nil { fault = text } }

    /// The node with this name; nil if there is none.
    func node(named name: String) -> Int? { tags.firstIndex { $0.nodeName == name } }

    // MARK: Time

    var nextDue: Timestamp? {
        var next = [questions.first?.at, entries.first?.at].compactMap(\.self).min()
        for node in hubs.indices {
            if let timeout = hubs[node].nextTimeout { next = min(timeout, next ?? timeout) }
        }
        return next
    }

    /// Passes time, and does what is due at its end.
    func advance(to time: Timestamp) {
        now = time
        while let next = questions.first, next.at <= now, let question = questions.popFirst() { perform(question) }
        while let next = entries.first, next.at <= now, let entry = entries.popFirst() { receive(entry) }
        for node in hubs.indices {
            while let next = hubs[node].nextTimeout, next <= now {
                carryOut(hubs[node].handleTimeout(now: now), of: node)
            }
        }
    }

    // MARK: Inputs and effects

    /// Lets a node handle what has come from a client.
    func handle(_ input: Input, on node: Int) {
        figures.inputs += 1
        perform(input, on: node)
    }

    func takeDelivery() -> Delivery? { deliveries.popFirst() }

    private func perform(_ input: Input, on node: Int) { carryOut(hubs[node].handle(input, now: now), of: node) }

    private func carryOut(_ effects: [Effect], of node: Int) {
        var posted: [Packed] = []
        var queries: [Signaling.Question] = []
        var hasChanged = false
        for effect in effects {
            switch effect {
            case .persist(let change):
                hasChanged = true
                figures.changes += 1
                storage.apply(change)
            case .transmit(let socket, let bytes):
                figures.messages += 1
                figures.messageBytes += bytes.count
                deliveries.append(.message(socket, bytes))
            case .close(let socket, let code, _): deliveries.append(.close(socket, code))
            case .query(let question): queries.append(question)
            case .reach(let key, let machine, let claims): ask(.reach(key, machine, claims: claims), by: node)
            case .releasePlace(let key): ask(.release(key), by: node)
            case .post(let receiver, let letter): pack(letter, to: receiver, &posted)
            case .push, .media: break
            case .recording, .broadcast, .composeAhead, .compose, .deleteFile, .reply, .answer, .relay:
                fail("an effect that nothing here causes: \(effect)")
            }
        }
        if hasChanged { figures.commits += 1 }
        for (receiver, packer) in posted { post(packer.entries, from: node, to: receiver) }
        for question in queries { perform(.answered(question, storage.answer(question)), on: node) }
    }

    // MARK: Places

    private func ask(_ step: Step, by node: Int) {
        questions.append(Question(at: now + Self.hop, node: node, step: step))
    }

    private func perform(_ question: Question) {
        let (node, number) = (question.node, UInt8(question.node + 1))
        switch question.step {
        case .answer(let input): perform(input, on: node)
        case .release(let key):
            figures.releases += 1
            guard storage[place: key] == number else {
                return fail("node \(number) released \(key), which it did not have")
            }
            storage[place: key] = nil
        case .reach(let key, let machine, let claims):
            if claims { figures.claims += 1 } else { figures.lookUps += 1 }
            if let holder = storage[place: key], holder != number {
                return ask(.answer(.placed(key, at: tags[Int(holder) - 1])), by: node)
            }
            guard claims || storage[place: key] != nil else { return ask(.answer(.unplaced(key)), by: node) }
            storage[place: key] = number
            ask(.answer(.claimed(key, storage.stored(machine))), by: node)
        }
    }

    // MARK: Letters

    private typealias Packed = (receiver: NodeTag, packer: LetterPacker)

    private func pack(_ letter: Letter, to receiver: NodeTag, _ posted: inout [Packed]) {
        // An entry of the server has at most 256 KiB.
        if posted.last?.receiver != receiver { posted.append((receiver, LetterPacker(entrySize: 256 << 10))) }
        do throws(LetterError) {
            try posted[posted.count - 1].packer.append(letter)
            figures.letters += 1
        } catch {
            fail("\(letter) cannot be posted: \(error)")
        }
    }

    private func post(_ packed: [[UInt8]], from node: Int, to receiver: NodeTag) {
        guard let index = tags.firstIndex(of: receiver) else {
            return fail("a letter to \(receiver), which is no node")
        }
        for bytes in packed {
            figures.entries += 1
            figures.letterBytes += bytes.count
            entries.append(Entry(at: now + Self.hop * 2, sender: node, receiver: index, bytes: bytes))
        }
    }

    private func receive(_ entry: Entry) {
        for result in unpackers[entry.receiver][entry.sender].read(entry.bytes) {
            switch result {
            case .success(let letter): perform(.received(letter, from: tags[entry.sender]), on: entry.receiver)
            case .failure(let error): fail("a letter cannot be read: \(error)")
            }
        }
    }
}

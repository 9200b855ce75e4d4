import Cluster
import Logging
import NIOCore
import RTC
import SFU
import Signaling

/// The relays of this node: carries out on the media plane what ``RelayBook`` decides, and posts what the other ends need. It is used on
/// the event loop of the gateway.
final class ClusterRelays: MediaRelays {
    private var book: RelayBook
    private let own: NodeRelays
    private let media: MediaPlane
    private let logger: Logger
    /// Passes inputs to the rules.
    private let submit: (Input) -> Void
    private var hasStopped = false
    /// The nodes of which the rules know that media can cross to them; nil if nothing was said yet.
    private var announced: Set<NodeTag>?

    /// - Parameter own: what this node publishes.
    init(of tag: NodeTag, _ own: NodeRelays, _ media: MediaPlane, logger: Logger, submit: @escaping (Input) -> Void) {
        book = RelayBook(of: tag, own)
        self.own = own
        (self.media, self.logger, self.submit) = (media, logger, submit)
    }

    /// Begins to receive the events of the media plane.
    func start(on eventLoop: any EventLoop) {
        let relays = NIOLoopBound(self, eventLoop: eventLoop)
        media.deliverRelayEvents { event in relays.eventLoop.execute { relays.value.handle(event) } }
    }

    /// Closes all relays: the life of this node is over, or the server stops.
    func stop() {
        guard !hasStopped else { return }
        hasStopped = true
        media.deliverRelayEvents { _ in }
        carryOut(book.closeAll())
    }

    /// The number of relays in each state.
    var counts: [RelayBook.State: Int] { book.counts }

    /// What operators see of the relays, keyed by the life of the other node.
    var states: [NodeTag: RelayStates] { book.states }

    /// The records of the other living nodes were read.
    func read(_ records: [NodeTag: NodeRecord]) {
        guard !hasStopped else { return }
        carryOut(book.read(records.compactMapValues(\.relays)))
        announce()
    }

    /// The life of another node is over.
    func ended(_ life: NodeTag) {
        guard !hasStopped else { return }
        carryOut(book.ended(life))
        announce()
    }

    /// The rules have given a command to the media plane of this node.
    func note(_ command: MediaCommand) {
        guard !hasStopped else { return }
        switch command {
        case .publish(let stream, _, let client, _, _, _, _): carryOut(book.published(stream, by: client))
        case .unpublish(let stream, let client): carryOut(book.unpublished(stream, by: client))
        case .offer, .close, .estimate, .leave, .update, .subscribe, .unsubscribe: break
        }
    }

    func receive(_ event: RelayLetter, from life: NodeTag) {
        guard !hasStopped else { return }
        switch event {
        case .credentials(let credentials): carryOut(book.receive(credentials, from: life))
        }
    }

    /// Handles an event from this node's end of a relay. Ignores events of relays that are already closed.
    private func handle(_ event: RelayEvent) {
        let index = Int(event.relay.index)
        guard !hasStopped, let life = NodeTag(node: event.relay.node, life: event.relay.life),
            book.indices(to: life).contains(index)
        else { return }
        switch event {
        case .credentials(let id, let attempt, let credentials):
            let letter = RelayCredentials(
                index: id.index, attempt: attempt, ufrag: credentials.ufrag, password: credentials.password)
            submit(.relay(.credentials(letter), to: life))
            carryOut(book.began(attempt, index, of: life))
        case .connected(_, let isConnected):
            guard book.noted(index, of: life, isConnected: isConnected) else { return }
            logger.info(
                isConnected ? "Relay connected" : "Relay interrupted",
                metadata: ["node": "\(life.node)", "index": "\(index)"])
            announce()
        case .thinned(_, let layers):
            book.thinned(index, of: life, layers: layers)
            logger.info(
                layers == 0
                    ? "Relay carries all layers again" : "Relay loses packets, so it does not carry the largest layers",
                metadata: ["node": "\(life.node)", "index": "\(index)", "layers": "\(layers)"])
        case .full(_, let limit):
            logger.warning("\(limit.text(node: life.node))", metadata: ["life": "\(life)", "index": "\(index)"])
        }
    }

    /// Lets the rules know to which nodes media can cross.
    private func announce() {
        let nodes = book.connectedLives
        guard nodes != announced else { return }
        announced = nodes
        submit(.mediaCrosses(to: nodes))
    }

    private func carryOut(_ effects: [RelayBook.Effect]) {
        for effect in effects {
            switch effect {
            case .open(let relay, let life, let theirs): open(relay, to: life, theirs)
            case .close(let index, let life): media.closeRelay(RelayID(life, index))
            case .receive(let letter, let life):
                guard let credentials = ICECredentials(ufrag: letter.ufrag, password: letter.password) else { continue }
                let id = RelayID(life, Int(letter.index))
                media.receiveRelayCredentials(id, attempt: letter.attempt, credentials)
            case .pull(let client, let index, let life):
                media.pull(client, over: RelayID(life, index))
            case .stopPulling(let client, let index, let life):
                media.stopPulling(client, over: RelayID(life, index))
            case .report(let fault, let relay, let life):
                logger.warning(
                    "\(fault.text(node: life.node))",
                    metadata: [
                        "life": "\(life)", "index": "\(relay.index)", "from": "\(own.loops[relay.loop])",
                        "to": "\(relay.addresses)",
                    ])
            }
        }
    }

    private func open(_ relay: PlannedRelay, to life: NodeTag, _ theirs: NodeRelays) {
        guard !media.open(relay, to: life, theirs) else { return }
        logger.warning(
            "This node cannot open a relay to node \(life.node): the record of that node has no address that this machine can reach.",
            metadata: ["life": "\(life)", "index": "\(relay.index)", "addresses": "\(relay.addresses)"])
    }
}

extension RelayLimit {
    /// Returns the log message, which says what waits.
    func text(node: UInt16) -> String {
        switch self {
        case .clients:
            "The relay to node \(node) carries as many people's streams as it can. Streams of other people on that node wait."
        case .demands: "Node \(node) demands the streams of more people than a relay carries."
        case .encodings: "The relay to node \(node) carries as many streams as it can. Further streams wait."
        }
    }
}

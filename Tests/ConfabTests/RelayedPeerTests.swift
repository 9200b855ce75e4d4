import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("Relayed media with one member")
struct RelayedPeerTests {
    private let stream = StreamID(high: 7, low: 7)
    private let media = RelayedPeer.Outgoing(audio: MediaSource(media: FakeMedia()), video: nil)
    private let start = Timestamp(milliseconds: 1000)

    private func peer(isPolite: Bool) -> RelayedPeer {
        RelayedPeer(isPolite: isPolite, random: SeededGenerator(seed: isPolite ? 1 : 2))
    }

    private func steps(_ effects: [RelayedPeer.Effect]) -> [PeerStep] {
        effects.compactMap { if case .step(let step) = $0 { step } else { nil } }
    }

    private func posts(_ effects: [RelayedPeer.Effect]) -> [RelayedPeer.Message] {
        effects.compactMap { if case .post(let message) = $0 { message } else { nil } }
    }

    private func report(
        _ report: PeerReport, to peer: inout RelayedPeer, at now: Timestamp? = nil
    ) -> [RelayedPeer.Effect] {
        peer.handle(.report(report, connection: peer.connections), now: now ?? start)
    }

    /// A peer whose offer was sent, and the offer.
    private func offering(isPolite: Bool, at now: Timestamp? = nil) -> (RelayedPeer, RelayedPeer.Message) {
        var peer = peer(isPolite: isPolite)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        if isPolite { _ = peer.handleTimeout(now: start + RelayedPeer.firstOfferDelay) }
        let effects = report(.offered("o=- 1 1", mids: [:]), to: &peer, at: now)
        return (peer, posts(effects)[0])
    }

    private func offer(_ id: String, _ number: Int, origin: String = "9") -> RelayedPeer.Message {
        RelayedPeer.Message(
            content: .description(PeerDescription(.offer, sdp: "v=0\r\no=- \(origin) 1")),
            label: .init(id: id, number: number))
    }

    private func answer(to offer: RelayedPeer.Message) -> RelayedPeer.Message {
        RelayedPeer.Message(content: .description(PeerDescription(.answer, sdp: "o=- 9 1")), label: offer.label)
    }

    /// A peer whose offer was answered and whose media works.
    private func connected(isPolite: Bool) -> RelayedPeer {
        var (peer, offer) = offering(isPolite: isPolite)
        _ = peer.handle(.received(answer(to: offer)), now: start)
        _ = report(.accepted, to: &peer)
        _ = report(.event(.state(.connected)), to: &peer)
        return peer
    }

    @Test("the impolite end offers at once, with a label")
    func offering() {
        var peer = peer(isPolite: false)
        let opened = steps(peer.handle(.send(stream, media), now: start))
        guard case .open = opened.last else { return #expect(Bool(false), "\(opened)") }
        #expect(steps(report(.opened, to: &peer)) == [.offer(restartingICE: false)])
        let posted = posts(report(.offered("sdp", mids: [:]), to: &peer))
        #expect(posted.first?.label.number == 1)
        #expect(posted.first?.label.id != nil)
    }

    @Test("a first frame that comes before its track is reported after it")
    func earlyFrame() {
        var peer = connected(isPolite: false)
        _ = report(.event(.track(mid: "0", .video, streamID: "a")), to: &peer)
        #expect(report(.event(.firstFrame(mid: "0")), to: &peer).isEmpty)
        let track = RemoteTrack(media: FakeRemote(.video))
        #expect(
            report(.found(mid: "0", track), to: &peer) == [.arrived("a", mid: "0", track), .firstFrame(mid: "0")])
        #expect(report(.event(.firstFrame(mid: "0")), to: &peer) == [.firstFrame(mid: "0")])
    }

    @Test("the impolite end asks for media that it has nothing to send for")
    func expecting() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.expect, now: start)
        #expect(peer.plans.map(\.direction) == [.receiveOnly, .receiveOnly])
        #expect(steps(report(.opened, to: &peer)) == [.offer(restartingICE: false)])
    }

    @Test("an end that only receives can begin a new connection")
    func expectingAgain() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.received(offer("theirs", 1)), now: start)
        _ = report(.opened, to: &peer)
        _ = report(.answered("answer"), to: &peer)
        #expect(peer.handle(.expect, now: start).isEmpty)
        for seconds in [30, 60] {
            _ = report(.event(.state(.failed)), to: &peer, at: start + .seconds(seconds))
            _ = peer.handleTimeout(now: start + .seconds(seconds) + .seconds(1))
            _ = report(.offered("restart", mids: [:]), to: &peer, at: start + .seconds(seconds))
        }
        #expect(peer.connections == 2)
        #expect(peer.plans.map(\.direction) == [.receiveOnly, .receiveOnly])
    }

    @Test("the polite end waits for an offer before it makes one")
    func waiting() {
        var peer = peer(isPolite: true)
        _ = peer.handle(.send(stream, media), now: start)
        #expect(report(.opened, to: &peer).isEmpty)
        #expect(peer.nextTimeout == start + .seconds(3))
        #expect(steps(peer.handleTimeout(now: start + .seconds(3))) == [.offer(restartingICE: false)])
    }

    @Test("the polite end answers, and then offers its own media without waiting")
    func answering() {
        var peer = peer(isPolite: true)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        let offer = offer("theirs", 1)
        let accepted = steps(peer.handle(.received(offer), now: start))
        #expect(accepted == [.answer(offer: "v=0\r\no=- 9 1", rollingBack: false)])
        let effects = report(.answered("answer"), to: &peer)
        #expect(posts(effects).map(\.label) == [.init(id: "theirs", number: 1)])
        #expect(steps(effects) == [.offer(restartingICE: false)])
    }

    @Test("if offers cross, the polite end takes its own back, answers, and offers again")
    func crossingPolite() {
        var (peer, _) = offering(isPolite: true)
        let theirs = offer("theirs", 1)
        let effects = peer.handle(.received(theirs), now: start)
        #expect(steps(effects) == [.answer(offer: "v=0\r\no=- 9 1", rollingBack: true)])
        let next = report(.answered("answer"), to: &peer)
        #expect(steps(next) == [.offer(restartingICE: false)])
        let again = posts(report(.offered("again", mids: [:]), to: &peer))
        #expect(again.map(\.label) == [.init(id: "theirs", number: 2)])
    }

    @Test("if offers cross, the impolite end ignores the other and waits for its answer")
    func crossingImpolite() {
        var (peer, own) = offering(isPolite: false)
        #expect(peer.handle(.received(offer("theirs", 1)), now: start).isEmpty)
        #expect(steps(peer.handle(.received(answer(to: own)), now: start)) == [.accept(answer: "o=- 9 1")])
    }

    @Test("an offer that arrives while the own one is being made is decided afterwards")
    func crossingEarly() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        #expect(peer.handle(.received(offer("theirs", 1)), now: start).isEmpty)
        let effects = report(.offered("own", mids: [:]), to: &peer)
        #expect(posts(effects).count == 1)
        #expect(steps(effects).isEmpty)
    }

    @Test("an offer without an answer is sent again after 4, 8 and 16 seconds")
    func resending() {
        var (peer, offer) = offering(isPolite: false)
        var now = start
        for delay in [4, 8, 16, 16] {
            now = now + .seconds(delay)
            #expect(peer.nextTimeout == now)
            #expect(posts(peer.handleTimeout(now: now)) == [offer])
        }
    }

    @Test("a later offer that stays unanswered twice is given up for a new connection")
    func givingUp() {
        var peer = connected(isPolite: false)
        _ = peer.handle(.stopSending(stream), now: start)
        _ = peer.handle(.send(StreamID(high: 8, low: 8), media), now: start)
        _ = report(.offered("second", mids: [:]), to: &peer)
        _ = peer.handleTimeout(now: start + .seconds(4))
        let effects = peer.handleTimeout(now: start + .seconds(12))
        guard case .open = steps(effects).first else { return #expect(Bool(false), "\(effects)") }
    }

    @Test("an offer that was answered before gets the same answer again")
    func repeating() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.received(offer("theirs", 1)), now: start)
        _ = report(.opened, to: &peer)
        let first = posts(report(.answered("answer"), to: &peer))
        #expect(first.count == 1)
        #expect(posts(peer.handle(.received(offer("theirs", 1)), now: start)) == first)
    }

    @Test("candidates wait for the description that they belong to")
    func earlyCandidates() {
        var (peer, offer) = offering(isPolite: false)
        let candidate = PeerCandidate("candidate:1")
        let early = RelayedPeer.Message(content: .candidate(candidate), label: .init(id: offer.label.id))
        let foreign = RelayedPeer.Message(content: .candidate(candidate), label: .init(id: "other"))
        #expect(peer.handle(.received(early), now: start).isEmpty)
        #expect(peer.handle(.received(foreign), now: start).isEmpty)
        _ = peer.handle(.received(answer(to: offer)), now: start)
        #expect(steps(report(.accepted, to: &peer)) == [.candidate(candidate)])
        #expect(steps(peer.handle(.received(early), now: start)) == [.candidate(candidate)])
    }

    @Test("a flood of candidates and messages does not grow without bound")
    func flood() {
        var peer = peer(isPolite: false)
        for number in 0..<1000 {
            let candidate = PeerCandidate("candidate:\(number)")
            _ = peer.handle(.received(.init(content: .candidate(candidate), label: .init(id: "x"))), now: start)
        }
        #expect(peer.inbox.count <= RelayedPeer.maxWaiting)
        _ = report(.opened, to: &peer)
        for number in 0..<1000 {
            let candidate = PeerCandidate("candidate:\(number)")
            _ = peer.handle(.received(.init(content: .candidate(candidate), label: .init(id: "x"))), now: start)
        }
        #expect(peer.early.count <= RelayedPeer.maxWaiting)
    }

    @Test("a first offer of another negotiation replaces the connection")
    func renewing() {
        var peer = connected(isPolite: false)
        guard case .open = steps(peer.handle(.received(offer("new", 1, origin: "10")), now: start)).last else {
            return #expect(Bool(false))
        }
        let effects = steps(report(.opened, to: &peer))
        #expect(effects == [.answer(offer: "v=0\r\no=- 10 1", rollingBack: false)])
    }

    @Test("an offer that continues an unknown connection is answered with a first offer")
    func refusing() {
        var peer = peer(isPolite: true)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        #expect(steps(peer.handle(.received(offer("gone", 3)), now: start)) == [.offer(restartingICE: false)])
    }

    @Test("a failed connection restarts ICE, and then begins again")
    func restarting() {
        var peer = connected(isPolite: false)
        _ = report(.event(.state(.failed)), to: &peer)
        let first = peer.handleTimeout(now: start + .milliseconds(250))
        #expect(steps(first) == [.refreshServers, .offer(restartingICE: true)])
        let posted = posts(report(.offered("restart", mids: [:]), to: &peer, at: start + .milliseconds(250)))
        _ = peer.handle(.received(answer(to: posted[0])), now: start + .milliseconds(300))
        _ = report(.accepted, to: &peer, at: start + .milliseconds(300))
        let second = steps(peer.handleTimeout(now: start + .milliseconds(10_250)))
        guard case .open = second.first else { return #expect(Bool(false), "\(second)") }
    }

    @Test("a resumed line restarts a connection that does not work, and leaves one that works")
    func resuming() {
        var working = connected(isPolite: false)
        #expect(working.handle(.resumed, now: start).isEmpty)
        #expect(working.nextTimeout == nil)
        _ = report(.event(.state(.disconnected)), to: &working)
        _ = working.handle(.resumed, now: start)
        #expect(steps(working.handleTimeout(now: start)) == [.refreshServers, .offer(restartingICE: true)])
    }

    @Test("unsubscribing while an offer is in progress offers again afterwards")
    func unsubscribing() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        let stopped = steps(peer.handle(.stopSending(stream), now: start))
        #expect(stopped == [.replace(1, nil), .setDirection(1, .inactive)])
        let offer = posts(report(.offered("sdp", mids: [:]), to: &peer))[0]
        _ = peer.handle(.received(answer(to: offer)), now: start)
        #expect(steps(report(.accepted, to: &peer)) == [.offer(restartingICE: false)])
    }

    @Test("an engine that cannot offer is not asked again without a pause")
    func failing() {
        var peer = peer(isPolite: false)
        _ = peer.handle(.send(stream, media), now: start)
        _ = report(.opened, to: &peer)
        let effects = report(.failed(.noPeer), to: &peer)
        #expect(effects == [.failed(.noPeer)])
        let next = steps(peer.handleTimeout(now: start + .seconds(10)))
        guard case .open = next.first else { return #expect(Bool(false), "\(next)") }
    }

    @Test("a source that an engine cannot send is reported, and the connection continues")
    func notReplaced() {
        var peer = connected(isPolite: true)
        let source = MediaSource(media: UnknownMedia())
        #expect(report(.notReplaced(source, .unknownMedia), to: &peer) == [.notSent(source, .unknownMedia)])
        #expect(peer.nextTimeout == nil)
    }

    @Test("a message that was refused as too many is sent again if it is still of use")
    func refusals() {
        var (peer, offer) = offering(isPolite: false)
        let error = ConfabError(.rateLimited, "Wait.", isRetryable: true)
        _ = peer.handle(.refused(offer, error), now: start)
        #expect(posts(peer.handleTimeout(now: start + .seconds(1))) == [offer])
        _ = peer.handle(.refused(offer, error), now: start + .seconds(1))
        _ = peer.handle(.received(answer(to: offer)), now: start + .seconds(1))
        _ = report(.accepted, to: &peer)
        #expect(posts(peer.handleTimeout(now: start + .seconds(2))).isEmpty)
    }
}

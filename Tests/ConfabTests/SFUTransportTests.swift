import Testing
import Wire

@testable import Confab

@Suite("Routed media over one connection with the server")
struct SFUTransportTests {
    private let start = Timestamp(milliseconds: 1000)
    private let plan = TransceiverPlan(id: 1, kind: .audio, direction: .receiveOnly)

    private func report(_ report: PeerReport, to side: inout SFUTransport, connection: Int = 1) -> [SFUTransport.Effect]
    {
        side.handle(.report(report, connection: connection), now: start)
    }

    /// A side whose first offer has been answered.
    private func connected(receives: Bool = true) -> SFUTransport {
        var side = SFUTransport(receives: receives)
        _ = side.handle(.add(plan), now: start)
        _ = side.handle(.negotiate, now: start)
        _ = report(.opened, to: &side)
        _ = report(.offered("offer", mids: [1: "0"]), to: &side)
        _ = side.handle(.answered(1, .success("answer")), now: start)
        _ = report(.accepted, to: &side)
        _ = report(.event(.state(.connected)), to: &side)
        return side
    }

    @Test("the mids are known once the offer is on its way")
    func negotiating() {
        var side = SFUTransport(receives: true)
        #expect(side.handle(.add(plan), now: start).isEmpty)
        #expect(side.handle(.negotiate, now: start) == [.step(.open([plan]))])
        #expect(report(.opened, to: &side) == [.step(.offer(restartingICE: false))])
        #expect(
            report(.offered("offer", mids: [1: "0"]), to: &side) == [
                .request(1, "offer"), .mids([1: "0"], isRenewed: false),
            ])
        #expect(side.handle(.answered(1, .success("answer")), now: start) == [.step(.accept(answer: "answer"))])
        #expect(report(.accepted, to: &side) == [.step(.find(mid: "0"))])
        #expect(report(.event(.state(.connected)), to: &side) == [.state(.connected)])
        #expect(side.nextTimeout == nil)
    }

    @Test("over a receiving connection in use, the mids of new transceivers are known when the offer is answered")
    func holdingMids() {
        let second = TransceiverPlan(id: 2, kind: .video, direction: .receiveOnly)
        let both = [1: "0", 2: "1"]
        for receives in [true, false] {
            var side = connected(receives: receives)
            _ = side.handle(.add(second), now: start)
            _ = side.handle(.negotiate, now: start)
            let request = SFUTransport.Effect.request(2, "offer"),
                mids = SFUTransport.Effect.mids(both, isRenewed: false)
            #expect(report(.offered("offer", mids: both), to: &side) == (receives ? [request] : [request, mids]))
            #expect(side.handle(.answered(2, .success("answer")), now: start) == [.step(.accept(answer: "answer"))])
            let find = SFUTransport.Effect.step(.find(mid: "1"))
            let finds = [SFUTransport.Effect.step(.find(mid: "0")), find]
            #expect(report(.accepted, to: &side) == (receives ? [mids] + finds : finds))
        }
    }

    @Test("mids that wait for an answer are known with the next offer if this one is refused")
    func refusedOffer() {
        var side = connected()
        _ = side.handle(.negotiate, now: start)
        _ = report(.offered("offer", mids: [1: "0"]), to: &side)
        let error = ConfabError(WireError(.rateLimited, "Wait.", retryable: true, retryAfter: .seconds(2)))
        #expect(side.handle(.answered(2, .failure(error)), now: start).isEmpty)
        _ = side.handleTimeout(now: start + .seconds(2))
        #expect(report(.offered("offer", mids: [1: "0"]), to: &side) == [.request(3, "offer")])
        _ = side.handle(.answered(3, .success("answer")), now: start)
        #expect(report(.accepted, to: &side).first == .mids([1: "0"], isRenewed: false))
    }

    @Test("changes during a negotiation share one later offer")
    func batching() {
        var side = SFUTransport(receives: true)
        _ = side.handle(.negotiate, now: start)
        _ = report(.opened, to: &side)
        #expect(side.handle(.add(plan), now: start) == [.step(.add(plan))])
        #expect(side.handle(.negotiate, now: start).isEmpty)
        #expect(side.handle(.negotiate, now: start).isEmpty)
        _ = report(.offered("offer", mids: [:]), to: &side)
        _ = side.handle(.answered(1, .success("answer")), now: start)
        #expect(report(.accepted, to: &side) == [.step(.offer(restartingICE: false))])
    }

    @Test("a refusal that may pass is tried again after the server's pause")
    func retrying() {
        var side = SFUTransport(receives: true)
        _ = side.handle(.negotiate, now: start)
        _ = report(.opened, to: &side)
        _ = report(.offered("offer", mids: [:]), to: &side)
        let error = ConfabError(WireError(.rateLimited, "Wait.", retryable: true, retryAfter: .seconds(2)))
        #expect(side.handle(.answered(1, .failure(error)), now: start).isEmpty)
        #expect(side.handleTimeout(now: start + .seconds(2)) == [.step(.offer(restartingICE: false))])
    }

    @Test("a server that routes no media is not asked again")
    func unavailable() {
        var side = SFUTransport(receives: true)
        _ = side.handle(.negotiate, now: start)
        _ = report(.opened, to: &side)
        _ = report(.offered("offer", mids: [:]), to: &side)
        let error = ConfabError(.mediaUnavailable, "This server routes no media.")
        #expect(side.handle(.answered(1, .failure(error)), now: start) == [.refused(error), .failed(error)])
        #expect(side.nextTimeout == nil)
    }

    @Test("a resumed line restarts ICE")
    func resuming() {
        var side = connected()
        _ = side.handle(.lineLost, now: start)
        _ = side.handle(.networkChanged, now: start)
        #expect(side.handleTimeout(now: start) == [.step(.refreshServers), .step(.offer(restartingICE: true))])
    }

    @Test("without the server, a failed connection waits")
    func offline() {
        var side = connected()
        _ = side.handle(.lineLost, now: start)
        _ = report(.event(.state(.failed)), to: &side)
        #expect(side.handleTimeout(now: start).isEmpty)
        _ = side.handle(.networkChanged, now: start)
        #expect(!side.handleTimeout(now: start).isEmpty)
    }

    @Test("after two failed restarts the connection is replaced, and its mids are reported again")
    func replacing() {
        var side = connected()
        _ = report(.event(.state(.failed)), to: &side)
        var now = start
        for number in 2...3 {
            #expect(side.handleTimeout(now: now).contains(.step(.offer(restartingICE: true))))
            _ = report(.offered("offer", mids: [1: "0"]), to: &side)
            _ = side.handle(.answered(number, .success("answer")), now: now)
            _ = report(.accepted, to: &side)
            now = side.nextTimeout ?? now
        }
        #expect(side.handleTimeout(now: now).contains(.step(.close)))
        _ = report(.opened, to: &side, connection: 2)
        let effects = report(.offered("offer", mids: [1: "0"]), to: &side, connection: 2)
        #expect(effects.contains(.mids([1: "0"], isRenewed: true)))
    }

    @Test("a connection that the server ended is replaced, and late reports of it change nothing")
    func endedByServer() {
        var side = connected()
        let error = ConfabError("dtls_failed", "The handshake failed.")
        let effects = side.handle(.endedByServer(error), now: start)
        #expect(effects == [.failed(error), .step(.close), .state(.disconnected)])
        #expect(report(.event(.state(.failed)), to: &side).isEmpty)
        #expect(side.handleTimeout(now: start) == [.step(.open([plan]))])
        // Before its first answer, such a message can only be about the previous connection.
        #expect(side.handle(.endedByServer(error), now: start).isEmpty)
    }

    @Test("a reset ends those who wait, and nothing is tried again")
    func resetting() {
        var side = connected()
        #expect(side.handle(.reset, now: start) == [.refused(.mediaReplaced), .step(.close)])
        #expect(side.nextTimeout == nil && !side.isOpen)
    }

    @Test("an engine that fails is not asked again without a pause")
    func failing() {
        var side = SFUTransport(receives: true)
        _ = side.handle(.negotiate, now: start)
        #expect(report(.failed(.noPeer), to: &side) == [.failed(.noPeer), .refused(.noPeer)])
        #expect(side.nextTimeout == start + .seconds(10))
    }

    @Test("a source that an engine cannot send is reported, and the connection continues")
    func notReplaced() {
        var side = connected()
        let source = MediaSource(media: UnknownMedia())
        var sending = TransceiverPlan(id: 2, kind: .video, direction: .sendOnly)
        sending.source = source
        _ = side.handle(.add(sending), now: start)
        #expect(report(.notReplaced(source, .unknownMedia), to: &side) == [.notSent(source, .unknownMedia)])
        let good = MediaSource(media: FakeMedia())
        #expect(side.handle(.replace(2, good), now: start) == [.step(.replace(2, good))])
        #expect(side.nextTimeout == nil && side.isOpen)
    }
}

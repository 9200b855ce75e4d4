import Signaling
import Testing
import Wire

@testable import Server

/// Returns 1, 2, 3, …
struct CountingGenerator: RandomNumberGenerator {
    private var last: UInt64 = 0
    mutating func next() -> UInt64 {
        last += 1
        return last
    }
}

@Suite("What happens on a socket becomes spans") struct SocketTracesTests {
    private static let trace = TraceID(high: 7, low: 7)
    private static let request = SpanID(rawValue: 100)
    private static let socket = SocketID(rawValue: 4)
    private static let client = ConnectionID(high: 0, low: 9)

    /// The machine, with one recorded socket, and a clock that advances by a nanosecond with each event.
    private struct Script {
        var traces = SocketTraces()
        var random = CountingGenerator()
        var now: UInt64 = 0

        init() {
            traces.opened(SocketTracesTests.socket, in: SocketTracesTests.trace, parent: SocketTracesTests.request)
        }

        mutating func time() -> TraceTime {
            now += 1
            return TraceTime(nanosecondsSinceEpoch: now)
        }

        mutating func receive(_ message: ClientMessage, _ seq: UInt64, on socket: SocketID = SocketTracesTests.socket) {
            let time = time()
            traces.received(Envelope(seq: seq, message: message), on: socket, at: time, using: &random)
        }

        mutating func send(_ message: ServerMessage) {
            let time = time()
            traces.sent(message, on: SocketTracesTests.socket, at: time)
        }

        /// Requests a stranger twice. The second request is accepted.
        mutating func searchTwice(firstAnswer: ServerMessage) {
            receive(SocketTracesTests.start, 1)
            send(firstAnswer)
            receive(SocketTracesTests.start, 2)
            send(SocketTracesTests.ok(2))
        }

        mutating func offer(_ re: UInt64) {
            let time = time()
            traces.offered(
                by: SocketTracesTests.client, re: re, .send, on: SocketTracesTests.socket, at: time, using: &random)
        }

        mutating func report(_ event: MediaEvent) {
            let time = time()
            traces.reported(event, at: time, using: &random)
        }

        mutating func close() {
            let time = time()
            traces.closed(SocketTracesTests.socket, at: time)
        }

        /// The spans that have ended, as text: name, id, parent, start and end, and the facts that a test looks at.
        mutating func ended() -> [String] {
            traces.takeFinished().map { span in
                let facts = span.attributes.filter { ["confab.outcome", "error.type"].contains($0.name) }.map { fact in
                    if case .text(let text) = fact.value { " \(text)" } else { "" }
                }
                let times = "\(span.start.nanosecondsSinceEpoch)-\(span.end.nanosecondsSinceEpoch)"
                return "\(span.name) \(span.id.rawValue)<\(span.parent?.rawValue ?? 0) \(times)\(facts.joined())"
            }
        }
    }

    private static func ok(_ re: UInt64) -> ServerMessage {
        var ok = ServerMessage.OK()
        ok.re = re
        return .ok(ok)
    }

    private static func error(_ re: UInt64) -> ServerMessage {
        .error(ServerMessage.Failure(WireError(.notPermitted, "No."), re: re))
    }

    private static let start = ClientMessage.roulette(.start(RouletteVerb.Start()))
    private static let offer = ClientMessage.media(.offer(MediaVerb.Offer(side: .send, sdp: "v=0")))
    private static let leave = ClientMessage.session(.leave(SessionVerb.Leave()))

    @Test("a request lasts until its answer, and an error marks it as failed")
    func requests() {
        var script = Script()
        script.receive(Self.leave, 1)
        script.receive(Self.leave, 2)
        script.send(Self.error(2))
        script.send(Self.ok(1))
        #expect(script.ended() == ["session.leave 2<100 2-3 not_permitted", "session.leave 1<100 1-4"])
        #expect(script.ended() == [])
    }

    @Test("sockets that are not recorded, and frequent messages, have no spans")
    func others() {
        var script = Script()
        script.receive(Self.leave, 1, on: SocketID(rawValue: 5))
        script.receive(.iceServers, 2)
        script.close()
        #expect(script.ended() == [] && script.traces.isEmpty)
    }

    @Test("the search for a stranger lasts from the first request to the match")
    func search() {
        var script = Script()
        script.searchTwice(firstAnswer: Self.ok(1))
        script.send(.roulette(.matched(RouletteNotice.Matched())))
        #expect(
            script.ended() == [
                "roulette.start 1<100 1-2", "roulette.start 3<100 3-4", "roulette match 2<1 1-5 matched",
            ])
    }

    @Test("a refused search has no span of its own, and one that is stopped ends")
    func stoppedSearch() {
        var script = Script()
        script.searchTwice(firstAnswer: Self.error(1))
        script.receive(.roulette(.stop), 3)
        #expect(
            script.ended() == [
                "roulette.start 1<100 1-2 not_permitted", "roulette.start 3<100 3-4", "roulette match 4<3 3-5 stopped",
            ])
    }

    @Test("a call lasts until it is accepted or ends")
    func call() {
        var script = Script()
        script.receive(.call(.start(CallVerb.Start())), 1)
        script.send(.call(.accepted(CallNotice.Accepted())))
        script.send(Self.ok(1))
        script.receive(.call(.start(CallVerb.Start())), 2)
        script.send(Self.ok(2))
        script.send(.call(.ended(CallNotice.Ended())))
        #expect(
            script.ended() == [
                "call 2<1 1-2 accepted", "call.start 1<100 1-3", "call.start 3<100 4-5",
                "call 4<3 4-6 \(CallNotice.Ended().reason.rawValue)",
            ])
    }

    @Test("an offer leads to the media plane's answer, and to the connection")
    func negotiation() {
        var script = Script()
        script.receive(Self.offer, 1)
        script.offer(1)
        script.report(.answered(Self.client, re: 1, .send, sdp: "v=0"))
        script.send(Self.ok(1))
        script.report(.connected(Self.client, .send, true))
        #expect(
            script.ended() == ["media negotiate 2<1 2-3", "media.offer 1<100 1-4", "media connect 3<2 3-5"])
        // Renegotiating a connection that has a path does not open it again.
        script.receive(Self.offer, 2)
        script.offer(2)
        script.report(.answered(Self.client, re: 2, .send, sdp: "v=0"))
        script.close()
        #expect(script.ended() == ["media negotiate 5<4 7-8", "media.offer 4<100 6-9 connection_closed"])
    }

    @Test("a refused offer and a connection that fails are errors")
    func failures() {
        let error = WireError(.descriptionInvalid, "No.")
        var script = Script()
        script.receive(Self.offer, 1)
        script.offer(1)
        script.report(.refused(Self.client, re: 1, error))
        script.receive(Self.offer, 2)
        script.offer(2)
        script.report(.answered(Self.client, re: 2, .send, sdp: "v=0"))
        script.report(.closed(Self.client, .send, error))
        #expect(
            script.ended() == [
                "media negotiate 2<1 2-3 description_invalid", "media negotiate 4<3 5-6",
                "media connect 5<4 6-7 description_invalid",
            ])
        // Events about clients without a recorded socket are ignored.
        script.close()
        script.report(.connected(Self.client, .send, true))
        #expect(script.ended().count == 2)
    }

    @Test("a client that sends without waiting for answers has a bounded number of spans")
    func bound() {
        var script = Script()
        for seq in 1...1000 { script.receive(Self.leave, UInt64(seq)) }
        for seq in 1...1000 { script.offer(UInt64(seq)) }
        script.close()
        #expect(script.ended().count == 2 * SocketTraces.maxOpen)
    }

    @Test("a span does not end before it began, although the clock was set back")
    func clock() {
        let start = TraceTime(nanosecondsSinceEpoch: 5)
        let span = TraceSpan("a", trace: Self.trace, id: Self.request, parent: nil, start: start)
        #expect(span.ended(at: TraceTime(nanosecondsSinceEpoch: 4)).end == start)
    }
}

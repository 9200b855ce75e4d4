import Signaling
import Testing
import Wire

@testable import Server

/// Tests of the Socket.IO 0.9 transports in simulated time.
@Suite("A Socket.IO connection") struct SocketIOConnectionTests {
    private typealias Poll = SocketIOConnection.PollID
    private let start = Timestamp(milliseconds: 1_000_000)

    private struct Stage {
        var connection: SocketIOConnection
        var now: Timestamp
        private var lastPoll: UInt64 = 0

        init(_ start: Timestamp, _ adjust: (inout SocketIOConnection.Settings) -> Void = { _ in }) {
            var settings = SocketIOConnection.Settings(ConfabConfiguration())
            adjust(&settings)
            now = start
            connection = SocketIOConnection(settings: settings, now: start)
        }

        mutating func handle(_ input: SocketIOConnection.Input) -> [SocketIOConnection.Output] {
            connection.handle(input, now: now)
        }

        mutating func say(_ text: String) -> [SocketIOConnection.Output] { handle(.received(Array(text.utf8))) }

        mutating func send(_ texts: String...) -> [SocketIOConnection.Output] {
            texts.flatMap { handle(.send(Array($0.utf8))) } + handle(.flush)
        }

        mutating func poll() -> (Poll, [SocketIOConnection.Output]) {
            lastPoll += 1
            let poll = Poll(rawValue: lastPoll)
            return (poll, handle(.polled(poll)))
        }

        /// Advances the time and returns the outputs.
        mutating func pass(_ duration: Duration) -> [SocketIOConnection.Output] {
            let end = now + duration
            var outputs: [SocketIOConnection.Output] = []
            while let next = connection.nextTimeout, next <= end {
                now = max(now, next)
                outputs += connection.handleTimeout(now: now)
            }
            now = end
            return outputs
        }
    }

    private func frame(_ text: String) -> SocketIOConnection.Output { .frame(Array(text.utf8)) }

    private func answer(_ poll: Poll, _ texts: String...) -> SocketIOConnection.Output {
        .answer(poll, texts.map { Array($0.utf8) })
    }

    // MARK: Budgets

    @Test func `requests over the address's budget get an error, and end the connection if they go on`() {
        var stage = Stage(start) { $0.refusals = .init(perSecond: 1, burst: 3) }
        let (_, first) = stage.poll()
        #expect(first.contains(.opened))
        #expect(stage.handle(.refused) == [])
        let (poll, outputs) = stage.poll()
        #expect(outputs == [answer(poll, "7:::rate_limited")])
        #expect(stage.handle(.refused) == [])
        #expect(stage.handle(.refused) == [])
        #expect(stage.connection.queuedBytes == 2 * "7:::rate_limited".utf8.count)
        #expect(stage.handle(.refused) == [.gone], "the next poll gets the packets and the disconnect")
        #expect(stage.poll().1.contains(.over))
    }

    @Test("limits that a reload has changed hold for connected clients too")
    func reload() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        #expect(stage.say("5:::{\"name\":\"next\"}").count == 1)
        stage.connection.settings.packets = .init(perSecond: 1, burst: 1)
        #expect(stage.say("5:::{\"name\":\"next\"}").count == 1)
        #expect(stage.say("5:::{\"name\":\"next\"}") == [frame("7:::rate_limited")])
    }

    // MARK: Handshakes

    @Test("an unused handshake expires after 30 s without opening a connection")
    func expiry() {
        var stage = Stage(start)
        #expect(stage.pass(.seconds(29)) == [])
        #expect(stage.pass(.seconds(2)) == [.over])
        #expect(stage.handle(.webSocketOpened) == [])
    }

    // MARK: WebSocket

    @Test("a WebSocket gets 1:: before anything else")
    func opening() {
        var stage = Stage(start)
        #expect(stage.handle(.webSocketOpened) == [frame("1::"), .opened])
        #expect(stage.send("5:::{}") == [frame("5:::{}")])
    }

    @Test("heartbeats are sent 25 s after the most recent one received")
    func heartbeats() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        #expect(stage.pass(.seconds(24)) == [])
        #expect(stage.say("2::") == [])
        #expect(stage.pass(.seconds(24)) == [])
        #expect(stage.pass(.seconds(2)) == [frame("2::")])
    }

    @Test("any frame keeps a client alive, even if it never answers heartbeats")
    func lenience() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        for _ in 0..<30 {
            #expect(!stage.pass(.seconds(10)).contains(.gone))
            #expect(stage.handle(.receivedFrame) == [])
        }
        #expect(stage.pass(.seconds(61)).suffix(3) == [.closeWebSocket(.goingAway), .gone, .over])
    }

    @Test("a closed WebSocket ends the connection, for any reason", arguments: ["close", "0::", "disconnect"])
    func ending(_ how: String) {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        let outputs =
            switch how {
            case "close": stage.handle(.webSocketClosed)
            case "0::": stage.say("0::")
            default: stage.handle(.disconnectRequested)
            }
        #expect(outputs.suffix(2) == [.gone, .over])
        #expect(stage.connection.isOver)
        #expect(stage.handle(.webSocketClosed) == [])
    }

    // MARK: Polling

    @Test("the first poll is answered immediately, the next one after 20 s with 8::")
    func polling() {
        var stage = Stage(start)
        let (first, opened) = stage.poll()
        #expect(opened == [answer(first, "1::"), .opened])
        let (second, nothing) = stage.poll()
        #expect(nothing == [])
        #expect(stage.pass(.seconds(19)) == [])
        #expect(stage.pass(.seconds(2)) == [answer(second, "8::")])
    }

    @Test("messages between two polls are sent together in the answer to the next poll, in order")
    func buffering() {
        var stage = Stage(start)
        _ = stage.poll()
        #expect(stage.send("a", "b") == [])
        #expect(stage.send("c") == [])
        let (poll, outputs) = stage.poll()
        #expect(outputs == [answer(poll, "a", "b", "c")])
        let (waiting, _) = stage.poll()
        #expect(stage.send("d", "e") == [answer(waiting, "d", "e")])
    }

    @Test("messages after an aborted poll are not lost")
    func abandoned() {
        var stage = Stage(start)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.handle(.pollLost(poll)) == [])
        #expect(stage.send("a") == [])
        let (next, outputs) = stage.poll()
        #expect(outputs == [answer(next, "a")])
    }

    @Test("an answer that was cut off is sent again before newer messages")
    func lostAnswer() {
        var stage = Stage(start)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.send("a", "b") == [answer(poll, "a", "b")])
        #expect(stage.send("c") == [])
        #expect(stage.handle(.pollLost(poll)) == [])
        let (next, outputs) = stage.poll()
        #expect(outputs == [answer(next, "a", "b", "c")])
        // Once the client has received the answer, it is not sent again.
        _ = stage.poll()
        #expect(stage.handle(.pollLost(next)) == [])
        #expect(stage.send("d").count == 1)
    }

    @Test("a lost noop is not sent again")
    func lostNoop() {
        var stage = Stage(start)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.pass(.seconds(21)) == [answer(poll, "8::")])
        #expect(stage.handle(.pollLost(poll)) == [])
        #expect(stage.poll().1 == [])
    }

    @Test("a second poll ends the first")
    func twoPolls() {
        var stage = Stage(start)
        _ = stage.poll()
        let (first, _) = stage.poll()
        let (second, outputs) = stage.poll()
        #expect(outputs == [answer(first, "8::")])
        #expect(stage.send("a") == [answer(second, "a")])
    }

    @Test("a client that does not poll or post for 60 s is gone")
    func closeTimeout() {
        var stage = Stage(start)
        _ = stage.poll()
        #expect(stage.pass(.seconds(50)) == [])
        #expect(stage.say("2::") == [])
        #expect(stage.pass(.seconds(50)) == [])
        #expect(stage.pass(.seconds(11)) == [.gone, .over])
    }

    @Test("a client that does not poll within 15 s of a poll that was cut off is gone")
    func lostPollTimeout() {
        var stage = Stage(start)
        _ = stage.poll()
        let (first, _) = stage.poll()
        #expect(stage.handle(.pollLost(first)) == [])
        #expect(stage.pass(.seconds(14)) == [])
        let (second, _) = stage.poll()
        #expect(stage.handle(.pollLost(second)) == [])
        #expect(stage.pass(.seconds(14)) == [])
        #expect(stage.pass(.seconds(2)) == [.gone, .over])
    }

    @Test("the timeout after a poll that was cut off is not longer than the normal one")
    func shortCloseTimeout() {
        var stage = Stage(start) { $0.times.closeTimeout = .seconds(5) }
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.handle(.pollLost(poll)) == [])
        #expect(stage.pass(.seconds(6)) == [.gone, .over])
    }

    @Test("too many messages between two polls end the connection")
    func bounded() {
        var stage = Stage(start) { $0.queuedPackets = 4 }
        _ = stage.poll()
        #expect(stage.send("a", "b", "c", "d") == [])
        #expect(stage.send("e") == [.gone, .over])
        var large = Stage(start) { $0.queuedBytes = 10 }
        _ = large.poll()
        #expect(large.send("0123456789a") == [.gone, .over])
    }

    @Test("a client that is removed between two polls is notified at the next one")
    func booted() {
        var stage = Stage(start)
        _ = stage.poll()
        #expect(stage.handle(.end(.booted)) == [.gone])
        let (poll, outputs) = stage.poll()
        #expect(outputs == [answer(poll, "0::"), .over])
        var silent = Stage(start)
        _ = silent.poll()
        _ = silent.handle(.end(.booted))
        #expect(silent.pass(.seconds(61)) == [.over])
    }

    @Test("a client that is removed while it waits is notified immediately, on any transport")
    func bootedNow() {
        var polling = Stage(start)
        _ = polling.poll()
        let (poll, _) = polling.poll()
        #expect(polling.handle(.end(.booted)) == [answer(poll, "0::"), .gone, .over])
        var socket = Stage(start)
        _ = socket.handle(.webSocketOpened)
        #expect(socket.handle(.end(.booted)) == [frame("0::"), .closeWebSocket(.normal), .gone, .over])
    }

    /// The server must not send `0::`, because the client would then not reconnect.
    @Test("a server restart closes the connection without a message")
    func goingAway() {
        var socket = Stage(start)
        _ = socket.handle(.webSocketOpened)
        #expect(socket.handle(.end(.goingAway)) == [.closeWebSocket(.goingAway), .gone, .over])
        var polling = Stage(start)
        _ = polling.poll()
        let (poll, _) = polling.poll()
        #expect(polling.handle(.end(.goingAway)) == [answer(poll, "8::"), .gone, .over])
    }

    // MARK: Changing transports

    @Test("a client whose WebSocket fails gets all messages by polling")
    func fallingBack() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        _ = stage.send("a")
        let (poll, outputs) = stage.poll()
        #expect(outputs == [.closeWebSocket(.normal), answer(poll, "1::", "a")])
        #expect(stage.handle(.webSocketClosed) == [], "closing the abandoned WebSocket has no effect")
    }

    @Test("a client that changes its transport gets no message twice")
    func upgrading() {
        var stage = Stage(start)
        _ = stage.poll()
        _ = stage.poll()
        _ = stage.say("2::")
        let outputs = stage.handle(.webSocketOpened)
        #expect(outputs.count == 1, "the waiting poll ends")
        #expect(stage.send("a") == [frame("a")])
    }

    // MARK: Packets

    @Test(
        "packets and their answers",
        arguments: [
            ("5:::{\"name\":\"next\",\"args\":[{}]}", ["asked next"]),
            ("5:::{\"name\":\"disconnectPartners\"}", ["asked disconnectPartners"]),
            ("5:3::{\"name\":\"next\"}", ["6:::3", "asked next"]),
            ("5:3+::{\"name\":\"next\"}", ["6:::3+[]", "asked next"]),
            ("3:3::hi", ["6:::3", "7:::unknown_type"]),
            ("4:::{}", ["7:::unknown_type"]),
            ("5:::{\"name\":\"subscribe\"}", ["7:::unknown_type"]),
            ("5:::nonsense", ["7:::malformed"]),
            ("nonsense", ["7:::malformed"]),
            ("1::", ["1::"]),
            ("1::/lobby?x=1", ["7::/lobby:2"]),
            ("5::/lobby:{\"name\":\"next\"}", ["7::/lobby:2"]),
            ("0::/lobby", []), ("2::", []), ("2", []), ("6:::1", []), ("7:::1+0", []), ("8::", []),
        ])
    func packets(_ text: String, _ expected: [String]) {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        let outputs = stage.say(text).map { output in
            switch output {
            case .frame(let bytes): String(decoding: bytes, as: UTF8.self)
            case .asked(let request): "asked \(request.rawValue)"
            default: "\(output)"
            }
        }
        #expect(outputs == expected)
    }

    @Test("packets of one payload are handled in order")
    func payload() {
        var stage = Stage(start)
        _ = stage.poll()
        let next = "5:::{\"name\":\"next\"}"
        let end = "5:::{\"name\":\"disconnectPartners\"}"
        let outputs = stage.say("\u{FFFD}\(next.count)\u{FFFD}\(next)\u{FFFD}\(end.count)\u{FFFD}\(end)")
        #expect(outputs == [.counted(1), .asked(.next), .asked(.disconnectPartners)])
    }

    @Test("each packet of a payload counts for the address, and a payload that cannot be read counts once")
    func counting() {
        var stage = Stage(start)
        _ = stage.poll()
        let payload = String(repeating: "\u{FFFD}3\u{FFFD}2::", count: SocketIOPayload.maxPackets)
        #expect(stage.say(payload).first == .counted(SocketIOPayload.maxPackets - 1))
        #expect(stage.say("2::") == [])
        #expect(stage.say(payload + "\u{FFFD}3\u{FFFD}2::") == [])
    }

    @Test("a flooding client is rejected and then disconnected")
    func flood() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        var outputs: [SocketIOConnection.Output] = []
        for _ in 0..<400 { outputs += stage.say("5:::{\"name\":\"next\"}") }
        #expect(outputs.count { $0 == .asked(.next) } == 100)
        #expect(outputs.count { $0 == frame("7:::rate_limited") } == 200)
        #expect(outputs.suffix(4) == [frame("0::"), .closeWebSocket(.normal), .gone, .over])
    }

    @Test("a client that keeps sending malformed packets is disconnected")
    func nonsense() {
        var stage = Stage(start)
        _ = stage.handle(.webSocketOpened)
        var outputs: [SocketIOConnection.Output] = []
        for _ in 0..<12 { outputs += stage.say("nonsense") }
        #expect(outputs.count { $0 == frame("7:::malformed") } == 11)
        #expect(outputs.last == .over)
    }
}

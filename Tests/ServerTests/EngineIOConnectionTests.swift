import Signaling
import Testing
import Wire

@testable import Server

/// Tests of Engine.IO 3 and 4 and of Socket.IO's packets on them, in simulated time.
@Suite("An Engine.IO connection") struct EngineIOConnectionTests {
    private typealias Output = SocketIOOutput

    private struct Stage {
        var connection: EngineIOConnection
        var now = Timestamp(milliseconds: 1_000_000)
        private var lastPoll: UInt64 = 0

        init(
            _ version: EngineIOVersion = .four, _ transport: EngineIOConnection.Transport = .webSocket,
            name: String = "one", canRecover: Bool = true,
            _ adjust: (inout SocketIOConnection.Settings) -> Void = { _ in }
        ) {
            var settings = SocketIOConnection.Settings(ConfabConfiguration())
            adjust(&settings)
            let names = EngineIOConnection.Names(
                id: "\(name)-id", sid: "\(name)-sid", pid: canRecover ? "\(name)-pid" : nil)
            connection = EngineIOConnection(version, transport, names: names, settings: settings, now: now)
        }

        mutating func handle(_ input: SocketIOInput) -> [Output] { connection.handle(input, now: now) }

        /// Opens a connection on a WebSocket, and its namespace.
        mutating func open() {
            _ = handle(.webSocketOpened)
            if connection.version == .four { _ = say("40") }
        }

        mutating func say(_ text: String) -> [Output] { handle(.received(Array(text.utf8))) }

        mutating func post(_ texts: String...) -> [Output] {
            handle(.packets(texts.compactMap { try? EngineIOPacket(parsing: $0.utf8, connection.version) }))
        }

        mutating func send(_ texts: String...) -> [Output] {
            texts.flatMap { handle(.send(Array($0.utf8))) } + handle(.flush)
        }

        mutating func poll() -> (SocketIOPollID, [Output]) {
            lastPoll += 1
            let poll = SocketIOPollID(rawValue: lastPoll)
            return (poll, handle(.polled(poll)))
        }

        /// Advances the time and returns the outputs.
        mutating func pass(_ duration: Duration) -> [Output] {
            let end = now + duration
            var outputs: [Output] = []
            while let next = connection.nextTimeout, next <= end {
                now = max(now, next)
                outputs += connection.handleTimeout(now: now)
            }
            now = end
            return outputs
        }
    }

    private func frame(_ text: String) -> Output { .frame(Array(text.utf8)) }

    private func answer(_ poll: SocketIOPollID, _ texts: String...) -> Output {
        .answer(poll, texts.map { Array($0.utf8) })
    }

    private func text(_ outputs: [Output]) -> [String] {
        outputs.map { output in
            switch output {
            case .frame(let bytes): String(decoding: bytes, as: UTF8.self)
            case .asked(let request): "asked \(request.rawValue)"
            default: "\(output)"
            }
        }
    }

    // MARK: Opening

    @Test("a WebSocket gets the open packet, and opens the namespace on request")
    func opening() {
        var stage = Stage()
        let opened = text(stage.handle(.webSocketOpened))
        #expect(
            opened == [
                "0{\"sid\":\"one-id\",\"upgrades\":[],\"pingInterval\":25000,\"pingTimeout\":35000,\"maxPayload\":65536}"
            ])
        #expect(text(stage.say("40{\"token\":1}")) == ["40{\"sid\":\"one-sid\",\"pid\":\"one-pid\"}", "opened"])
        #expect(stage.send("2[\"empty\"]") == [frame("42[\"empty\",\"one-sid-1\"]")])
    }

    @Test("a client of version 3 is in the namespace at once")
    func openingThree() {
        var stage = Stage(.three)
        #expect(stage.handle(.webSocketOpened).suffix(2) == [frame("40"), .opened])
        #expect(stage.send("2[\"empty\"]") == [frame("42[\"empty\"]")])
        #expect(stage.say("40") == [], "Python's client sends this too")
    }

    @Test("a client that cannot recover gets no secret and no offsets")
    func withoutRecovery() {
        var stage = Stage(canRecover: false)
        _ = stage.handle(.webSocketOpened)
        #expect(stage.say("40") == [frame("40{\"sid\":\"one-sid\"}"), .opened])
        #expect(stage.send("2[\"empty\"]") == [frame("42[\"empty\"]")])
        #expect(stage.handle(.webSocketDropped) == [.gone, .over])
    }

    @Test("a client that opens no namespace within 30 s is closed", arguments: EngineIOVersion.allCases)
    func noNamespace(_ version: EngineIOVersion) {
        var unused = Stage(version, .polling)
        #expect(unused.pass(.seconds(29)).filter { $0 == .over }.isEmpty)
        #expect(unused.pass(.seconds(2)) == [.over])
        var unopened = Stage(version)
        #expect(unopened.pass(.seconds(31)) == [.over])
        guard version == .four else { return }
        var silent = Stage()
        _ = silent.handle(.webSocketOpened)
        #expect(silent.pass(.seconds(31)).suffix(2) == [.closeWebSocket(.timeout), .over])
    }

    @Test("other namespaces are refused, and the connection continues")
    func namespaces() {
        var stage = Stage()
        _ = stage.handle(.webSocketOpened)
        #expect(text(stage.say("40/admin,{}")) == ["44/admin,{\"message\":\"Invalid namespace\"}"])
        #expect(stage.say("41/admin,") == [])
        #expect(stage.say("40").last == .opened)
        var old = Stage(.three)
        old.open()
        #expect(text(old.say("40/admin?x=1,")) == ["44/admin,\"Invalid namespace\""])
    }

    @Test("a client that leaves the namespace can open it again")
    func reopening() {
        var stage = Stage()
        stage.open()
        #expect(stage.say("41") == [.gone])
        #expect(stage.send("2[\"empty\"]") == [])
        #expect(stage.say("40").last == .opened)
    }

    // MARK: Packets

    @Test(
        "packets and their answers",
        arguments: [
            ("42[\"next\",{}]", ["asked next"]), ("42[\"disconnectPartners\"]", ["asked disconnectPartners"]),
            ("4212[\"next\"]", ["4312[]", "asked next"]),
            ("423[\"other\"]", ["433[]", "42[\"error\",\"unknown_type\",\"one-sid-1\"]"]),
            ("42[\"other\"]", ["42[\"error\",\"unknown_type\",\"one-sid-1\"]"]), ("431[]", []), ("3", []), ("6", []),
        ])
    func packets(_ packet: String, _ expected: [String]) {
        var stage = Stage()
        stage.open()
        #expect(text(stage.say(packet)) == expected)
    }

    @Test(
        "a packet that breaks the protocol ends the connection",
        arguments: [
            "", "9", "x", "2", "4", "49", "42", "42{}", "42[]", "42[1]", "42[\"next\"", "40", "44\"x\"",
            "42/admin,[\"next\"]", "499999999999999999999[\"next\"]", "451-[\"next\"]\u{0}", "4517-[\"next\"]", "bAA==",
        ])
    func violations(_ packet: String) {
        var stage = Stage()
        stage.open()
        let outputs = stage.say(packet) + (packet.hasPrefix("451-") ? stage.say("42[\"next\"]") : [])
        #expect(outputs == [.closeWebSocket(.malformed), .gone, .over])
        #expect(stage.say("42[\"next\"]") == [])
    }

    @Test(
        "an event before the namespace is open ends the connection",
        arguments: ["42[\"next\"]", "40[]", "40{", "451-[\"next\"]"])
    func early(_ packet: String) {
        var stage = Stage()
        _ = stage.handle(.webSocketOpened)
        #expect(stage.say(packet) == [.closeWebSocket(.malformed), .over])
    }

    @Test("an event with attachments is handled when all have arrived, in either form")
    func attachments() {
        var stage = Stage()
        stage.open()
        #expect(stage.say("452-7[\"next\",{\"_placeholder\":true,\"num\":0}]") == [])
        #expect(stage.handle(.receivedBinary([1, 2])) == [])
        #expect(text(stage.say("bAQI=")) == ["437[]", "asked next"])
        #expect(stage.handle(.receivedBinary([1])).last == .over, "no attachment is expected")
        var old = Stage(.three)
        old.open()
        #expect(old.say("451-[\"next\"]") == [])
        #expect(text(old.handle(.receivedBinary([4, 1]))) == ["asked next"])
        #expect(old.handle(.receivedBinary([3, 1])).last == .over)
    }

    @Test("a flooding client is refused and then disconnected for good")
    func flood() {
        var stage = Stage()
        stage.open()
        var outputs: [Output] = []
        for _ in 0..<400 { outputs += stage.say("42[\"next\"]") }
        #expect(outputs.count { $0 == .asked(.next) } == 99)
        #expect(outputs.suffix(4) == [frame("41"), .closeWebSocket(.tooMany), .gone, .over])
    }

    @Test("an event that exceeds the rate limit is refused with its attachments, and the connection continues")
    func floodedAttachments() {
        // Either the event, which is the third packet, or its first attachment exceeds the limit.
        for capacity in [2.0, 3.0] {
            var stage = Stage { $0.packets = Budget.Rate(perSecond: 1, burst: capacity) }
            stage.open()
            #expect(text(stage.say("42[\"next\"]")) == ["asked next"])
            var outputs = stage.say("452-7[\"next\",{\"_placeholder\":true,\"num\":0}]")
            outputs += stage.handle(.receivedBinary([1]))
            outputs += stage.say("bAQI=")
            let errors = outputs.indices.map { "42[\"error\",\"rate_limited\",\"one-sid-\($0 + 1)\"]" }
            #expect(text(outputs) == errors && outputs.count == 5 - Int(capacity), "\(capacity)")
            _ = stage.pass(.seconds(3))
            #expect(text(stage.say("42[\"next\"]")) == ["asked next"], "\(capacity)")
            #expect(stage.handle(.receivedBinary([1])).last == .over, "no attachment is missing any more")
        }
    }

    // MARK: Heartbeats

    @Test("the server pings every 25 s in version 4, and drops a client that is silent for 60 s")
    func pings() {
        var stage = Stage(canRecover: false)
        stage.open()
        #expect(stage.pass(.seconds(24)) == [])
        #expect(stage.pass(.seconds(2)) == [frame("2")])
        #expect(stage.say("3") == [])
        #expect(stage.pass(.seconds(58)) == [frame("2"), frame("2")])
        #expect(stage.pass(.seconds(5)) == [.closeWebSocket(.goingAway), .gone, .over])
    }

    @Test("the client pings in version 3, and may not answer pings")
    func pingsThree() {
        var stage = Stage(.three)
        stage.open()
        #expect(stage.pass(.seconds(50)) == [])
        #expect(stage.say("2abc") == [frame("3abc")])
        #expect(stage.pass(.seconds(50)) == [])
        #expect(stage.pass(.seconds(15)).last == .over)
        var wrong = Stage(.three)
        wrong.open()
        #expect(wrong.say("3").last == .over)
    }

    // MARK: Polling

    @Test("a poll waits for packets, and ends after 20 s")
    func polling() {
        var stage = Stage(.four, .polling)
        let (first, nothing) = stage.poll()
        #expect(nothing == [])
        #expect(
            stage.post("40") == [.opened, answer(first, "40{\"sid\":\"one-sid\",\"pid\":\"one-pid\"}")])
        let (second, _) = stage.poll()
        #expect(
            stage.send("2[\"a\"]", "2[\"b\"]") == [answer(second, "42[\"a\",\"one-sid-1\"]", "42[\"b\",\"one-sid-2\"]")]
        )
        let (third, _) = stage.poll()
        #expect(stage.pass(.seconds(21)) == [answer(third, "6")])
    }

    @Test("the first poll of version 3 gets the packet that opens the namespace")
    func pollingThree() {
        var stage = Stage(.three, .polling)
        let (first, outputs) = stage.poll()
        #expect(outputs == [.opened, answer(first, "40")])
    }

    @Test("a second poll ends the connection, and the first one is answered")
    func twoPolls() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.connection.acceptance(ofPoll: true) == .overlapping)
        #expect(stage.handle(.overlapped) == [answer(poll, "1"), .gone, .over])
        #expect(stage.connection.acceptance(ofPoll: true) == .unknown)
    }

    @Test("packets of a lost answer are sent again, in order")
    func lostAnswer() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        _ = stage.send("2[\"a\"]")
        #expect(stage.send("2[\"b\"]") == [])
        #expect(stage.handle(.pollLost(poll)) == [])
        let (next, outputs) = stage.poll()
        #expect(outputs == [answer(next, "42[\"a\"]", "42[\"b\"]")])
    }

    @Test("a client that does not poll within 15 s of a lost poll is gone")
    func lostPoll() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.handle(.pollLost(poll)) == [])
        #expect(stage.pass(.seconds(14)) == [])
        #expect(stage.pass(.seconds(2)) == [.gone, .over])
    }

    @Test("too many packets between two polls end the connection")
    func bounded() {
        var stage = Stage(.three, .polling) { $0.queuedPackets = 2 }
        _ = stage.poll()
        #expect(stage.send("2[\"a\"]", "2[\"b\"]") == [])
        #expect(stage.send("2[\"c\"]") == [.gone, .over])
    }

    @Test("a connection that is full when its client opens the namespace is opened before it ends")
    func fullAtOpening() {
        var stage = Stage(.four, .polling) { $0.queuedPackets = 2 }
        #expect(stage.post("40/a,", "40/b,", "40") == [.counted(2), .opened, .gone, .over])
    }

    @Test("a malformed body ends the connection")
    func unreadable() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.handle(.unreadable) == [answer(poll, "1"), .gone, .over])
    }

    @Test("a client that is removed between two polls is notified at the next one")
    func booted() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        #expect(stage.handle(.end(.booted)) == [.gone])
        let (poll, outputs) = stage.poll()
        #expect(outputs == [answer(poll, "41", "1"), .over])
        var socket = Stage()
        socket.open()
        #expect(socket.handle(.end(.booted)) == [frame("41"), .closeWebSocket(.normal), .gone, .over])
        var restart = Stage()
        restart.open()
        #expect(restart.handle(.end(.goingAway)) == [.closeWebSocket(.goingAway), .gone, .over])
    }

    // MARK: The upgrade

    @Test("an upgrade is probed, ends the open poll, and continues with the packets that waited")
    func upgrade() {
        var stage = Stage(.four, .polling)
        _ = stage.post("40")
        _ = stage.poll()
        let (poll, _) = stage.poll()
        #expect(stage.handle(.webSocketOpened) == [])
        #expect(stage.connection.acceptsUpgrade == .unsuitable)
        #expect(stage.say("2probe") == [frame("3probe"), answer(poll, "6")])
        #expect(stage.send("2[\"a\"]") == [])
        #expect(stage.say("5") == [frame("42[\"a\",\"one-sid-1\"]")])
        #expect(stage.connection.acceptance(ofPoll: false) == .unsuitable)
        #expect(stage.send("2[\"b\"]") == [frame("42[\"b\",\"one-sid-2\"]")])
    }

    @Test("a client of version 3 that upgrades before its first poll is in the namespace after it")
    func earlyUpgrade() {
        var stage = Stage(.three, .polling)
        _ = stage.handle(.webSocketOpened)
        #expect(stage.say("2probe") == [frame("3probe")])
        #expect(stage.say("5") == [frame("40"), .opened])
    }

    @Test("a poll during the upgrade ends after 100 ms, or at once with what waits or with the switch")
    func pollDuringUpgrade() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        _ = stage.handle(.webSocketOpened)
        _ = stage.say("2probe")
        let (first, nothing) = stage.poll()
        #expect(nothing == [])
        #expect(stage.pass(.milliseconds(99)) == [])
        #expect(stage.pass(.milliseconds(1)) == [answer(first, "6")])
        let (second, _) = stage.poll()
        #expect(stage.send("2[\"a\"]") == [answer(second, "42[\"a\"]")])
        let (third, _) = stage.poll()
        #expect(stage.say("5") == [answer(third, "6")])
    }

    @Test("an upgrade that is not finished within 30 s is closed, and polling continues")
    func unfinishedUpgrade() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        _ = stage.handle(.webSocketOpened)
        _ = stage.say("2probe")
        for _ in 0..<2 {
            _ = stage.post("6")
            #expect(stage.pass(.seconds(14)) == [])
        }
        #expect(stage.pass(.seconds(3)) == [.closeWebSocket(.timeout)])
        let (poll, _) = stage.poll()
        #expect(stage.send("2[\"a\"]") == [answer(poll, "42[\"a\"]")])
    }

    @Test(
        "anything but a probe ends the upgrade and not the connection",
        arguments: ["5", "2", "2other", "42[\"next\"]", "x"])
    func wrongProbe(_ packet: String) {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        _ = stage.handle(.webSocketOpened)
        #expect(stage.say(packet) == [.closeWebSocket(.malformed)])
        #expect(stage.connection.acceptsUpgrade == .accepted)
    }

    // MARK: Recovery

    @Test("a dropped connection is recovered by another one, with the events that were missed")
    func recovery() throws {
        var first = Stage()
        first.open()
        _ = first.send("2[\"a\"]", "2[\"b\"]")
        #expect(first.handle(.webSocketDropped) == [.suspended])
        #expect(first.send("2[\"c\"]") == [])
        #expect(first.connection.acceptance(ofPoll: true) == .unknown)
        var second = Stage(name: "two")
        _ = second.handle(.webSocketOpened)
        #expect(
            second.say("40{\"pid\":\"one-pid\",\"offset\":\"one-sid-1\"}") == [
                .recover(pid: "one-pid", offset: "one-sid-1")
            ])
        let handedOver = first.connection.handOver()
        let (state, outputs) = try #require(handedOver)
        #expect(outputs == [.over] && first.connection.isOver)
        #expect(
            text(second.handle(.recovery(state))) == [
                "40{\"sid\":\"one-sid\",\"pid\":\"one-pid\"}", "42[\"b\",\"one-sid-2\"]", "42[\"c\",\"one-sid-3\"]",
                "recovered",
            ])
        #expect(second.send("2[\"d\"]") == [frame("42[\"d\",\"one-sid-4\"]")])
        #expect(second.connection.pid == "one-pid")
    }

    @Test("packets that follow a request for recovery in the same body are handled after the recovery")
    func packetsAfterRecovery() throws {
        for isKnown in [true, false] {
            var (first, second) = (Stage(), Stage(.four, .polling, name: "two"))
            first.open()
            _ = first.send("2[\"a\"]", "2[\"b\"]") + first.handle(.webSocketDropped)
            let (poll, _) = second.poll()
            #expect(
                second.post("40{\"pid\":\"one-pid\",\"offset\":\"one-sid-1\"}", "427[\"next\"]", "3") == [
                    .counted(2), .recover(pid: "one-pid", offset: "one-sid-1"),
                ])
            let handedOver = first.connection.handOver()
            let state = try #require(handedOver).state
            let outputs = second.handle(.recovery(isKnown ? state : nil))
            let known = answer(
                poll, "40{\"sid\":\"one-sid\",\"pid\":\"one-pid\"}", "42[\"b\",\"one-sid-2\"]", "437[]")
            let unknown = answer(poll, "40{\"sid\":\"two-sid\",\"pid\":\"two-pid\"}", "437[]")
            #expect(
                outputs == (isKnown ? [.recovered, .asked(.next), known] : [.opened, .asked(.next), unknown]))
        }
    }

    @Test("events kept for recovery count as queued until a pong confirms them, and never end a live connection")
    func countedRecovery() {
        var stage = Stage { $0.queuedBytes = 40 }
        stage.open()
        #expect(stage.connection.queuedBytes == 0)
        let event = "2[\"a\",\"one-sid-1\"]".utf8.count
        #expect(stage.send("2[\"a\"]", "2[\"b\"]", "2[\"c\"]").count == 3)
        #expect(stage.connection.queuedBytes == 3 * event)
        #expect(stage.pass(.seconds(26)) == [frame("2")])
        #expect(stage.send("2[\"d\"]").count == 1)
        #expect(stage.say("3") == [])
        #expect(stage.connection.queuedBytes == event, "the client sent the pong after it had received the first three")
        #expect(stage.connection.canHandOver(after: "one-sid-3") && !stage.connection.canHandOver(after: "one-sid-2"))
    }

    @Test("a connection can be recovered for 30 s, and only after a drop")
    func recoveryTime() {
        var stage = Stage()
        stage.open()
        #expect(stage.handle(.webSocketDropped) == [.suspended])
        #expect(stage.pass(.seconds(29)) == [])
        #expect(stage.pass(.seconds(2)) == [.gone, .over])
        let late = stage.connection.handOver()
        #expect(late == nil)
        for packet in ["41", "1"] {
            var leaving = Stage()
            leaving.open()
            _ = leaving.say(packet)
            let left = leaving.connection.handOver()
            #expect(left == nil)
        }
        var closed = Stage()
        closed.open()
        #expect(closed.handle(.webSocketClosed) == [.gone, .over])
    }

    @Test(
        "a client that cannot continue where it was gets a new connection",
        arguments: ["\"one-sid-9\"", "\"1\"", "\"two-sid-1\"", "\"one-sid--1\"", "\"one-sid-x\""])
    func unknownOffset(_ offset: String) throws {
        var (first, second) = (Stage(), Stage(name: "two"))
        first.open()
        _ = first.send("2[\"a\"]")
        _ = first.handle(.webSocketDropped)
        _ = second.handle(.webSocketOpened)
        let text = String(offset.dropFirst().dropLast())
        #expect(
            second.say("40{\"pid\":\"one-pid\",\"offset\":\(offset)}") == [.recover(pid: "one-pid", offset: text)])
        #expect(!first.connection.canHandOver(after: text) && first.connection.canHandOver(after: "one-sid-1"))
        #expect(self.text(second.handle(.recovery(nil))) == ["40{\"sid\":\"two-sid\",\"pid\":\"two-pid\"}", "opened"])
    }

    @Test("events that are no longer kept cannot be recovered")
    func forgottenEvents() {
        var state = SocketIORecovery(sid: "a", pid: "b")
        _ = state.stamp(Array("2[\"a\"]".utf8))
        #expect(state.missed(after: "a-9") == nil && state.missed(after: "x") == nil)
        #expect(state.missed(after: nil)?.count == 1)
        for _ in 0..<SocketIORecovery.maxEvents { _ = state.stamp(Array("2[\"a\"]".utf8)) }
        #expect(state.missed(after: nil) == nil, "the first event is no longer kept")
        #expect(state.missed(after: "a-1")?.count == SocketIORecovery.maxEvents)
    }

    @Test("a client of version 3 that left stays away, although it polls")
    func leftAway() {
        var stage = Stage(.three, .polling)
        _ = stage.poll()
        _ = stage.post("41")
        let (_, outputs) = stage.poll()
        #expect(!outputs.contains(.opened))
    }

    @Test("events for a suspended connection are bounded")
    func boundedRecovery() {
        var stage = Stage { $0.queuedBytes = 40 }
        stage.open()
        _ = stage.handle(.webSocketDropped)
        #expect(stage.send("2[\"a\"]") == [] && stage.send("2[\"b\"]") == [])
        #expect(stage.send("2[\"c\"]") == [.gone, .over])
    }
}

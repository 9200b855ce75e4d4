import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing
import Wire

@testable import Server

/// A client, a router and endpoints that do anything in any order, around an `HTTPConnection`. Records the rules that are broken.
private struct HTTPModel {
    /// What happened to a request that began.
    private enum Work: Equatable { case routed, routedWhole, performed }

    private enum Phase: Equatable { case http, last, upgraded, closed }

    private var random: SeededGenerator
    private var connection: HTTPConnection
    private var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private(set) var faults: [String] = []
    private(set) var answers = 0
    private(set) var upgrades = 0

    /// The URIs of the requests that the client began to send, and of those that the machine began to handle.
    private var sent: [String] = []
    private var begun = 0
    /// The rest of the request that the client is sending.
    private var rest: [HTTPConnection.Input] = []
    private var work: (kind: Work, hasHead: Bool)?
    private var phase = Phase.http
    private var turns = 0
    private var isUnparsable = false
    private var hasSentUpgrade = false
    private var isInputClosed = false
    private var hasRouted = false

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        connection = HTTPConnection(
            settings: HTTPConnection.Settings(ConfabConfiguration(), peer: IPAddress(peer: nil)), now: now)
    }

    /// The requests that wait for their turn.
    private var waiting: Int { sent.count - begun }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func run(steps: Int) {
        for _ in 0..<steps where phase != .closed { step() }
        settle()
    }

    private mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<45: sendMore()
        case ..<55: handle(.read)
        case ..<75: respond()
        case ..<88: if turns > 0 { turn() }
        case ..<93: handle(.writable(chance(60)))
        case ..<95: handle(.bodyWanted)
        case ..<98: pass(.seconds(Int64.random(in: 0...12, using: &random)))
        case 98: if chance(10) { handle(.quiesce) }
        default: if chance(20) { sendGarbage() } else if chance(10) { closeInput() }
        }
    }

    // MARK: The client

    private mutating func closeInput() {
        isInputClosed = true
        handle(.inputClosed)
        if phase == .http, !hasRouted { faults.append("the connection is open, but the client closed its side") }
    }

    private mutating func sendMore() {
        guard phase != .upgraded, !isUnparsable, !isInputClosed else { return }
        if rest.isEmpty {
            // The parser stops at a request for an upgrade.
            guard !hasSentUpgrade, sent.count < 40 else { return }
            rest = nextRequest()
        }
        let part = rest.removeFirst()
        if case .received(.head(let head)) = part {
            sent.append(head.uri)
            hasSentUpgrade = head.headers.contains(name: "Upgrade")
        }
        handle(part)
    }

    private mutating func nextRequest() -> [HTTPConnection.Input] {
        var head =
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: HTTPRequestHead.health
            case 4..<8: HTTPRequestHead.poll
            case 8: chance(50) ? HTTPRequestHead.webSocket : .legacySocket
            default: chance(50) ? HTTPRequestHead.request("/whip/1_MX4x", .POST) : chance(50) ? .upload : .waitingUpload
            }
        // The query makes each request recognizable.
        head.uri += "?\(sent.count)"
        let sizes = (0..<Int.random(in: 0...2, using: &random)).map { _ in chance(3) ? 1 << 20 : 10 }
        return [.head(head)] + sizes.map { .body($0) } + [.end]
    }

    private mutating func sendGarbage() {
        guard phase != .upgraded, !isInputClosed, rest.isEmpty, !hasSentUpgrade, !isUnparsable else { return }
        isUnparsable = true
        handle(.unparsable(.notHTTP))
    }

    // MARK: The server

    private mutating func respond() {
        guard let work else { return handle(chance(50) ? .ok : .responseEnd) }
        switch work.kind {
        case .performed: handle(isHandshake && chance(50) ? .accepted : .ok)
        case .routed, .routedWhole:
            if !work.hasHead {
                self.work?.hasHead = true
                handle(.responseHead)
            } else {
                handle(.responseEnd)
            }
        }
    }

    /// True if the request that is handled is a WebSocket handshake that needs admission.
    private var isHandshake: Bool {
        begun > 0 && phase == .http && sent[begun - 1].hasPrefix(HTTPRequestHead.legacySocket.uri)
    }

    private mutating func turn() {
        turns -= 1
        handle(.turn)
    }

    private mutating func pass(_ time: TimeAmount) {
        now = now + time
        if let timeout = connection.nextTimeout, now >= timeout { check(connection.handleTimeout(now: now)) }
    }

    private mutating func handle(_ input: HTTPConnection.Input) { check(connection.handle(input, now: now)) }

    /// Lets everybody do what they still have to, and checks that no request is left without an answer.
    private mutating func settle() {
        handle(.writable(true))
        for _ in 0..<1000 where phase == .http {
            if turns > 0 {
                turn()
            } else if work != nil {
                respond()
            } else if !rest.isEmpty {
                sendMore()
            } else {
                break
            }
        }
        if phase == .http, work != nil || (waiting > 0 && !isInputClosed) {
            faults.append("\(waiting) requests are never answered")
        }
    }

    // MARK: The rules

    private mutating func check(_ outputs: [HTTPConnection.Output]) {
        for output in outputs {
            switch (phase, output) {
            case (.closed, .dropResponse), (.upgraded, .dropResponse), (.upgraded, .read): continue
            case (.closed, _), (.upgraded, _): faults.append("\(output.text) after the connection was \(phase)")
            case (.last, .began), (.last, .route), (.last, .perform), (.last, .answer), (.last, .upgrade):
                faults.append("\(output.text) after the last answer")
            default: check(output)
            }
        }
    }

    private mutating func check(_ output: HTTPConnection.Output) {
        switch output {
        case .read:
            if phase == .http, waiting > 0, !isInputClosed { faults.append("read while \(waiting) requests wait") }
        case .began:
            if work != nil { faults.append("a request began before the last was answered") }
            begun += 1
        case .route(.head(let head)):
            hasRouted = true
            start(.routed, head)
        case .route(.end): if work?.kind == .routed { work?.kind = .routedWhole }
        case .perform(_, let head, _): start(.performed, head)
        case .write(.end), .answer:
            if work == nil { faults.append("\(output.text), but no request waits for it") }
            work = nil
            answers += 1
            if case .answer(_, _, keepsAlive: false) = output { phase = .last }
        case .refuse:
            work = nil
            phase = .last
        case .linger: phase = .last
        case .upgrade(let head):
            start(.performed, head)
            upgrades += 1
            phase = .upgraded
        case .nextTurn: turns += 1
        case .close: phase = .closed
        case .route(.body), .routeComplete, .sendContinue, .write(.head), .write(.body), .dropResponse, .earlierTimeout:
            break
        }
    }

    private mutating func start(_ kind: Work, _ head: HTTPRequestHead) {
        if head.uri != sent[begun - 1] { faults.append("\(head.uri) was handled instead of \(sent[begun - 1])") }
        work = (kind, false)
    }
}

/// `CONFAB_GATEWAY_SEED` reproduces a run.
@Suite("Random events on the gateway's connections", .ownThreads) struct GatewayModelTests {
    static func seeds() -> ClosedRange<UInt64> {
        let environment = ProcessInfo.processInfo.environment["CONFAB_GATEWAY_SEED"]
        let first = environment.flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64(UInt32.max))
        print("gateway connections: 100 seeds from \(first)")
        return first...(first + 99)
    }

    @Test("each HTTP request gets at most one answer, in order, and nothing is read while one waits")
    func http() {
        var (answers, upgrades) = (0, 0)
        for seed in Self.seeds() {
            var model = HTTPModel(seed: seed)
            model.run(steps: 300)
            #expect(model.faults == [], "seed \(seed)")
            answers += model.answers
            upgrades += model.upgrades
        }
        #expect(answers > 100 && upgrades > 10, "the model does too little: \(answers) answers, \(upgrades) upgrades")
    }

    @Test("a WebSocket delivers in order, reads nothing while frames wait, and says nothing after its close")
    func webSocket() {
        var (texts, disconnected) = (0, 0)
        for seed in Self.seeds() {
            var model = WebSocketModel(seed: seed)
            model.run(steps: 300)
            #expect(model.faults == [], "seed \(seed)")
            texts += model.delivered
            disconnected += model.isOver ? 1 : 0
        }
        #expect(texts > 100 && disconnected == 100, "the model does too little: \(texts) messages")
    }
}

/// A peer and a user that do anything in any order, around a `WebSocketConnection`. Records the rules that are broken.
private struct WebSocketModel {
    private var random: SeededGenerator
    private var connection = WebSocketConnection(messageSize: 4096, sendQueue: 1000)
    private(set) var faults: [String] = []
    private(set) var delivered = 0
    private(set) var isOver = false
    private var isClosed = false
    private var hasSentClose = false
    private var mustClose = false
    private var awaitsTurn = false
    private var eventsInTurn = 0
    private var sentTexts: [String] = []
    /// Bytes of the peer's frames that have not arrived yet.
    private var wire: [UInt8] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func run(steps: Int) {
        for _ in 0..<steps where !isClosed { step() }
        handle(.inactive)
        handle(.inactive)
        handle(.read(isCongested: false))
        handle(.tick(dropAfter: 1, isCongested: false))
        if !isOver { faults.append("disconnected is missing") }
    }

    private mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<35: sendFrames()
        case ..<65: arrive()
        case ..<75: handle(.read(isCongested: chance(20)))
        case ..<88: if awaitsTurn { turn() }
        case ..<92: handle(.tick(dropAfter: chance(50) ? 3 : nil, isCongested: chance(20)))
        case ..<95: handle(.readComplete)
        case ..<97: handle(.unsent(Int.random(in: 0...1010, using: &random)))
        case 97: if chance(20) { handle(.close(.normal, "done")) }
        case 98: if chance(20) { handle(.inputEnded) }
        default: if chance(5) { handle(.drop) }
        }
    }

    private mutating func sendFrames() {
        for _ in 0..<Int.random(in: 1...(chance(20) ? 100 : 3), using: &random) {
            switch Int.random(in: 0..<200, using: &random) {
            case ..<120:
                sentTexts.append("\(sentTexts.count)")
                append(0x81, Array("\(sentTexts.count - 1)".utf8))
            case ..<160: append(0x89, [1, 2])
            case ..<197: append(0x8A, [])
            case 197: append(0x88, [3, 0xE8])
            case 198: append(0x83, [])
            default: wire.append(0xF1)
            }
        }
    }

    private mutating func append(_ first: UInt8, _ payload: [UInt8]) {
        wire += [first, 0x80 | UInt8(payload.count), 0, 0, 0, 0] + payload
    }

    private mutating func arrive() {
        guard !wire.isEmpty, !isClosed else { return }
        let count = Int.random(in: 1...wire.count, using: &random)
        connection.received(ByteBuffer(bytes: wire[..<count]))
        wire.removeFirst(count)
        eventsInTurn = 0
        handleFrames()
        check(connection.finishTurn(isCongested: false))
    }

    private mutating func turn() {
        awaitsTurn = false
        eventsInTurn = 0
        handle(.turn)
        handleFrames()
        check(connection.finishTurn(isCongested: false))
    }

    private mutating func handleFrames() {
        while let event = connection.next() {
            eventsInTurn += 1
            if eventsInTurn > 32 { faults.append("\(eventsInTurn) frames in a turn") }
            if isClosed { faults.append("\(event) after close") }
            if hasSentClose, event != .closeAnswered { faults.append("\(event) after our close frame") }
            switch event {
            case .text(let bytes):
                let text = String(decoding: bytes, as: UTF8.self)
                if text != "\(delivered)" { faults.append("\(text) instead of \(delivered)") }
                delivered += 1
            case .ping: if !connection.canSend { faults.append("a ping that cannot be answered") }
            case .binary: faults.append("a binary message was accepted")
            case .noMessage: break
            case .violation(let code, let reason): handle(.close(code, reason))
            case .closed(_, let answer): handle(.close(answer, ""))
            case .closeAnswered: handle(.drop)
            }
        }
    }

    private mutating func handle(_ input: WebSocketConnection.Input) { check(connection.handle(input)) }

    private mutating func check(_ outputs: [WebSocketConnection.Output]) {
        for output in outputs {
            if isOver || (isClosed && output != .disconnected) { faults.append("\(output) after the end") }
            if awaitsTurn, output == .read || output == .pause || output == .nextTurn {
                faults.append("\(output) while frames wait")
            }
            switch output {
            case .send(let opcode, _):
                if hasSentClose { faults.append("\(opcode) after our close frame") }
                hasSentClose = hasSentClose || opcode == .close
            case .nextTurn: awaitsTurn = true
            case .close: isClosed = true
            case .disconnected: isOver = true
            case .flush, .read, .pause, .closeLater, .noAnswer, .tooSlow: break
            }
        }
    }
}

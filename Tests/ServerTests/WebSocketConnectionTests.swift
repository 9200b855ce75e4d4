import NIOCore
import Signaling
import Testing
import Wire

@testable import Server

/// A list of what happens to a `WebSocketConnection`, each with the events and outputs that must result, as short texts.
struct WebSocketScript: CustomTestStringConvertible, Sendable {
    enum Happening: Sendable {
        /// The peer's bytes arrive.
        case arrives([UInt8])
        case input(WebSocketConnection.Input)
        /// The next turn of the event loop.
        case turn(isCongested: Bool)
    }

    struct Step: Sendable {
        let happening: Happening
        let results: [String]
    }

    let name: String
    let steps: [Step]
    var testDescription: String { name }

    init(_ name: String, _ steps: Step...) { (self.name, self.steps) = (name, steps) }
}

extension WebSocketScript.Step {
    static func arrives(_ frames: [UInt8]..., gives results: String...) -> Self {
        Self(happening: .arrives(Array(frames.joined())), results: results)
    }

    static func on(_ input: WebSocketConnection.Input, gives results: String...) -> Self {
        Self(happening: .input(input), results: results)
    }

    static func turn(isCongested: Bool = false, gives results: [String]) -> Self {
        Self(happening: .turn(isCongested: isCongested), results: results)
    }

    static func flood(_ frames: [UInt8], gives results: [String]) -> Self {
        Self(happening: .arrives(frames), results: results)
    }
}

extension WebSocketConnection.Output {
    fileprivate var text: String {
        switch self {
        case .send(.close, let payload):
            "send close \(UInt16(payload[0]) << 8 | UInt16(payload[1])) \(String(decoding: payload.dropFirst(2), as: UTF8.self))"
        case .send(let opcode, _): "send \(opcode)"
        case .noAnswer(let pings): "no answer to \(pings)"
        case .tooSlow(let unsent): "too slow, \(unsent)"
        default: "\(self)"
        }
    }
}

extension WebSocketConnection.Event {
    fileprivate var text: String {
        switch self {
        case .text(let bytes): "text \(String(decoding: bytes, as: UTF8.self))"
        case .binary(let bytes): "binary \(bytes)"
        case .noMessage: "no message"
        case .ping: "ping"
        case .violation(let code, _): "violation \(code.rawValue)"
        case .closed(let code, let answer): "closed \(code.rawValue), answer \(answer.rawValue)"
        case .closeAnswered: "close answered"
        }
    }
}

@Suite("A WebSocket connection") struct WebSocketConnectionTests {
    private struct Stage {
        var connection = WebSocketConnection(messageSize: 64, sendQueue: 1000)

        mutating func handle(_ happening: WebSocketScript.Happening) -> [String] {
            switch happening {
            case .input(let input): return connection.handle(input).map(\.text)
            case .arrives(let bytes):
                connection.received(ByteBuffer(bytes: bytes))
                return frames() + connection.finishTurn(isCongested: false).map(\.text)
            case .turn(let isCongested):
                return connection.handle(.turn).map(\.text) + frames()
                    + connection.finishTurn(isCongested: isCongested).map(\.text)
            }
        }

        private mutating func frames() -> [String] {
            var events: [String] = []
            while let event = connection.next() { events.append(event.text) }
            return events
        }
    }

    private static func frame(_ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true) -> [UInt8] {
        let mask: [UInt8] = [1, 2, 3, 4]
        return [(isFinal ? 0x80 : 0) | opcode, 0x80 | UInt8(payload.count)] + mask
            + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    private static func text(_ text: String) -> [UInt8] { frame(1, Array(text.utf8)) }
    private static let ping = frame(9)
    private static let pong = frame(10)
    private static let close = frame(8, [0x03, 0xE8])
    private static func repeated(_ frame: [UInt8], _ count: Int) -> [UInt8] {
        Array(repeatElement(frame, count: count).joined())
    }

    private static let scripts = [
        WebSocketScript(
            "messages arrive in pieces and together",
            .arrives(Array(text("hello").prefix(3))),
            .arrives(Array(text("hello").dropFirst(3)), text("you"), gives: "text hello", "text you"),
            .on(.read(isCongested: false), gives: "read")),
        WebSocketScript(
            "a ping is flushed with the other answers of a read", .arrives(ping, ping, gives: "ping", "ping"),
            .on(.readComplete, gives: "flush"), .on(.readComplete)),
        WebSocketScript(
            "fragments and pongs are no messages",
            .arrives(
                frame(1, [0x61], isFinal: false), pong, frame(0, [0x62]), gives: "no message", "no message", "text ab")),
        WebSocketScript(
            "at most 32 frames are handled per turn, and nothing is read until the rest is handled",
            .flood(repeated(text("x"), 70), gives: repeatElement("text x", count: 32) + ["nextTurn"]),
            .on(.read(isCongested: false)), .turn(gives: repeatElement("text x", count: 32) + ["nextTurn"]),
            .on(.read(isCongested: false)), .turn(gives: repeatElement("text x", count: 6) + ["read"])),
        WebSocketScript(
            "a congested socket pauses instead of reading", .on(.read(isCongested: true), gives: "pause"),
            .on(.read(isCongested: false), gives: "read"),
            .flood(repeated(text("x"), 33), gives: repeatElement("text x", count: 32) + ["nextTurn"]),
            .on(.read(isCongested: false)), .turn(isCongested: true, gives: ["text x", "pause"])),
        WebSocketScript(
            "frames that arrived before the end of the input count, and then the connection closes",
            .flood(repeated(text("x"), 33), gives: repeatElement("text x", count: 32) + ["nextTurn"]), .on(.inputEnded),
            .on(.read(isCongested: false)), .turn(gives: ["text x", "close"]), .on(.read(isCongested: false))),
        WebSocketScript(
            "the end of the input without a close frame closes the connection", .on(.inputEnded, gives: "close"),
            .on(.tick(dropAfter: 3, isCongested: false)), .on(.close(.normal, "")),
            .on(.inactive, gives: "disconnected"),
            .on(.inactive)),
        WebSocketScript(
            "a close frame is answered with its code, nothing that follows counts, and the connection closes",
            .arrives(close, text("late"), gives: "closed 1000, answer 1000"),
            .on(.close(.normal, ""), gives: "send close 1000 ", "flush", "close"), .arrives(text("later")),
            .on(.inactive, gives: "disconnected")),
        WebSocketScript(
            "a close frame without a code is answered with 1000", .arrives(frame(8), gives: "closed 1005, answer 1000")),
        WebSocketScript(
            "after our close frame only the peer's close frame matters",
            .on(.close(.goingAway, "bye"), gives: "send close 1001 bye", "flush", "closeLater"),
            .on(.close(.normal, "")), .on(.tick(dropAfter: 3, isCongested: false)),
            .arrives(text("late"), ping, close, gives: "close answered"), .on(.drop, gives: "close"),
            .on(.inactive, gives: "disconnected")),
        WebSocketScript(
            "a peer that continues to send after our close frame is disconnected",
            .on(.close(.tooMany, ""), gives: "send close 4429 ", "flush", "closeLater"),
            .arrives([UInt8](repeating: 0xF1, count: WebSocketConnection.bytesAfterClose)),
            .arrives([0xF1], gives: "close"), .arrives([0xF1]), .on(.inactive, gives: "disconnected")),
        WebSocketScript(
            "a reason is cut to what a control frame can carry",
            .on(
                .close(.forbidden, String(repeating: "x", count: 200)),
                gives: "send close \(CloseCode.forbidden.rawValue) \(String(repeating: "x", count: 120))", "flush",
                "closeLater")),
        WebSocketScript(
            "after a violation nothing more is parsed, but the input is read until the connection closes",
            .arrives(text("a"), [0xF1, 0x80, 0, 0, 0, 0], text("b"), gives: "text a", "violation 1002"),
            .arrives(text("c")), .on(.read(isCongested: false), gives: "read"),
            .on(.close(CloseCode(rawValue: 1002), ""), gives: "send close 1002 ", "flush", "closeLater")),
        WebSocketScript(
            "a message that is too large is a violation before it has arrived",
            .arrives([0x81, 0x80 | 65, 0, 0, 0, 0], gives: "violation 1009")),
        WebSocketScript(
            "a violation after our close frame is not reported",
            .on(.close(.normal, ""), gives: "send close 1000 ", "flush", "closeLater"), .arrives([0xF1, 0x80], close)),
        WebSocketScript(
            "a peer that answers no ping is dropped",
            .on(.tick(dropAfter: 2, isCongested: false), gives: "send ping", "flush"),
            .on(.tick(dropAfter: 2, isCongested: false), gives: "send ping", "flush"),
            .on(.tick(dropAfter: 2, isCongested: false), gives: "no answer to 2", "close")),
        WebSocketScript(
            "a frame counts as an answer, a part of a frame does not",
            .on(.tick(dropAfter: 1, isCongested: false), gives: "send ping", "flush"),
            .arrives(pong, gives: "no message"),
            .on(.tick(dropAfter: 1, isCongested: false), gives: "send ping", "flush"), .arrives([0x8A]),
            .on(.tick(dropAfter: 1, isCongested: false), gives: "no answer to 1", "close")),
        WebSocketScript(
            "a socket that is not read because of congestion is not dropped for its silence",
            .on(.tick(dropAfter: 1, isCongested: false), gives: "send ping", "flush"),
            .on(.tick(dropAfter: 1, isCongested: true), gives: "send ping", "flush")),
        WebSocketScript(
            "a peer that reads too slowly is dropped", .on(.unsent(1000)),
            .on(.unsent(1001), gives: "too slow, 1001", "close"),
            .on(.unsent(2000))),
    ]

    @Test("what comes in decides what goes out", arguments: scripts)
    func script(_ script: WebSocketScript) {
        var stage = Stage()
        for (number, step) in script.steps.enumerated() {
            #expect(stage.handle(step.happening) == step.results, "step \(number + 1) of: \(script.name)")
        }
    }

    @Test("500 frames without a message are allowed per ping interval")
    func controlFrames() {
        var stage = Stage()
        func violations(_ count: Int) -> Int {
            (0..<count).reduce(0) { sum, _ in
                sum + stage.handle(.arrives(Self.ping)).count { $0 == "violation \(CloseCode.tooMany.rawValue)" }
            }
        }
        #expect(violations(500) == 0)
        _ = stage.handle(.input(.tick(dropAfter: nil, isCongested: false)))
        #expect(violations(500) == 0)
        #expect(violations(1) == 1)
    }
}

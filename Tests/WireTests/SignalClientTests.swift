import TestSupport
import Testing
import Wire

/// What the scripts of `protocol/scripts/connection.json` cannot say, because only Swift's client has it.
@Suite struct SignalClientTests {
    private typealias Effect = SignalClient.Effect

    private var line: SignalClient
    private var now = Timestamp(milliseconds: 1_000_000)

    init() { line = Self.line() }

    private static func line(
        seed: UInt64 = 1, _ change: (inout SignalClient.Options) -> Void = { _ in }
    ) -> SignalClient {
        var options = SignalClient.Options()
        change(&options)
        return SignalClient(hello: Hello(), options: options, random: SeededGenerator(seed: seed))
    }

    private mutating func handle(_ event: SignalClient.Event) -> [Effect] { line.handle(event, now: now) }

    private mutating func next() -> [Effect] {
        now = line.nextTimeout ?? now
        return line.handleTimeout(now: now)
    }

    /// Opens the socket that these effects ask for, and handles the welcome.
    private mutating func welcome(_ effects: [Effect], resumed: Bool = false) throws -> SignalClient.Socket {
        let socket = try #require(effects.opened)
        _ = handle(.opened(socket))
        var welcome = Welcome()
        (welcome.resumed, welcome.ping, welcome.resume.grace) = (resumed, .seconds(10), .seconds(30))
        _ = handle(.received(ServerMessage.welcome(welcome).encode(), on: socket))
        return socket
    }

    @Test mutating func aFrameWithoutAMessageEndsTheSilence() throws {
        let socket = try welcome(handle(.connect))
        now = now + .seconds(9)
        _ = handle(.heard(socket))
        #expect(line.nextTimeout == now + .seconds(10))
    }

    @Test mutating func requestsWithoutANumberFailImmediately() throws {
        _ = try welcome(handle(.connect))
        for message in [ClientMessage.hello(Hello()), .ack, .ping, .bye] {
            let effects = handle(.request(.init(rawValue: 1), message))
            #expect(effects.failure == .malformed)
        }
    }

    @Test mutating func requestsAfterLeavingFail() throws {
        _ = try welcome(handle(.connect))
        _ = handle(.leave)
        #expect(handle(.request(.init(rawValue: 1), .roulette(.count))).failure == .left)
        #expect(handle(.connect) == [])
    }

    @Test mutating func attemptsBackOffWithJitter() throws {
        var delays: [[Int64]] = []
        for seed in UInt64(1)...50 {
            line = Self.line(seed: seed) { $0.connectTimeout = nil }
            var socket = try #require(handle(.connect).opened)
            delays.append(
                try (0..<6).map { _ in
                    _ = handle(.closed(socket, .abnormal))
                    let before = now
                    socket = try #require(next().opened)
                    return (now - before).wholeMilliseconds
                })
        }
        for (index, ceiling) in [250, 500, 1000, 2000, 3000, 3000].enumerated() {
            let all = delays.map { $0[index] }
            #expect(all.allSatisfy { (Int64(ceiling) / 2...Int64(ceiling)).contains($0) })
            #expect(Set(all).count > 20, "the delays must be spread over time")
        }
    }

    @Test mutating func withoutReconnectingTheConnectionEndsWithItsSocket() throws {
        line = Self.line { $0.reconnects = false }
        let socket = try welcome(handle(.connect))
        _ = handle(.request(.init(rawValue: 1), .roulette(.count)))
        #expect(handle(.closed(socket, .abnormal)).failure == .connectionLost)
        #expect(line.ending?.code == .abnormal)
        line = Self.line { $0.reconnects = false }
        let silent = try welcome(handle(.connect))
        _ = next()
        #expect(next().contains(.close(silent, .dropped)))
        #expect(line.ending?.error?.code == .connectionLost)
    }

    @Test mutating func eventsOfOlderSocketsAreIgnored() throws {
        let old = try welcome(handle(.connect))
        _ = handle(.closed(old, .abnormal))
        _ = try welcome(next(), resumed: true)
        #expect(handle(.closed(old, .abnormal)) == [])
        #expect(handle(.received(ServerMessage.presence(.unlinked).encode(seq: 1), on: old)) == [])
        #expect(handle(.opened(old)) == [])
    }

    @Test(arguments: [false, true])
    mutating func leavingOnASocketThatOpensUsesThatSocket(_ isOpen: Bool) throws {
        _ = handle(.closed(try welcome(handle(.connect)), .abnormal))
        let socket = try #require(next().opened)
        if isOpen { _ = handle(.opened(socket)) }
        #expect(!handle(.leave).contains(.close(socket, .normal)))
        if !isOpen { _ = handle(.opened(socket)) }
        let last = handle(.received(ServerMessage.welcome(Welcome()).encode(), on: socket))
        #expect(last == [.send(ClientMessage.bye.encode(), on: socket), .close(socket, .normal)])
    }
}

extension [SignalClient.Effect] {
    fileprivate var opened: SignalClient.Socket? {
        for case .open(let socket) in self { return socket }
        return nil
    }

    fileprivate var failure: WireError.Code? {
        for case .failed(_, let error) in self { return error.code }
        return nil
    }
}

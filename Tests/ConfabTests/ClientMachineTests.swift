import Foundation
import Testing
import Wire

@testable import Confab

@Suite("A client's connection")
struct ClientMachineTests {
    private let session = SessionID("session")!
    private let banned = WireError(.banned, "You are banned.")
    private let expired = WireError(.tokenExpired, "Get a new token.")

    private func isReconnecting(_ state: ConfabClient.State, attempt: Int) -> Bool {
        if case .reconnecting(_, attempt, _) = state { true } else { false }
    }

    // MARK: Connecting

    @Test("the first welcome brings the client online, and a new identity is saved and sent from then on")
    func connecting() {
        var script = ClientScript()
        let effects = script.handle(.connect)
        #expect(effects.states == [.connecting(attempt: 1)])
        #expect(effects.opened.count == 1)
        let hello = script.open()
        #expect(hello != nil && hello?.identity == nil)
        let welcomed = script.welcome { $0.identity = "secret" }
        #expect(welcomed.states == [.online])
        #expect(welcomed.notices == [.identityChanged])
        #expect(welcomed.contains { if case .saveIdentity("secret") = $0 { true } else { false } })
        #expect(welcomed.news == ["first"])
        #expect(script.handle(.connect).isEmpty, "it is connected")
        #expect(script.reconnect()?.identity == "secret")
    }

    @Test("a refused client is offline with the server's error until the application tries again")
    func refused() throws {
        var script = ClientScript()
        script.handle(.connect)
        script.open()
        script.ask()
        let effects = script.refuse(banned, .forbidden)
        #expect(effects.states == [.offline(.refused(ConfabError(banned)))])
        #expect(effects.failures == [.banned])
        #expect(effects.news == ["ended banned"])
        #expect(script.wait(.seconds(3600)).isEmpty)
        let first = try #require(script.socket)
        let again = script.handle(.connect)
        #expect(again.states == [.connecting(attempt: 1)])
        #expect(again.opened.count == 1)
        #expect(script.handle(.opened(first)).isEmpty, "a socket of the earlier line")
        #expect(script.handle(.closed(first, .serviceRestart)).isEmpty, "a socket of the earlier line")
        script.open()
        #expect(script.welcome().news == ["first"])
    }

    @Test("a server with another version makes the client too old")
    func tooOld() {
        var script = ClientScript()
        script.handle(.connect)
        script.open()
        let effects = script.refuse(WireError(.versionUnsupported, "Update."), .malformed)
        #expect(effects.states == [.offline(.tooOld)])
        #expect(effects.news == ["ended version_unsupported"])
    }

    @Test("a server that cannot be reached is given up after 20 seconds", arguments: [true, false])
    func unreachable(hasNetwork: Bool) {
        var script = ClientScript()
        if !hasNetwork { script.handle(.networkChanged(isAvailable: false)) }
        script.handle(.connect)
        script.ask()
        let effects = script.wait(.seconds(19))
        #expect(effects.states == [.connecting(attempt: 2)], "the first attempt had no welcome for 10 seconds")
        let last = script.wait(.seconds(1))
        #expect(last.states == [.offline(hasNetwork ? .serverUnreachable : .noNetwork)])
        #expect(last.closed.count == 1)
        #expect(last.failures == [.connectFailed])
        #expect(last.news == ["ended connect_failed"])
        #expect(script.handle(.connect).states == [.connecting(attempt: 1)])
    }

    // MARK: Reconnecting

    @Test("within the grace period the connection resumes, and waiting requests are sent once")
    func resuming() {
        var script = ClientScript()
        script.connect()
        script.join(session)
        let since = script.now.date
        let dropped = script.close()
        #expect(dropped.states == [.reconnecting(since: since, attempt: 0, nextTry: script.machine.nextTimeout?.date)])
        #expect(dropped.news == ["reconnecting"])
        #expect(script.ask().isEmpty)
        let attempt = script.wait(ClientScript.longestBackoff)
        #expect(attempt.states == [.reconnecting(since: since, attempt: 1, nextTry: nil)])
        #expect(script.open()?.resume == Hello.Resume(secret: "first", received: 1))
        let resumed = script.welcome { ($0.resumed, $0.received) = (true, 1) }
        #expect(resumed.said == [.roulette(.count)])
        #expect(resumed.states == [.online])
        #expect(resumed.notices == [.resumed])
        #expect(resumed.news == ["resumed"])
        #expect(script.machine.sessions == [session])
    }

    @Test("a connection that cannot be resumed restarts, names the lost sessions and fails the open requests")
    func restarting() {
        var script = ClientScript()
        script.connect()
        script.join(session)
        script.ask()
        script.reconnect()
        #expect(script.hear(.error(.init(WireError(.resumeFailed, "Too late.")))).isEmpty)
        let restarted = script.welcome { $0.connection = ConnectionID(high: 0, low: 2) }
        #expect(restarted.failures == [.connectionRestarted])
        #expect(restarted.states == [.online])
        #expect(restarted.notices == [.restarted(lost: [session])])
        #expect(restarted.news == ["restarted"])
        #expect(script.machine.sessions.isEmpty)
        script.reconnect()
        script.hear(.error(.init(WireError(.resumeFailed, "Too late."))))
        let again = script.welcome { $0.connection = ConnectionID(high: 0, low: 3) }
        #expect(again.notices == [.restarted(lost: [])], "each session is named once")
    }

    @Test("a connection that the server has forgotten goes offline between two attempts, then restarts")
    func expiringInAPause() {
        var script = ClientScript()
        script.connect()
        script.join(session)
        script.close()
        // The server's pause is longer than the time for which it keeps the connection.
        script.wait(ClientScript.longestBackoff)
        script.open()
        script.refuse(WireError(.rateLimited, "Wait.", retryAfter: .seconds(100)), .tooMany)
        let effects = script.wait(.seconds(60))
        #expect(effects.states == [.offline(.serverUnreachable)])
        #expect(effects.news == ["expired"])
        #expect(script.wait(.seconds(41)).states == [.connecting(attempt: 2)])
        script.open()
        let welcomed = script.welcome { $0.connection = ConnectionID(high: 0, low: 2) }
        #expect(welcomed.states == [.online])
        #expect(welcomed.notices == [.restarted(lost: [session])])
    }

    @Test("a connection that the server forgets during an attempt is connecting, then restarts")
    func expiringInAnAttempt() {
        var script = ClientScript()
        script.connect()
        script.join(session)
        script.close()
        // No attempt gets a welcome. The server keeps the connection for 60 seconds: the grace period and three pings.
        script.wait(.milliseconds(59_999))
        #expect(script.now - script.openedAt < .seconds(10), "an attempt is in progress")
        guard case .reconnecting(_, let attempt, nil) = script.state else {
            return #expect(Bool(false), "\(script.state)")
        }
        let effects = script.wait(.milliseconds(1))
        #expect(effects.states == [.connecting(attempt: attempt)])
        #expect(effects.news == ["expired"])
        let hello = script.open()
        #expect(hello != nil && hello?.resume == nil)
        let welcomed = script.welcome { $0.connection = ConnectionID(high: 0, low: 2) }
        #expect(welcomed.states == [.online])
        #expect(welcomed.notices == [.restarted(lost: [session])])
        #expect(welcomed.news == ["restarted"])
    }

    @Test("in a long outage each attempt is connecting and each pause offline, and connect() ends the pause")
    func longOutage() {
        var script = ClientScript()
        script.connect()
        script.close()
        script.wait(.seconds(60))
        guard case .connecting(let attempt) = script.state else { return #expect(Bool(false), "\(script.state)") }
        #expect(script.close().states == [.offline(.serverUnreachable)])
        let effects = script.handle(.connect)
        #expect(effects.states == [.connecting(attempt: attempt + 1)])
        #expect(effects.opened.count == 1)
        let silent = script.wait(.seconds(10))
        #expect(silent.states == [.offline(.serverUnreachable)])
        #expect(silent.closed.count == 1)
        #expect(script.wait(ClientScript.longestBackoff).states == [.connecting(attempt: attempt + 2)])
    }

    @Test("each pause is longer, up to three seconds, and the state shows when it ends")
    func backingOff() throws {
        var script = ClientScript()
        script.connect()
        let since = script.now.date
        for (attempt, ceiling) in [250, 500, 1000, 2000, 3000, 3000].enumerated() {
            script.close()
            let next = try #require(script.machine.nextTimeout)
            #expect((.milliseconds(ceiling / 2) ... .milliseconds(ceiling)).contains(next - script.now))
            #expect(script.state == .reconnecting(since: since, attempt: attempt, nextTry: next.date))
            #expect(script.wait(next - script.now).opened.count == 1)
            #expect(script.state == .reconnecting(since: since, attempt: attempt + 1, nextTry: nil))
        }
    }

    @Test("a restarting server is announced")
    func draining() {
        var script = ClientScript()
        script.connect()
        #expect(script.close(.serviceRestart).notices == [.draining])
        #expect(isReconnecting(script.state, attempt: 0))
    }

    // MARK: Tokens

    private func connectedWithToken() throws -> ClientScript {
        var script = ClientScript(usesToken: true)
        let effects = script.handle(.connect)
        #expect(effects.asksToken && effects.opened.isEmpty)
        let socket = try #require(script.socket)
        #expect(script.handle(.token(.success("one"), for: socket)).opened == [socket])
        #expect(script.open()?.token == "one")
        #expect(script.welcome { $0.identity = "secret" }.notices.isEmpty, "a token needs no identity")
        return script
    }

    @Test("each attempt asks for a token")
    func renewal() throws {
        var script = try connectedWithToken()
        script.close()
        let attempt = script.wait(ClientScript.longestBackoff)
        #expect(attempt.asksToken && attempt.opened.isEmpty)
        script.handle(.token(.success("two"), for: try #require(script.socket)))
        let hello = script.open()
        #expect(hello?.token == "two")
        #expect(hello?.resume?.secret == "first")
        #expect(script.welcome { $0.resumed = true }.notices == [.resumed])
    }

    @Test("a token that expires in use is replaced without a visit to offline, but a new one that is refused is not")
    func expiredToken() throws {
        var script = try connectedWithToken()
        script.join(session)
        let effects = script.refuse(expired, .token)
        #expect(effects.states == [.connecting(attempt: 1)])
        #expect(effects.news == ["ended token_expired"])
        #expect(effects.asksToken)
        script.handle(.token(.success("two"), for: try #require(script.socket)))
        #expect(script.open()?.token == "two")
        let welcomed = script.welcome { $0.connection = ConnectionID(high: 0, low: 2) }
        #expect(welcomed.notices == [.restarted(lost: [session])])
        #expect(welcomed.news == ["restarted"])
        script.refuse(expired, .token)
        script.handle(.token(.success("three"), for: try #require(script.socket)))
        script.open()
        #expect(script.refuse(expired, .token).states == [.offline(.refused(ConfabError(expired)))])
        #expect(script.wait(.seconds(3600)).isEmpty)
    }

    @Test("a token that comes after its attempt was given up opens no socket")
    func lateToken() throws {
        var script = ClientScript(usesToken: true)
        script.handle(.connect)
        let first = try #require(script.socket)
        let second = script.wait(.seconds(13))
        #expect(second.closed == [first] && second.asksToken)
        #expect(script.handle(.token(.success("late"), for: first)).isEmpty)
        let socket = try #require(script.socket)
        #expect(script.handle(.token(.success("new"), for: socket)).opened == [socket])
        #expect(script.handle(.token(.success("new"), for: socket)).isEmpty, "a socket opens once")
        #expect(script.open()?.token == "new")
    }

    @Test("an application without a token gets its own error")
    func noToken() throws {
        var script = ClientScript(usesToken: true)
        let error = ConfabError(.credentialFailed, "Sign in again.")
        var effects = script.handle(.connect)
        for _ in 0..<50 where script.machine.nextTimeout != nil {
            effects += script.handle(.token(.failure(error), for: try #require(script.socket)))
            effects += script.wait(ClientScript.longestBackoff)
        }
        #expect(effects.states.last == .offline(.refused(error)))
        #expect(effects.news == ["ended credential_failed"])
        #expect(effects.opened.isEmpty)
    }

    // MARK: Leaving

    @Test("leaving while connecting closes the socket, and later events change nothing")
    func leavingWhileConnecting() throws {
        var script = ClientScript()
        script.handle(.connect)
        script.ask()
        let socket = try #require(script.socket)
        let effects = script.handle(.leave)
        #expect(effects.closed == [socket])
        #expect(effects.states == [.closed(nil)])
        #expect(effects.failures == [.left])
        #expect(effects.news == ["ended by the application"])
        #expect(script.handle(.opened(socket)).isEmpty)
        #expect(script.handle(.leave).isEmpty)
        #expect(script.handle(.connect).isEmpty)
        #expect(script.wait(.seconds(3600)).isEmpty)
        #expect(script.ask().failures == [.left])
    }

    @Test("leaving while the application fetches a token opens no socket")
    func leavingBeforeTheToken() throws {
        var script = ClientScript(usesToken: true)
        script.handle(.connect)
        #expect(script.handle(.leave).states == [.closed(nil)])
        #expect(script.handle(.token(.success("late"), for: try #require(script.socket))).isEmpty)
    }

    @Test("leaving says bye when online, and closes an offline client")
    func leaving() {
        var script = ClientScript()
        script.connect()
        let effects = script.handle(.leave)
        #expect(effects.said == [.bye])
        #expect(effects.states == [.closed(nil)])
        script = ClientScript()
        #expect(script.handle(.leave).states == [.closed(nil)])
        script = ClientScript()
        script.handle(.connect)
        script.refuse(banned, .forbidden)
        #expect(script.handle(.leave).states == [.closed(nil)])
    }

    @Test("a client that was replaced is closed with the server's error")
    func replaced() {
        var script = ClientScript()
        script.connect()
        let error = WireError(.replaced, "Another client resumed this connection.")
        let effects = script.refuse(error, .replaced)
        #expect(effects.states == [.closed(ConfabError(error))])
        #expect(effects.news == ["ended replaced"])
        #expect(script.handle(.connect).isEmpty)
    }

    @Test("a server cannot make the client remember sessions that it did not join")
    func unaskedSessions() {
        var script = ClientScript()
        script.connect()
        var joined = SessionNotice.Joined()
        joined.session = session
        script.hearNext(.session(.joined(joined)))
        #expect(script.machine.sessions.isEmpty)
        script.join(session)
        #expect(script.machine.sessions == [session])
    }
}

import Confab
import Testing

@Suite("Calls of the SDK over sockets", .ownThreads, .timeLimit(.minutes(2)))
struct CallsEndToEndTests {
    /// Two people who are online, and the events of their calls.
    private struct Line: Sendable {
        let caller: Calls
        let callee: Calls
        let calleeID: PersonID
        let atCaller: Events<Calls.Event>.Iterator
        let atCallee: Events<Calls.Event>.Iterator
        private let guests: [Guest]

        init(_ server: TestServer, calleeIsBusy: Bool = false) async throws {
            let (ada, bob) = (Guest(server), Guest(server))
            (caller, callee, guests) = (ada.client.calls, bob.client.calls, [ada, bob])
            (atCaller, atCallee) = (caller.events.makeAsyncIterator(), callee.events.makeAsyncIterator())
            _ = try await ada.appear("Ada")
            calleeID = try await bob.appear("Bob", doNotDisturb: calleeIsBusy)
        }

        /// Calls until it rings.
        func ring() async throws -> (placed: Call, incoming: Call) {
            let placed = try await caller.start(calleeID, video: false)
            let incoming = try await atCallee.first("incoming call") { event in
                if case .incoming(let call) = event { call } else { nil }
            }
            return (placed, incoming)
        }
    }

    private func active(_ event: Calls.Event) -> Call? {
        if case .changed(let call) = event, call.state == .active { call } else { nil }
    }

    private func ended(_ event: Calls.Event) -> CallEnding? {
        if case .ended(let ending) = event { ending } else { nil }
    }

    /// Expects that the call ended at both people, who do not know it any longer.
    private func expectEnd(
        of call: Call, _ line: Line, caller: CallEnding.Outcome, callee: CallEnding.Outcome
    ) async throws {
        let (one, other) = (try await line.atCaller.first("end", ended), try await line.atCallee.first("end", ended))
        #expect((one.id, one.outcome, one.isOutgoing) == (call.id, caller, true))
        #expect((other.id, other.outcome, other.isOutgoing) == (call.id, callee, false))
        #expect(one.person.name == "Bob" && other.person.name == "Ada")
        #expect(line.caller.all.isEmpty && line.callee.all.isEmpty)
    }

    @Test("an accepted call becomes active at both people, and ends when one hangs up")
    func accepted() async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let (placed, incoming) = try await line.ring()
            #expect((placed.id, placed.state, placed.isOutgoing) == (incoming.id, .ringing, true))
            #expect((incoming.state, incoming.person.name) == (.incoming, "Ada"))
            try await line.callee.accept(incoming.id, video: false)
            #expect(try await line.atCaller.first("active call", active).id == placed.id)
            #expect(try await line.atCallee.first("active call", active).id == placed.id)
            try await line.callee.end(incoming.id)
            try await expectEnd(of: placed, line, caller: .hungUp, callee: .ended)
            #expect(try await line.caller.log().calls.map(\.outcome) == [.hungUp])
        }
    }

    @Test("a declined call ends at both people")
    func declined() async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let (placed, incoming) = try await line.ring()
            try await line.callee.decline(incoming.id)
            try await expectEnd(of: placed, line, caller: .declined, callee: .declined)
            await #expect(throws: ConfabError.self) { try await line.callee.accept(incoming.id) }
        }
    }

    @Test("a call that the caller cancels ends at both people")
    func cancelled() async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let (placed, _) = try await line.ring()
            try await line.caller.end(placed.id)
            try await expectEnd(of: placed, line, caller: .cancelled, callee: .cancelled)
        }
    }

    @Test("a call that is not answered in time ends at both people")
    func unanswered() async throws {
        try await TestServer.run(ringing: .milliseconds(300)) { server in
            let line = try await Line(server)
            let (placed, _) = try await line.ring()
            try await expectEnd(of: placed, line, caller: .unanswered, callee: .missed)
        }
    }

    @Test("a person who does not want to be disturbed is busy, and does not notice the call")
    func busy() async throws {
        try await TestServer.run { server in
            let line = try await Line(server, calleeIsBusy: true)
            // The end may come before `start` returns, which then throws.
            _ = try? await line.caller.start(line.calleeID, video: false)
            #expect(try await line.atCaller.first("end", ended).outcome == .busy)
            #expect(line.callee.all.isEmpty)
        }
    }

    @Test("a person without a device that is online is unreachable")
    func unreachable() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (Guest(server), Guest(server))
            let events = ada.client.calls.events.makeAsyncIterator()
            _ = try await ada.appear("Ada")
            let person = try await bob.appear("Bob")
            await bob.client.leave()
            _ = try? await ada.client.calls.start(person, video: false)
            #expect(try await events.first("end", ended).outcome == .unreachable)
        }
    }
}

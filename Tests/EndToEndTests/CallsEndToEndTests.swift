import Confab
import Testing

private func active(_ event: Calls.Event) -> Call? {
    if case .changed(let call) = event, call.state == .active { call } else { nil }
}

private func incoming(_ event: Calls.Event) -> Call? {
    if case .incoming(let call) = event { call } else { nil }
}

private func ended(_ event: Calls.Event) -> CallEnding? {
    if case .ended(let ending) = event { ending } else { nil }
}

@Suite("Calls of the SDK over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct CallsEndToEndTests {
    /// Two people who are online, and the events of their calls.
    private struct Line: Sendable {
        let caller: Calls
        let callee: Calls
        let calleeID: PersonID
        let atCaller: Events<Calls.Event>.Iterator
        let atCallee: Events<Calls.Event>.Iterator
        let guests: [Guest]

        /// - Parameter callerPort: where the caller connects, if not to the server.
        init(_ server: TestServer, calleeIsBusy: Bool = false, callerPort: Int? = nil) async throws {
            let (ada, bob) = (Guest(port: callerPort ?? server.port), Guest(server))
            (caller, callee, guests) = (ada.client.calls, bob.client.calls, [ada, bob])
            (atCaller, atCallee) = (caller.events.makeAsyncIterator(), callee.events.makeAsyncIterator())
            _ = try await ada.appear("Ada")
            calleeID = try await bob.appear("Bob", doNotDisturb: calleeIsBusy)
        }

        /// Calls until the call is active at both people.
        func talk() async throws -> Call {
            let (placed, incoming) = try await ring()
            try await callee.accept(incoming.id, video: false)
            for events in [atCaller, atCallee] { _ = try await events.first("active call", active) }
            return placed
        }

        /// Calls until it rings.
        func ring() async throws -> (placed: Call, incoming: Call) {
            let placed = try await caller.start(calleeID, video: false)
            return (placed, try await atCallee.first("incoming call", incoming))
        }
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

    @Test("a person with a call and another that waits is busy, and notices only that a call was missed")
    func busyWithCalls() async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let (cem, dan) = (Guest(server), Guest(server))
            _ = try await cem.appear("Cem")
            _ = try await dan.appear("Dan")
            _ = try await line.talk()
            let waiting = try await cem.client.calls.start(line.calleeID, video: false)
            #expect(try await line.atCallee.first("waiting call", incoming).isWaiting)
            let atDan = dan.client.calls.events.makeAsyncIterator()
            _ = try? await dan.client.calls.start(line.calleeID, video: false)
            #expect(try await atDan.first("end", ended).outcome == .busy)
            let missed = try await line.atCallee.first("missed call", ended)
            #expect((missed.outcome, missed.person.name) == (.missed, "Dan"))
            #expect(Set(line.callee.all.map(\.state)) == [.active, .incoming])
            // Accepting the call that waits ends the other.
            try await line.callee.accept(waiting.id, video: false)
            #expect(try await line.atCaller.first("end", ended).outcome == .hungUp)
        }
    }

    @Test("a call rings on all devices of a person, and the others learn what became of it", arguments: [true, false])
    func elsewhere(isAccepted: Bool) async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let second = Guest(server)
            let atSecond = second.client.calls.events.makeAsyncIterator()
            try await second.appear(asDeviceOf: line.guests[1])
            let (placed, _) = try await line.ring()
            let rings = try await atSecond.first("incoming call", incoming)
            #expect(rings.id == placed.id)
            if isAccepted {
                try await second.client.calls.accept(rings.id, video: false)
                #expect(try await line.atCaller.first("active call", active).id == placed.id)
                #expect(try await line.atCallee.first("end", ended).outcome == .answeredElsewhere)
                #expect(try await atSecond.first("active call", active).id == placed.id)
                #expect(line.callee.all.isEmpty && second.client.calls.all.map(\.id) == [placed.id])
            } else {
                try await second.client.calls.decline(rings.id)
                #expect(try await line.atCaller.first("end", ended).outcome == .declined)
                #expect(try await line.atCallee.first("end", ended).outcome == .declinedElsewhere)
                #expect(try await atSecond.first("end", ended).outcome == .declined)
            }
        }
    }

    @Test("two people who call each other at the same time are in one call, and the other ends as merged")
    func merged() async throws {
        try await TestServer.run { server in
            let line = try await Line(server)
            let callerID = try #require(line.guests[0].client.presence.me?.id)
            // A start may throw, because its call has already ended as merged.
            async let first = try? line.caller.start(line.calleeID, video: false)
            async let second = try? line.callee.start(callerID, video: false)
            _ = await (first, second)
            var (calls, endings): ([Call], [CallEnding]) = ([], [])
            for events in [line.atCaller, line.atCallee] {
                while let event = await events.next() {
                    if let ending = ended(event) { endings.append(ending) }
                    guard let call = active(event) else { continue }
                    calls.append(call)
                    break
                }
            }
            #expect(calls.count == 2 && calls[0].id == calls[1].id)
            #expect(Set(calls.map(\.person.name)) == ["Ada", "Bob"])
            #expect(!endings.isEmpty && endings.allSatisfy { $0.outcome == .merged })
            #expect(line.caller.all.count == 1 && line.callee.all.count == 1)
            try await line.caller.end(calls[0].id)
            let (one, other) = (
                try await line.atCaller.first("end", ended), try await line.atCallee.first("end", ended)
            )
            #expect((one.outcome, other.outcome) == (.ended, .hungUp))
        }
    }

    @Test("a call ends at both people if a connection is lost for too long")
    func connectionLost() async throws {
        try await TestServer.run(resumeGrace: .milliseconds(300)) { server in
            let relay = try Relay(to: server.port)
            defer { relay.end() }
            let line = try await Line(server, callerPort: relay.port)
            let call = try await line.talk()
            relay.cut()
            // First the other person learns that the connection dropped.
            _ = try await line.atCallee.first("the partner's connection") { event -> Bool? in
                if case .changed(let changed) = event, !changed.isPartnerConnected { true } else { nil }
            }
            let ending = try await line.atCallee.first("end", ended)
            #expect((ending.id, ending.outcome) == (call.id, .connectionLost))
            relay.mend()
            line.guests[0].client.networkChanged()
            let own = try await line.atCaller.first("end", ended)
            #expect((own.id, own.outcome) == (call.id, .connectionLost))
        }
    }

    @Test("an accepted call that the people do not join in time fails")
    func failed() async throws {
        try await TestServer.run(joining: .zero) { server in
            let line = try await Line(server)
            let (placed, incoming) = try await line.ring()
            try? await line.callee.accept(incoming.id, video: false)
            try await expectEnd(of: placed, line, caller: .failed, callee: .failed)
        }
    }
}

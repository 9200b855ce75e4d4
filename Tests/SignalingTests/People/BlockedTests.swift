import Signaling
import Testing
import Wire

/// To a blocked person, the person who blocked them must look exactly like someone who is offline.
@Suite struct BlockedTests {
    /// What Ada does before Bob sends his requests.
    enum Action: CaseIterable {
        case isAway, blocks, blocksAndIsInACall, blocksAndIsAway, blocksAndCanBeWoken
    }

    /// Returns everything that Bob receives when he sends each request that concerns a person.
    private func reported(_ action: Action, _ adjust: (Guest) -> Void = { _ in }) -> [String] {
        let stage = Stage()
        let (ada, bob, eve) = (stage.nearby("Ada"), stage.nearby("Bob"), stage.nearby("Eve"))
        adjust(ada)
        if action == .blocksAndCanBeWoken { stage.register(ada) }
        if action != .isAway { ada.block(person: stage.person(bob)) }
        switch action {
        case .isAway, .blocksAndIsAway: ada.leave()
        case .blocks, .blocksAndCanBeWoken, .blocksAndIsInACall: break
        }
        // Wait long enough for an offline person to be dropped from memory.
        stage.pass(stage.rules.personIdle + .seconds(1))
        if action == .blocksAndIsInACall { ada.call(stage.person(eve)) }
        bob.take()
        stage.isStorageSlow = true
        bob.say(.nearby(.watch(.init(unit: .miles, radius: 200))))
        bob.say(.presence(.find(.init(person: stage.person(ada)))))
        bob.say(.call(.start(.init(person: stage.person(ada), video: true))))
        bob.say(.contact(.list))
        stage.hearStorage()
        ada.set(name: "Ada again", doNotDisturb: true)
        stage.pass(.seconds(60))
        let log = bob.callLog().map { "logged: \($0.outcome) \($0.person)" }
        return bob.take().map(shown) + log
    }

    /// Replaces the values that differ in each run.
    private func shown(_ message: ServerMessage) -> String {
        switch message {
        case .presence(.person(let found)): "found: \(found.person)"
        case .nearby(.list(let list)): "listed: \(list.names)"
        case .call(.placed(let placed)): "placed: \(placed.person) \(placed.expiresIn)"
        case .call(.ended(let ended)): "ended: \(ended.reason) \(ended.person) \(String(describing: ended.duration))"
        case .error(let error): "error: \(error.error)"
        default: message.type
        }
    }

    @Test(arguments: Action.allCases) func aBlockerLooksOffline(action: Action) {
        let expected = reported(.isAway)
        #expect(reported(action) == expected)
        #expect(expected.contains { $0.hasPrefix("ended: unreachable") })
        #expect(expected.contains { $0.hasPrefix("found: ") })
        #expect(expected.first == "listed: [\"Eve\"]")
    }

    @Test(arguments: [Ringable.everyone, .contacts, .nobody], [true, false])
    func aBlockerLooksOfflineWithAnySettings(ringable: Ringable, doNotDisturb: Bool) {
        let adjust: (Guest) -> Void = { $0.set(doNotDisturb: doNotDisturb, ringable: ringable) }
        #expect(reported(.blocks, adjust) == reported(.isAway, adjust))
    }

    @Test func callsOfABlockedPersonDoNotUseTheRingBudget() {
        let stage = Stage { $0.ringsReceived = .init(perSecond: 0.01, burst: 3) }
        let (ada, eve) = (stage.present("Ada"), stage.present("Eve"))
        let bob = stage.present("Bob")
        ada.block(person: stage.person(bob))
        for _ in 0..<5 { bob.call(stage.person(ada)) }
        #expect(bob.takeCallEnds() == [CallOutcome](repeating: .unreachable, count: 5))
        #expect(stage.logged(ada).isEmpty)
        #expect(eve.call(stage.person(ada))?.type == "call.placed")
        #expect(ada.takeCalls().contains { $0.incoming != nil })
    }

    /// Requests about people in memory must not be answered sooner than requests that need storage. Otherwise the time
    /// would reveal a block.
    @Test func theOrderOfAnswersDoesNotRevealWhoIsOnline() {
        let stage = Stage()
        let (here, hidden, gone) = (stage.present("Here"), stage.present("Hidden"), stage.present("Gone"))
        hidden.set(visible: false)
        gone.leave()
        let bob = stage.present("Bob")
        #expect(stage.hub.personCount == 3)
        for guest in [here, hidden, gone] {
            stage.isStorageSlow = true
            bob.say(.presence(.find(.init(person: stage.person(guest)))))
            bob.say(.presence(.devices))
            stage.hearStorage()
            #expect(bob.takeTypes() == ["presence.devices", "presence.person"])
        }
    }
}

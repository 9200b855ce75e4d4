import Signaling
import TestSupport
import Testing
import Wire

/// Calls in wrong states, calls of other people, call floods, and blocked people.
@Suite struct CallHostileTests: WithTrio {
    let trio = Trio()

    // MARK: Who may be called

    @Test func callingYourselfIsRefused() {
        #expect(ada.call(stage.person(ada))?.errorCode == .callSelf)
        #expect(stage.another(of: ada).call(stage.person(ada))?.errorCode == .callSelf)
        #expect(stage.hub.callCount == 0)
    }

    @Test func callingAnUnknownPersonIsUnreachable() {
        #expect(ada.call(PersonID(high: 1, low: 2))?.errorCode == .notFound)
        #expect(ada.call(stage.person(bob))?.type == "call.placed", "a refused attempt does not use up the limit")
    }

    @Test func callingRequiresBeingOnline() {
        let guest = stage.arrive()
        #expect(guest.call(stage.person(bob))?.errorCode == .notPresent)
    }

    @Test func blockedPeopleCannotCall() throws {
        bob.ask(.presence(.block(.init(person: stage.person(ada)))))
        bob.take()
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        #expect(ada.takeCallEnds() == [.unreachable], "the outcome is the same as for an offline person")
        #expect(bob.takeCalls().isEmpty)
        #expect(stage.logged(bob).isEmpty)
        #expect(bob.call(stage.person(ada))?.errorCode == .callNotAllowed, "the caller must unblock the callee first")
    }

    @Test(arguments: [true, false]) func blockingEndsTheCall(_ isAccepted: Bool) throws {
        let call = isAccepted ? try stage.talk(ada, bob).call : try stage.ring(ada, bob)
        bob.ask(.presence(.block(.init(person: stage.person(ada)))))
        #expect(ada.takeCallEnds() == [isAccepted ? .hungUp : .declined])
        #expect(bob.accept(call)?.errorCode == .notFound)
        #expect(stage.hub.callCount == 0)
    }

    @Test func ringableLimitsWhoMayCall() throws {
        bob.appear(ringable: .nobody)
        #expect(ada.call(stage.person(bob))?.errorCode == .callNotAllowed)
        bob.appear(ringable: .contacts)
        #expect(ada.call(stage.person(bob))?.errorCode == .callNotAllowed)
        #expect(stage.logged(ada).isEmpty && stage.logged(bob).isEmpty, "a refused call is not logged")
        bob.take()
        let talk = try stage.talk(bob, ada)
        for guest in [ada, bob] { guest.ask(.contact(.keep(.init(call: talk.call)))) }
        ada.end(talk.call)
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        #expect(bob.takeCalls().contains { $0.incoming != nil })
    }

    @Test func aBannedPersonCannotBeCalled() throws {
        let talk = try stage.talk(ada, bob)
        stage.handle(.banned(Ban(subject: .identity(ada.person), reason: "rude", createdAt: stage.now)))
        #expect(ada.closeCode == .forbidden)
        #expect(bob.takeCallEnds() == [.hungUp])
        #expect(bob.enter(talk.callee)?.errorCode == .tokenMatchEnded)
        bob.call(stage.person(ada))
        #expect(bob.takeCallEnds() == [.unreachable])
    }

    @Test func theCallOfSomeoneWhoIsBannedStopsRinging() throws {
        _ = try stage.ring(ada, bob)
        stage.handle(.banned(Ban(subject: .identity(ada.person), reason: "rude", createdAt: stage.now)))
        #expect(bob.takeCallEnds() == [.cancelled])
    }

    @Test(arguments: [true, false]) func deletingAPersonEndsItsCalls(isHere: Bool) throws {
        _ = try stage.talk(ada, bob)
        _ = try stage.ring(eve, ada)
        if !isHere { bob.drop() }
        ada.ask(.presence(.delete))
        if isHere { #expect(bob.takeCallEnds() == [.hungUp]) }
        #expect(eve.takeCallEnds() == [.declined])
        for guest in [bob, eve] {
            #expect(stage.logged(guest).map(\.otherName) == [""], "the log keeps the call without the name")
        }
        bob.arrive()
        bob.appear()
        let again = bob.takeCalls().compactMap(\.ended)
        #expect(again.map(\.person.name) == (isHere ? [] : [""]))
        bob.take()
        #expect(stage.hub.callCount == 0)
        #expect(stage.archive.openCalls.isEmpty)
        #expect(stage.logged(ada).isEmpty, "no data of the deleted person is left")
        #expect(bob.call(stage.person(ada))?.errorCode == .notFound)
    }

    // MARK: Storage

    @Test func hangingUpIsAnsweredAfterTheEndIsStored() throws {
        let endings: [() throws -> (Guest, CallVerb)] = [
            { (bob, .decline(.init(call: try stage.ring(ada, bob)))) },
            { (ada, .cancel(.init(call: try stage.ring(ada, bob)))) },
            { (bob, .end(.init(call: try stage.ring(ada, bob)))) },
            { (ada, .end(.init(call: try stage.talk(ada, bob).call))) },
        ]
        for ending in endings {
            let (guest, verb) = try ending()
            guest.say(.call(verb))
            let stored = try #require(
                stage.effects.firstIndex { if case .persist(.callOver) = $0 { true } else { false } })
            let sent = try #require(
                stage.effects.firstIndex { if case .transmit = $0 { true } else { false } })
            #expect(stored < sent, "\(verb)")
            #expect(guest.takeTypes().filter { $0 == "ok" || $0 == "call.ended" } == ["ok", "call.ended"])
            // The calls are spaced out, so the limit on unanswered calls does not apply.
            stage.pass(.seconds(700))
        }
    }

    // MARK: Calls of other people

    @Test func theCallOfOtherPeopleIsUnknown() throws {
        let call = try stage.ring(ada, bob)
        let verbs: [ClientMessage] = [
            .call(.accept(.init(call: call, video: true))), .call(.decline(.init(call: call))),
            .call(.cancel(.init(call: call))), .call(.end(.init(call: call))),
            .call(.update(.init(call: call, video: false))), .call(.rejoin(.init(call: call))),
            .contact(.keep(.init(call: call))),
        ]
        for verb in verbs { #expect(eve.ask(verb)?.errorCode == .notFound, "\(verb)") }
        #expect(eve.seen(call)?.type == "ok")
        #expect(eve.ask(.call(.forget(.init(call: call))))?.type == "ok", "it concerns only the caller's own log")
        #expect(ada.takeCalls().isEmpty && bob.takeCalls().isEmpty)
        #expect(bob.accept(call)?.type == "call.accepted")
        for verb in verbs { #expect(eve.ask(verb)?.errorCode == .notFound, "\(verb)") }
    }

    @Test func callsInACircleDoNotConnectByThemselves() throws {
        let calls = [try stage.ring(ada, bob), try stage.ring(bob, eve), try stage.ring(eve, ada)]
        for guest in [ada, bob, eve] { #expect(guest.takeCalls().compactMap(\.accepted).isEmpty) }
        #expect(ada.accept(calls[2])?.type == "call.accepted")
        #expect(eve.takeCalls().compactMap(\.accepted).map(\.call) == [calls[2]])
        #expect(ada.takeCalls().compactMap(\.ended).map(\.call) == [calls[0]], "accepting ends the person's own call")
        let heard = bob.takeCalls()
        #expect(heard.compactMap(\.ended).map(\.call) == [calls[0]] && heard.compactMap(\.accepted).isEmpty)
        #expect(bob.accept(calls[0])?.errorCode == .notFound)
    }

    @Test func verbsInWrongStatesChangeNothing() throws {
        let call = try stage.ring(ada, bob)
        #expect(ada.accept(call)?.errorCode == .callState, "callers cannot answer their own call")
        #expect(ada.decline(call)?.errorCode == .callState)
        #expect(ada.turn(call, video: false)?.errorCode == .callState)
        #expect(bob.cancel(call)?.errorCode == .callState)
        #expect(bob.turn(call, video: false)?.errorCode == .callState)
        let mine = bob.accept(call)?.call?.accepted
        #expect(bob.accept(call)?.errorCode == .callState)
        #expect(bob.decline(call)?.errorCode == .callState)
        #expect(ada.cancel(call)?.errorCode == .callState)
        #expect(ada.call(stage.person(eve))?.errorCode == .elsewhere)
        #expect(ada.call(stage.person(bob))?.errorCode == .elsewhere)
        #expect(stage.another(of: ada).call(stage.person(bob))?.errorCode == .elsewhere, "another tab")
        #expect(bob.start()?.errorCode == .elsewhere)
        #expect(bob.enter(mine)?.type == "session.joined", "the callee can still join the call")
        bob.end(call)
        for guest in [ada, bob] {
            #expect(guest.end(call)?.errorCode == .notFound)
            #expect(guest.rejoin(call)?.errorCode == .notFound)
        }
    }

    // MARK: The roulette

    @Test func callingWhileInTheRouletteIsRefused() throws {
        ada.start()
        #expect(ada.call(stage.person(bob))?.errorCode == .elsewhere)
        eve.start()
        #expect(ada.isMatched)
        #expect(ada.call(stage.person(bob))?.errorCode == .elsewhere)
        ada.stop()
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        #expect(ada.start()?.errorCode == .elsewhere)
    }

    @Test func acceptingEndsTheChat() throws {
        bob.start()
        eve.start()
        bob.take()
        eve.take()
        let call = try stage.ring(ada, bob)
        #expect(bob.isMatched, "the call rings during the chat, which continues")
        bob.accept(call)
        #expect(!bob.isMatched)
        #expect(eve.takeEnds() == [.partnerLeft])
        #expect(stage.hub.matchCount == 0)
    }

    @Test func acceptingEndsTheSearch() throws {
        bob.start()
        let call = try stage.ring(ada, bob)
        bob.say(.call(.accept(.init(call: call, video: true))))
        let heard = bob.take()
        #expect(heard.first?.errorCode == .elsewhere, "the page that was searching is notified")
        #expect(heard.contains { $0.call?.accepted != nil })
        #expect(stage.hub.waitingCount == 0)
    }

    // MARK: Floods

    @Test func aPersonPlacesSixCallsAMinute() throws {
        for _ in 0..<6 {
            let callee = stage.present("Callee")
            let call = try stage.ring(ada, callee)
            ada.cancel(call)
        }
        let answer = ada.call(stage.person(bob))
        #expect(answer?.errorCode == .rateLimited)
        guard case .error(let refused)? = answer else { return }
        #expect(refused.error.retryable)
        stage.pass(refused.error.retryAfter ?? .zero)
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
    }

    @Test func threeUnansweredCallsThenAPause() throws {
        for outcome in 0..<3 {
            let call = try stage.ring(ada, bob)
            if outcome == 0 {
                bob.decline(call)
            } else if outcome == 1 {
                ada.cancel(call)
            } else {
                stage.pass(.seconds(45))
            }
            stage.pass(.seconds(30))
        }
        ada.take()
        guard case .error(let refused)? = ada.call(stage.person(bob)) else {
            Issue.record("the fourth call was placed")
            return
        }
        #expect(refused.error.code == .rateLimited)
        #expect(refused.error.retryAfter == .seconds(570))
        #expect(stage.another(of: ada).call(stage.person(bob))?.errorCode == .rateLimited, "another tab does not help")
        #expect(ada.call(stage.person(eve))?.type == "call.placed", "others may be called")
        ada.leave()
        stage.pass(.seconds(500))
        ada.arrive()
        ada.appear()
        #expect(ada.call(stage.person(bob))?.errorCode == .rateLimited, "reconnecting does not help")
        stage.pass(.seconds(70))
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
    }

    @Test func anAnsweredCallResetsUnansweredOnes() throws {
        for _ in 0..<2 {
            let call = try stage.ring(ada, bob)
            ada.cancel(call)
        }
        let talk = try stage.talk(ada, bob)
        ada.end(talk.call)
        for _ in 0..<3 {
            let call = try stage.ring(ada, bob)
            ada.cancel(call)
            stage.pass(.seconds(15))
        }
    }

    @Test func aPersonIsCalledTwentyTimesAMinute() throws {
        for count in 0..<30 {
            let caller = stage.present("Caller")
            caller.call(stage.person(bob))
            let news = caller.takeCalls()
            if let ringing = news.first?.ringing {
                #expect(count < 20)
                caller.cancel(ringing.call)
            } else {
                #expect(count >= 20)
                #expect(news.compactMap(\.ended).map(\.reason) == [.busy])
            }
        }
        #expect(stage.logged(bob).count == 20, "the log does not contain the flood either")
    }
}

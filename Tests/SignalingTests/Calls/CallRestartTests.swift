import Signaling
import TestSupport
import Testing
import Wire

/// The server is killed and restarted, both while calls ring and while they are active.
@Suite struct CallRestartTests {
    private let stage = Stage()
    private let ada: Guest
    private let bob: Guest

    init() {
        ada = stage.present("Ada")
        bob = stage.present("Bob")
    }

    private func comeBack(_ guests: Guest...) {
        for guest in guests {
            guest.arrive()
            guest.appear()
        }
    }

    @Test func aCallKeepsRingingUntilItsDeadlineAfterARestart() throws {
        let call = try stage.ring(ada, bob)
        stage.pass(.seconds(10))
        stage.restart()
        #expect(stage.hub.callCount == 1)
        stage.pass(.seconds(5))
        comeBack(ada, bob)
        let incoming = try #require(bob.takeCalls().first?.incoming)
        #expect(incoming.call == call)
        #expect(incoming.person.name == "Ada")
        #expect(incoming.expiresIn == .seconds(30))
        let placed = try #require(ada.rejoin(call)?.call?.placed)
        #expect(placed.expiresIn == .seconds(30))
        #expect(ada.takeCalls() == [.ringing(.init(call: call, devices: 1))])
        stage.pass(.seconds(30))
        #expect(ada.takeCallEnds() == [.unanswered])
        #expect(bob.takeCallEnds() == [.missed])
        #expect(stage.archive.openCalls.isEmpty)
    }

    @Test func aRingingCallCanBeAcceptedAfterARestart() throws {
        let call = try stage.ring(ada, bob)
        stage.restart()
        comeBack(bob)
        let mine = try #require(bob.accept(call)?.call?.accepted)
        comeBack(ada)
        let theirs = try #require(ada.rejoin(call)?.call?.accepted)
        #expect(ada.enter(theirs)?.type == "session.joined")
        #expect(bob.enter(mine)?.type == "session.joined")
        ada.take()
        bob.take()
        stage.pass(.seconds(120))
        #expect(ada.takeCallEnds().isEmpty)
    }

    /// Which of two mutual calls is dropped depends on their ids. These seeds cover both cases.
    @Test func aReturningDeviceIsNotNotifiedOfACallFromAnotherDevice() throws {
        var givenUp: Set<Bool> = []
        for seed in UInt64(0)..<16 {
            let stage = Stage(seed: seed)
            let (ada, bob) = (stage.present("Ada"), stage.present("Bob"))
            let tablet = stage.another(of: ada)
            let first = try stage.ring(ada, bob)
            stage.restart()
            for guest in [bob, tablet] {
                guest.arrive()
                guest.appear()
            }
            tablet.take()
            let second = try #require(bob.call(stage.person(ada))?.call?.placed?.call)
            let heard = tablet.takeCalls()
            if second < first {
                #expect(heard.map { $0.incoming?.call } == [second], "seed \(seed)")
                bob.take()
                #expect(tablet.accept(second)?.call?.accepted?.call == second, "seed \(seed)")
            } else {
                #expect(heard.isEmpty, "seed \(seed)")
            }
            givenUp.insert(second < first)
        }
        #expect(givenUp.count == 2)
    }

    @Test func aCallerWhoDoesNotReturnCancels() throws {
        _ = try stage.ring(ada, bob)
        stage.restart()
        comeBack(bob)
        stage.pass(.seconds(30))
        #expect(bob.takeCallEnds() == [.cancelled])
        #expect(stage.logged(ada).map(\.isSeen) == [false])
    }

    @Test func aDeadlineDuringTheRestartEndsTheCall() throws {
        let call = try stage.ring(ada, bob)
        stage.restart(after: .seconds(50))
        stage.pass(.zero)
        #expect(stage.hub.callCount == 0)
        comeBack(ada, bob)
        #expect(ada.takeCallEnds() == [.unanswered])
        #expect(bob.takeCallEnds() == [.missed])
        #expect(ada.rejoin(call)?.errorCode == .notFound)
    }

    @Test func anActiveCallContinuesWhenBothReturn() throws {
        let talk = try stage.talk(ada, bob)
        let since = talk.callee.since
        stage.pass(.seconds(100))
        stage.restart()
        stage.pass(.seconds(3))
        comeBack(ada)
        let hers = try #require(ada.rejoin(talk.call)?.call?.accepted)
        #expect(hers.admission.session == talk.session)
        #expect(hers.since == since)
        #expect(ada.takeCalls() == [.partner(.init(call: talk.call, state: .reconnecting))])
        #expect(ada.enter(hers)?.type == "session.joined")
        comeBack(bob)
        let his = try #require(bob.rejoin(talk.call)?.call?.accepted)
        #expect(bob.enter(his)?.type == "session.joined")
        #expect(ada.takeCalls() == [.partner(.init(call: talk.call, state: .connected))])
        stage.pass(.seconds(100))
        bob.take()
        bob.end(talk.call)
        #expect(ada.takeCallEnds() == [.hungUp])
        #expect(stage.logged(ada).map(\.duration) == [.seconds(203)])
    }

    @Test func anActiveCallIsLostWhenOneStaysAway() throws {
        let talk = try stage.talk(ada, bob)
        stage.restart()
        comeBack(ada)
        ada.enter(ada.rejoin(talk.call)?.call?.accepted)
        ada.take()
        stage.pass(.seconds(30))
        #expect(ada.takeCallEnds() == [.connectionLost])
        #expect(stage.logged(bob).map(\.isSeen) == [false])
        #expect(stage.archive.openCalls.isEmpty)
        comeBack(bob)
        #expect(bob.takeCallEnds() == [.connectionLost])
    }

    @Test func undeliveredEndingsSurviveARestart() throws {
        bob.leave()
        ada.call(stage.person(bob))
        ada.take()
        stage.restart()
        comeBack(bob)
        let missed = try #require(bob.takeCalls().compactMap(\.ended).first)
        #expect(missed.reason == .missed)
        bob.seen(missed.call)
        stage.restart()
        comeBack(bob)
        #expect(bob.takeCallEnds().isEmpty)
    }

    @Test func membersOfACallStayBusyAfterARestart() throws {
        let talk = try stage.talk(ada, bob)
        stage.restart()
        comeBack(ada, bob)
        let eve = stage.present("Eve")
        #expect(ada.call(stage.person(eve))?.errorCode == .elsewhere)
        #expect(ada.start()?.errorCode == .elsewhere)
        #expect(ada.end(talk.call)?.type == "ok", "a call can be ended without rejoining it")
        #expect(bob.takeCallEnds() == [.hungUp])
        #expect(ada.call(stage.person(eve))?.type == "call.placed")
    }
}

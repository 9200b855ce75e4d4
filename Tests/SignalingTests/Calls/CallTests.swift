import Signaling
import TestSupport
import Testing
import Wire

/// Calls between two people with one device each.
@Suite struct CallTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest
    private let bob: Guest

    init() {
        ada = stage.present("Ada")
        bob = stage.present("Bob")
    }

    private var openCalls: Int { stage.archive.openCalls.count }

    @Test func aCallRingsAndTheCallerIsNotified() throws {
        let placed = try #require(ada.call(stage.person(bob))?.call?.placed)
        #expect(placed.person == PersonInfo(id: stage.person(bob), name: "Bob", online: true))
        #expect(placed.video)
        #expect(placed.expiresIn == .seconds(45))
        let heard = ada.takeCalls()
        #expect(heard == [.ringing(.init(call: placed.call, devices: 1))])
        let incoming = try #require(bob.takeCalls().first?.incoming)
        #expect(incoming.call == placed.call)
        #expect(incoming.person == PersonInfo(id: stage.person(ada), name: "Ada", online: true))
        #expect(incoming.video && !incoming.waiting)
        #expect(incoming.expiresIn == .seconds(45))
        #expect(openCalls == 1)
        #expect(stage.hub.callCount == 1)
        #expect(stage.hub.sessionCount == 0, "there is no session before the call is accepted")
    }

    @Test func anAcceptedCallLetsBothPublish() throws {
        let call = try stage.ring(ada, bob)
        stage.pass(.seconds(5))
        let mine = try #require(bob.accept(call, video: false)?.call?.accepted)
        let theirs = try #require(ada.takeCalls().first?.accepted)
        #expect(mine.admission.session == theirs.admission.session)
        #expect(mine.admission.token != theirs.admission.token)
        #expect(mine.mediaMode == .routed)
        #expect(mine.withVideo && !theirs.withVideo, "Bob accepted without video")
        #expect(mine.since == stage.now)
        for (guest, accepted) in [(ada, theirs), (bob, mine)] {
            let grant = try stage.project.verifySessionToken(
                accepted.admission.token, for: accepted.admission.session, now: stage.now)
            #expect(grant.role == .publisher)
            #expect(grant.match == call.binding)
            #expect(guest.enter(accepted)?.type == "session.joined")
        }
        #expect(stage.archive.openCalls[call]?.acceptedAt == stage.now)
    }

    @Test func hangingUpEndsTheCallForBothWithItsDuration() throws {
        let talk = try stage.talk(ada, bob)
        stage.pass(.seconds(83))
        #expect(bob.end(talk.call)?.type == "ok")
        let reported = try #require(ada.take().compactMap(\.call?.ended).first)
        #expect(reported.reason == .hungUp)
        #expect(reported.duration == .seconds(83))
        #expect(bob.takeCallEnds() == [.ended])
        #expect(stage.logged(ada).map(\.outcome) == [.hungUp])
        #expect(stage.logged(bob).map(\.outcome) == [.ended])
        #expect(stage.logged(ada).map(\.duration) == [.seconds(83)])
        #expect(stage.logged(ada).map(\.otherName) == ["Bob"])
        #expect(stage.logged(bob).map(\.otherName) == ["Ada"])
        #expect((stage.logged(ada) + stage.logged(bob)).allSatisfy { $0.isSeen }, "both were notified of the end")
        #expect(openCalls == 0)
        #expect(stage.hub.callCount == 0)
    }

    @Test func decliningEndsTheCallImmediately() throws {
        let call = try stage.ring(ada, bob)
        #expect(bob.decline(call)?.type == "ok")
        #expect(ada.takeCallEnds() == [.declined])
        #expect(bob.takeCallEnds() == [.declined])
        #expect(stage.logged(bob).map(\.direction) == [.incoming])
        #expect(openCalls == 0)
    }

    @Test func cancelingStopsTheRinging() throws {
        let call = try stage.ring(ada, bob)
        #expect(ada.cancel(call)?.type == "ok")
        #expect(bob.takeCallEnds() == [.cancelled])
        #expect(ada.takeCallEnds() == [.cancelled])
        #expect(bob.accept(call)?.errorCode == .notFound)
    }

    @Test func anUnansweredCallEndsAfter45Seconds() throws {
        let call = try stage.ring(ada, bob)
        stage.pass(.milliseconds(44_999))
        #expect(ada.takeCallEnds().isEmpty)
        stage.pass(.milliseconds(1))
        #expect(ada.takeCallEnds() == [.unanswered])
        #expect(bob.takeCallEnds() == [.missed])
        #expect(stage.logged(ada).map(\.isSeen) == [true])
        #expect(stage.logged(bob).map(\.isSeen) == [false], "a missed call is reported until it has been seen")
        bob.appear()
        #expect(bob.takeCallEnds() == [.missed])
        #expect(bob.seen(call)?.type == "ok")
        #expect(stage.logged(bob).map(\.isSeen) == [true])
        bob.appear()
        #expect(bob.takeCallEnds().isEmpty)
    }

    @Test func aMemberWhoDoesNotJoinFailsTheCall() throws {
        let call = try stage.ring(ada, bob)
        let mine = bob.accept(call)?.call?.accepted
        bob.enter(mine)
        ada.take()
        stage.pass(.seconds(30))
        #expect(ada.takeCallEnds() == [.failed])
        #expect(bob.takeCallEnds() == [.failed])
        #expect(stage.hub.callCount == 0)
    }

    @Test func theCallersTabIsClosedWhileItRings() throws {
        let call = try stage.ring(ada, bob)
        ada.leave()
        #expect(bob.takeCallEnds() == [.cancelled])
        #expect(bob.accept(call)?.errorCode == .notFound)
        #expect(openCalls == 0)
    }

    @Test func theCallersConnectionDropsWhileItRings() throws {
        let call = try stage.ring(ada, bob)
        ada.drop()
        stage.pass(.seconds(20))
        #expect(bob.takeCallEnds().isEmpty, "the caller may come back")
        ada.resume()
        #expect(ada.welcome?.state.call?.id == call)
        #expect(ada.welcome?.state.call?.state == .ringing)
        #expect(bob.accept(call)?.type == "call.accepted")
        #expect(ada.takeCalls().contains { $0.accepted != nil })
    }

    @Test func theCallerDoesNotReturnWhileItRings() throws {
        _ = try stage.ring(ada, bob)
        ada.drop()
        stage.pass(.seconds(30))
        #expect(bob.takeCallEnds() == [.cancelled])
        #expect(stage.logged(ada).map(\.isSeen) == [false])
    }

    @Test func aCallSurvives8SecondsWithoutNetwork() throws {
        let talk = try stage.talk(ada, bob)
        bob.drop()
        #expect(ada.takeCalls() == [.partner(.init(call: talk.call, state: .reconnecting))])
        stage.pass(.seconds(8))
        bob.resume()
        #expect(ada.takeCalls() == [.partner(.init(call: talk.call, state: .connected))])
        #expect(bob.welcome?.state.call?.id == talk.call)
        #expect(bob.welcome?.state.call?.state == .active)
        #expect(bob.welcome?.state.sessions == [talk.session.text])
        #expect(bob.takeCalls().isEmpty)
    }

    @Test func aMemberWhoDoesNotReturnEndsTheCall() throws {
        let talk = try stage.talk(ada, bob)
        bob.drop()
        stage.pass(.seconds(30))
        #expect(ada.takeCallEnds() == [.connectionLost])
        #expect(stage.logged(bob).map(\.outcome) == [.connectionLost])
        #expect(stage.logged(bob).map(\.isSeen) == [false], "the person had no connected device")
        bob.arrive()
        bob.appear()
        let reported = try #require(bob.takeCalls().compactMap(\.ended).first)
        #expect(reported.call == talk.call)
        #expect(reported.duration == .seconds(30))
        bob.seen(talk.call)
        #expect(stage.logged(bob).map(\.isSeen) == [true])
    }

    @Test func closingThePageHangsUp() throws {
        _ = try stage.talk(ada, bob)
        bob.leave()
        #expect(ada.takeCallEnds() == [.hungUp])
        #expect(stage.logged(bob).map(\.isSeen) == [true], "the person who hung up knows about it")
    }

    @Test func switchingVideoOffAndOnIsAnnounced() throws {
        let talk = try stage.talk(ada, bob)
        #expect(ada.turn(talk.call, video: false)?.type == "ok")
        #expect(bob.takeCalls() == [.changed(.init(call: talk.call, video: false))])
        ada.turn(talk.call, video: false)
        #expect(bob.takeCalls().isEmpty, "nothing changed")
        ada.turn(talk.call, video: true)
        #expect(bob.takeCalls() == [.changed(.init(call: talk.call, video: true))])
    }

    @Test func anOfflinePersonWithoutPushIsUnreachable() throws {
        bob.leave()
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        let end = try #require(ada.takeCalls().last?.ended)
        #expect(end.reason == .unreachable)
        #expect(end.person.name == "Bob")
        #expect(stage.logged(bob).map(\.outcome) == [.missed])
        #expect(openCalls == 0)
        bob.arrive()
        bob.appear()
        #expect(bob.takeCallEnds() == [.missed])
    }

    @Test func theLastDeviceLeavesWhileItRings() throws {
        _ = try stage.ring(ada, bob)
        bob.leave()
        #expect(ada.takeCallEnds() == [.unreachable])
        #expect(stage.logged(bob).map(\.outcome) == [.missed])
    }

    @Test func tokensOfAnEndedCallAreRevoked() throws {
        let talk = try stage.talk(ada, bob)
        ada.end(talk.call)
        let left = ServerMessage.session(.left(.init(session: talk.session, reason: .matchEnded)))
        #expect(bob.take().first == left, "the session is closed before the end is announced")
        #expect(bob.enter(talk.callee)?.errorCode == .tokenMatchEnded)
        #expect(bob.closeCode == nil, "the join may have crossed the end of the call, so the connection stays open")
        let thief = stage.arrive()
        thief.enter(talk.caller)
        #expect(thief.closeCode == .token)
    }

    @Test func aThirdMemberCannotJoin() throws {
        let talk = try stage.talk(ada, bob)
        let third = stage.arrive()
        #expect(third.enter(talk.caller) == nil)
        #expect(third.refusals.map(\.code) == [.tokenIdentity])
    }

    @Test func bothSidesHaveALimitedCallLog() throws {
        let call = try stage.ring(ada, bob)
        bob.decline(call)
        stage.pass(.seconds(60))
        let second = try stage.talk(bob, ada)
        stage.pass(.seconds(5))
        bob.end(second.call)
        #expect(ada.callLog().map(\.outcome) == [.hungUp, .declined])
        #expect(ada.callLog().map(\.direction) == [.incoming, .outgoing])
        #expect(bob.callLog().first?.duration == .seconds(5))
        #expect(bob.ask(.call(.forget(.init(call: call))))?.type == "ok")
        #expect(bob.callLog().map(\.call) == [second.call])
        bob.ask(.call(.forget(.init(call: nil))))
        #expect(bob.callLog().isEmpty)
        #expect(ada.callLog().count == 2, "the other person's log is unchanged")
    }
}

import Signaling
import TestSupport
import Testing
import Wire

/// Calls with several devices per person, several calls at once, and push notifications.
@Suite struct CallDeviceTests: WithTrio {
    let trio = Trio()

    // MARK: Devices

    @Test func aCallRingsOnAllDevicesAndEndsOnTheOthersWhenAnswered() throws {
        let phone = stage.another(of: bob)
        let placed = try #require(ada.call(stage.person(bob))?.call?.placed)
        #expect(ada.takeCalls() == [.ringing(.init(call: placed.call, devices: 2))])
        #expect(bob.takeCalls().first?.incoming?.call == placed.call)
        #expect(phone.takeCalls().first?.incoming?.call == placed.call)
        #expect(phone.accept(placed.call)?.type == "call.accepted")
        #expect(bob.takeCallEnds() == [.answeredElsewhere])
        #expect(bob.accept(placed.call)?.errorCode == .callState)
        #expect(stage.logged(bob).isEmpty, "the call continues")
    }

    @Test func decliningOnOneDeviceStopsRingingOnTheOthers() throws {
        let phone = stage.another(of: bob)
        let call = try stage.ring(ada, bob)
        phone.take()
        phone.decline(call)
        #expect(phone.takeCallEnds() == [.declined])
        #expect(bob.takeCallEnds() == [.declinedElsewhere])
        #expect(stage.logged(bob).map(\.outcome) == [.declined], "the call log has one outcome for the person")
    }

    @Test func aDeviceThatGoesOnlineRingsToo() throws {
        let call = try stage.ring(ada, bob)
        stage.pass(.seconds(10))
        let phone = stage.arrive(bob.person)
        phone.appear()
        let incoming = try #require(phone.takeCalls().first?.incoming)
        #expect(incoming.call == call)
        #expect(incoming.expiresIn == .seconds(35))
        #expect(ada.takeCalls() == [.ringing(.init(call: call, devices: 2))])
        phone.appear()
        #expect(phone.takeCalls().isEmpty, "the device is notified only once")
    }

    @Test func theCallKeepsRingingWhenOneOfTwoDevicesLeaves() throws {
        let phone = stage.another(of: bob)
        let call = try stage.ring(ada, bob)
        bob.leave()
        #expect(ada.takeCalls() == [.ringing(.init(call: call, devices: 1))])
        #expect(phone.accept(call)?.type == "call.accepted")
    }

    @Test func anyDeviceMayHangUp() throws {
        let phone = stage.another(of: bob)
        let talk = try stage.talk(ada, bob)
        phone.take()
        #expect(phone.end(talk.call)?.type == "ok")
        #expect(ada.takeCallEnds() == [.hungUp])
        #expect(bob.takeCallEnds() == [.ended])
        #expect(phone.takeCallEnds() == [.ended])
    }

    @Test func anotherDeviceTakesOverFromOneThatDropped() throws {
        let phone = stage.another(of: bob)
        let talk = try stage.talk(ada, bob)
        #expect(phone.rejoin(talk.call)?.errorCode == .elsewhere, "the call is on the other device")
        bob.drop()
        ada.take()
        let again = try #require(phone.rejoin(talk.call)?.call?.accepted)
        #expect(again.admission.session == talk.session)
        #expect(again.since == talk.callee.since)
        #expect(phone.enter(again)?.type == "session.joined")
        #expect(ada.takeCalls() == [.partner(.init(call: talk.call, state: .connected))])
        bob.resume()
        #expect(bob.welcome?.state.call == nil)
        #expect(bob.welcome?.state.sessions == [])
        bob.leave()
        #expect(ada.takeCalls().isEmpty, "the call is on the phone now")
        phone.leave()
        #expect(ada.takeCallEnds() == [.hungUp])
    }

    @Test func aDeviceThatReturnsAfterItsCallMovedHearsOnlyWhatHappenedBefore() throws {
        let phone = stage.another(of: bob)
        let talk = try stage.talk(ada, bob)
        bob.drop()
        ada.turn(talk.call, video: false)
        phone.rejoin(talk.call)
        ada.turn(talk.call, video: true)
        bob.resume()
        let heard = bob.take()
        #expect(heard.compactMap(\.call) == [.changed(.init(call: talk.call, video: false))])
        #expect(heard.last?.type == "session.left", "so that its page shows no call any longer")
    }

    // MARK: Waiting and busy

    @Test func acceptingAWaitingCallEndsTheFirst() throws {
        let first = try stage.talk(ada, bob)
        let placed = try #require(eve.call(stage.person(bob))?.call?.placed)
        let waiting = try #require(bob.takeCalls().first?.incoming)
        #expect(waiting.waiting)
        #expect(bob.accept(placed.call)?.type == "call.accepted")
        #expect(ada.takeCallEnds() == [.hungUp])
        #expect(bob.takeCalls().compactMap(\.ended).map(\.call) == [first.call])
        #expect(stage.hub.callCount == 1)
        let third = stage.arrive()
        #expect(third.enter(first.caller) == nil, "the first call's tokens are revoked")
    }

    @Test func aThirdCallerGetsBusy() throws {
        let (zoe, third) = (stage.present("Zoe"), stage.present("Third"))
        _ = try stage.talk(ada, bob)
        _ = try stage.ring(eve, bob)
        #expect(zoe.call(stage.person(bob))?.type == "call.placed")
        #expect(zoe.takeCallEnds() == [.busy])
        #expect(bob.takeCallEnds() == [.missed], "the missed call is reported")
        #expect(stage.logged(bob).map(\.outcome) == [.missed])
        _ = try stage.ring(third, zoe)
    }

    @Test func decliningTheWaitingCallLeavesTheFirst() throws {
        let first = try stage.talk(ada, bob)
        let call = try stage.ring(eve, bob)
        bob.decline(call)
        #expect(eve.takeCallEnds() == [.declined])
        #expect(ada.takeCalls().isEmpty)
        #expect(bob.end(first.call)?.type == "ok")
    }

    @Test func acceptingWhileCallingCancelsTheOutgoingCall() throws {
        let outgoing = try stage.ring(bob, ada)
        let incoming = try stage.ring(eve, bob)
        bob.accept(incoming)
        #expect(ada.takeCallEnds() == [.cancelled])
        #expect(bob.takeCalls().compactMap(\.ended).map(\.call) == [outgoing])
    }

    @Test func doNotDisturbMeansBusy() {
        bob.appear(doNotDisturb: true)
        bob.take()
        ada.call(stage.person(bob))
        #expect(ada.takeCallEnds() == [.busy])
        #expect(bob.takeCalls().compactMap(\.incoming).isEmpty)
        #expect(stage.pushes.isEmpty)
    }

    // MARK: Mutual calls

    /// Call IDs are random, so both orders of the IDs occur.
    @Test func mutualCallsMergeIntoOne() throws {
        var winners: Set<Bool> = []
        for _ in 0..<12 {
            let (one, two) = (stage.present("One"), stage.present("Two"))
            let tablet = stage.another(of: two)
            let first = try stage.ring(one, two)
            tablet.take()
            let second = try #require(two.call(stage.person(one))?.call?.placed?.call)
            let on = min(first, second)
            winners.insert(on == first)
            let (hers, his) = (one.takeCalls(), two.takeCalls())
            let (left, right) = (hers.compactMap(\.accepted), his.compactMap(\.accepted))
            #expect(left.map(\.call) == [on])
            #expect(right.map(\.call) == [on])
            #expect(left.first?.admission.session == right.first?.admission.session)
            // Each device was notified that one call ended, and into which call it was merged.
            let over = (hers + his).compactMap(\.ended)
            #expect(over.allSatisfy { $0.reason == .merged && $0.into == on && $0.call == max(first, second) })
            #expect(his.compactMap(\.ended).count == 1)
            #expect(tablet.takeCallEnds() == [.answeredElsewhere])
            #expect(stage.archive.openCalls.keys.filter { $0 == first || $0 == second } == [on])
            one.enter(left.first)
            two.enter(right.first)
            stage.pass(.seconds(40))
            two.end(on)
            #expect(one.takeCallEnds() == [.hungUp])
            #expect(stage.logged(one).count == 1, "the two calls are logged as one")
            #expect(stage.logged(two).count == 1)
        }
        #expect(winners.count == 2)
    }

    // MARK: Push notifications

    @Test func sleepingDevicesGetPushesForTheCallAndItsEnd() throws {
        stage.register(bob)
        bob.leave()
        let placed = try #require(ada.call(stage.person(bob))?.call?.placed)
        #expect(ada.takeCalls() == [.ringing(.init(call: placed.call, devices: 0))])
        #expect(stage.noticesOf(bob) == [.incoming])
        let phone = stage.arrive(bob.person)
        phone.appear()
        #expect(phone.takeCalls().first?.incoming?.call == placed.call)
        #expect(ada.takeCalls() == [.ringing(.init(call: placed.call, devices: 1))])
        phone.accept(placed.call)
        #expect(stage.noticesOf(bob) == [.incoming, .over], "the notification is removed everywhere")
    }

    @Test func aDeviceThatDoesNotWakeUpMissesTheCall() {
        stage.register(bob)
        bob.leave()
        ada.call(stage.person(bob))
        stage.pass(.seconds(45))
        #expect(ada.takeCallEnds() == [.unanswered])
        #expect(stage.noticesOf(bob) == [.incoming, .missed])
    }

    @Test func aPersonWithoutAPushEndpointIsUnreachable() {
        stage.register(bob)
        let roulette = stage.arrive(bob.person)
        bob.leave()
        stage.handle(.unreachable(bob.person))
        ada.call(stage.person(bob))
        #expect(ada.takeCallEnds() == [.unreachable])
        #expect(stage.noticesOf(bob).isEmpty)
        #expect(roulette.takeCallEnds() == [], "the roulette page never went online")
    }

    @Test func aLinkedDeviceKeepsItsPushEndpoint() throws {
        let phone = stage.present("Phone", push: true)
        let roulette = stage.arrive(bob.person)
        phone.useLink(try #require(bob.linkCode()))
        bob.leave()
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        #expect(ada.takeCallEnds().isEmpty)
        #expect(stage.noticesOf(bob) == [.incoming])
        #expect(roulette.takeCalls().isEmpty, "the roulette page never went online")
    }

    @Test(arguments: [true, false]) func anUnlinkedDeviceGetsNoPushes(another: Bool) throws {
        let phone = stage.arrive()
        let roulette = stage.arrive(bob.person)
        phone.useLink(try #require(bob.linkCode()))
        phone.arrive()
        stage.register(phone)
        if another { stage.register(bob) }
        let device = stage.project.personID(of: phone.identity)
        #expect(bob.ask(.presence(.unlink(.init(device: device))))?.type == "ok")
        bob.leave()
        #expect(ada.call(stage.person(bob))?.type == "call.placed")
        #expect(ada.takeCallEnds() == (another ? [] : [.unreachable]))
        #expect(stage.noticesOf(bob) == (another ? [.incoming] : []))
        #expect(roulette.takeCalls().isEmpty)
    }

    @Test func cancelingACallCancelsThePushes() throws {
        stage.register(bob)
        let call = try stage.ring(ada, bob)
        bob.leave()
        #expect(ada.takeCallEnds().isEmpty, "a device may still be woken by a push")
        ada.cancel(call)
        #expect(stage.noticesOf(bob) == [.incoming, .over])
        #expect(stage.logged(bob).map(\.isSeen) == [false])
    }
}

import Signaling
import TestSupport
import Testing
import Wire

/// Tests how a client negotiates its two peer connections with the server.
@Suite struct MediaOfferTests {
    private let stage = Stage {
        $0.routesMedia = true
        $0.rouletteMediaMode = .routed
    }

    private func offer(_ side: MediaSide = .send, size: Int = 4) -> ClientMessage {
        .media(.offer(.init(side: side, sdp: String(repeating: "v", count: size))))
    }

    @Test func theWelcomeSaysWhetherMediaIsRoutedAndHowMatchesAre() {
        #expect(stage.arrive().welcome?.media == Welcome.Media(roulette: .routed))
        let other = Stage {
            $0.routesMedia = true
            $0.rouletteMediaMode = .relayed
        }
        #expect(other.arrive().welcome?.media == Welcome.Media(roulette: .relayed))
    }

    @Test func matchesAreRoutedOnlyIfTheServerRoutesMedia() {
        let (_, _, routed) = stage.pair()
        #expect(stage.project.mediaMode(of: routed.publish.session) == .routed)
        let without = Stage { $0.rouletteMediaMode = .routed }
        let (guest, _, relayed) = without.pair()
        #expect(without.project.mediaMode(of: relayed.publish.session) == .relayed)
        #expect(guest.welcome?.media == nil)
    }

    @Test(arguments: MediaSide.allCases) func anOfferGoesToTheMediaPlaneAndItsAnswerBack(_ side: MediaSide) {
        let ada = stage.arrive()
        let re = ada.say(offer(side))
        #expect(stage.media == [.offer(ada.connection, in: nil, re: re, side, sdp: "vvvv")])
        #expect(ada.take() == [])
        stage.handle(.media(.answered(ada.connection, re: re, side, sdp: "a")))
        #expect(ada.take() == [.media(.answer(.init(re: re, side: side, sdp: "a")))])
    }

    @Test func anOfferNamesTheSessionThatTheClientJoinedLast() {
        let ada = stage.arrive()
        let sessions = [stage.room(.routed), stage.room(.routed)]
        for session in sessions {
            ada.enter(session, on: stage)
            let re = ada.say(offer(.send))
            #expect(stage.media == [.offer(ada.connection, in: session, re: re, .send, sdp: "vvvv")])
        }
        ada.ask(.session(.leave(.init(session: sessions[1]))))
        let re = ada.say(offer(.receive))
        #expect(stage.media == [.offer(ada.connection, in: sessions[0], re: re, .receive, sdp: "vvvv")])
    }

    @Test func anUnanswerableOfferIsRefusedWithAReason() {
        let ada = stage.arrive()
        let re = ada.say(offer())
        let error = WireError(.descriptionInvalid, "The offer has no a=fingerprint line.")
        stage.handle(.media(.refused(ada.connection, re: re, error)))
        #expect(ada.take() == [.error(.init(error, re: re))])
        #expect(ada.closeCode == nil)
    }

    @Test func anOfferIsRefusedIfTheServerDoesNotRouteMedia() {
        let stage = Stage()
        let ada = stage.arrive()
        #expect(ada.ask(offer())?.errorCode == .mediaUnavailable)
        #expect(ada.ask(.media(.close(.init(side: .send))))?.type == "ok")
        ada.leave()
        #expect(stage.media == [])
    }

    @Test func eitherEndCanCloseASide() {
        let ada = stage.arrive()
        ada.say(offer(.receive))
        #expect(ada.ask(.media(.close(.init(side: .receive))))?.type == "ok")
        #expect(stage.media == [.close(ada.connection, .receive)])
        let error = WireError(.dtlsFailed, "The encrypted connection could not be made.")
        stage.handle(.media(.closed(ada.connection, .send, error)))
        #expect(ada.take() == [.media(.closed(.init(side: .send, error)))])
    }

    @Test func theEstimateComesFromTheMediaPlane() {
        let ada = stage.arrive()
        let early = ada.say(.media(.estimate))
        #expect(ada.take() == [.media(.estimate(.init(re: early, bitrate: nil)))])
        #expect(stage.media == [], "the media plane does not know Ada yet")
        ada.say(offer(.receive))
        for bitrate in [640_000, nil] {
            let re = ada.say(.media(.estimate))
            #expect(stage.media == [.estimate(ada.connection, re: re)])
            #expect(ada.take() == [])
            stage.handle(.media(.estimated(ada.connection, re: re, bitrate: bitrate)))
            #expect(ada.take() == [.media(.estimate(.init(re: re, bitrate: bitrate)))])
        }
    }

    @Test func theMediaPlaneIsNotifiedOnceWhenAClientLeaves() {
        let ways: [(Guest) -> Void] = [
            { $0.leave() }, { $0.sayUnnumbered(.bye) },
            { [stage] in
                $0.drop()
                stage.pass(.seconds(31))
            },
            { [stage] in
                stage.handle(
                    .banned(Ban(subject: .identity($0.identity), reason: "", createdAt: stage.now, expiresAt: nil)))
            },
        ]
        for way in ways {
            let ada = stage.arrive()
            ada.say(offer(.send))
            ada.say(offer(.receive))
            way(ada)
            #expect(stage.media == [.leave(ada.connection)])
            stage.pass(.seconds(60))
            #expect(stage.media == [])
        }
    }

    @Test func mediaEventsForAClientThatLeftAreDropped() {
        let ada = stage.arrive()
        let re = ada.say(offer())
        ada.leave()
        stage.handle(.media(.answered(ada.connection, re: re, .send, sdp: "a")))
        stage.handle(.media(.closed(ada.connection, .send, WireError(.dtlsFailed, ""))))
        #expect(stage.effects == [])
    }

    @Test func anAnswerForADroppedClientIsKept() {
        let ada = stage.arrive()
        let re = ada.say(offer())
        ada.drop()
        #expect(stage.media == [], "its media continues")
        stage.handle(.media(.answered(ada.connection, re: re, .send, sdp: "a")))
        ada.resume()
        #expect(ada.take() == [.media(.answer(.init(re: re, side: .send, sdp: "a")))])
        #expect(stage.media == [])
    }

    /// A client that cannot resume starts over, and its state on the media plane is removed.
    @Test func aClientThatCannotResumeIsRemovedFromTheMediaPlane() {
        let ada = stage.arrive()
        ada.say(offer())
        let former = ada.connection
        ada.drop()
        for number in 0..<300 {
            stage.handle(.media(.closed(former, .send, WireError(.dtlsFailed, "\(number)"))))
        }
        ada.resume()
        #expect(ada.connection != former)
        #expect(stage.media == [.leave(former)])
    }

    @Test func anOfferCostsMoreTheLargerItIs() {
        let ada = stage.arrive()
        let large = offer(size: 200 * 1024)
        // Each offer costs 51 of the burst of 500.
        for _ in 0..<9 { ada.say(large) }
        #expect(stage.media.count == 1)
        #expect(ada.ask(large)?.errorCode == .rateLimited)
        #expect(stage.media == [])
        #expect(ada.ask(.roulette(.count))?.type == "roulette.count", "other verbs have their own budget")
    }
}

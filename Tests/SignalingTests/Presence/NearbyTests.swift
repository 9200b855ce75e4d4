import Signaling
import TestSupport
import Testing
import Wire

/// Tests who is listed for whom and when, and how viewers are notified.
@Suite struct NearbyTests {
    private let stage = Stage()

    @Test func peopleWithALocationAreListedWithinReach() {
        let ada = stage.nearby("Ada")
        #expect(ada.watch()?.people == [])
        let ben = stage.nearby("Ben", 52.4, 13.1)
        let list = ben.watch()
        #expect(list?.people == [NearbyRow(person: stage.person(ada), name: "Ada", distance: 25, busy: false)])
        #expect(list?.radius == 200)
        #expect(list?.unit == .miles)
        #expect(list?.next == nil)
        #expect(ben.watch(40, .kilometers)?.people.map(\.distance) == [40])
        #expect(ben.watch(5)?.people == [])
    }

    @Test func aPageIsNotifiedOfChanges() {
        let ada = stage.nearby("Ada")
        ada.watch()
        stage.pass(.seconds(2))
        let ben = stage.nearby("Ben")
        stage.pass(.seconds(2))
        let id = stage.person(ben)
        let row = NearbyRow(person: id, name: "Ben", distance: 2, busy: false)
        #expect(ada.takeChanges().map(\.people) == [[row]])
        ben.drop()
        stage.pass(.seconds(1))
        let gone = ada.takeChanges()
        #expect(gone.map(\.gone) == [[id]])
        #expect(gone.map(\.order) == [[]])
        ben.resume()
        stage.pass(.seconds(1))
        #expect(ada.takeChanges().map(\.people) == [[row]])
        ben.leave()
        stage.pass(.seconds(1))
        #expect(ada.takeChanges().map(\.gone) == [[id]])
    }

    // MARK: Who is listed

    @Test func offlinePeopleAreNotListed() {
        let ada = stage.nearby("Ada")
        let ben = stage.nearby("Ben")
        func listed() -> [String]? { ada.watch()?.names }
        #expect(listed() == ["Ben"])
        ben.drop()
        #expect(listed() == [], "a dropped connection is not listed")
        ben.resume()
        #expect(listed() == ["Ben"])
        ben.drop()
        stage.pass(.seconds(30))
        #expect(listed() == [], "a connection that did not return is not listed")
        ben.arrive()
        #expect(listed() == [], "a person who did not go online is not listed")
        ben.appear()
        #expect(listed() == [], "a person without a location is not listed")
        ben.move(52.52, 13.405)
        #expect(listed() == ["Ben"])
        ben.set(visible: false)
        #expect(listed() == [], "an invisible person is not listed")
        ben.set(visible: true)
        ben.ask(.nearby(.forget))
        #expect(listed() == [], "a person who removed the location is not listed")
        ben.move(52.52, 13.405)
        ben.ask(.presence(.leave))
        #expect(listed() == [], "a person who went offline is not listed")
        ben.appear()
        ben.move(52.52, 13.405)
        ben.leave()
        #expect(listed() == [], "a person whose page was closed is not listed")
    }

    @Test func afterACrashOnlyReturningPeopleAreListed() {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben"))
        #expect(ada.watch()?.names == ["Ben"])
        stage.restart()
        ada.arrive()
        ada.appear()
        ada.move(52.52, 13.405)
        #expect(ada.watch()?.names == [])
        ben.arrive()
        ben.appear()
        ben.move(52.52, 13.405)
        #expect(ada.watch()?.names == ["Ben"])
    }

    @Test func bannedPeopleAreNotListed() {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben"))
        stage.handle(.banned(Ban(subject: .identity(ben.identity), reason: "rude", createdAt: stage.now)))
        #expect(ada.watch()?.names == [])
    }

    @Test func blockedPeopleDoNotSeeEachOther() {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben"))
        let eve = stage.nearby("Eve")
        #expect(Set(ben.watch()?.names ?? []) == ["Ada", "Eve"])
        #expect(Set(ada.watch()?.names ?? []) == ["Ben", "Eve"])
        stage.pass(.seconds(2))
        ada.block(person: stage.person(ben))
        stage.pass(.seconds(1))
        #expect(ben.takeChanges().map(\.gone) == [[stage.person(ada)]])
        #expect(ada.takeChanges().map(\.gone) == [[stage.person(ben)]])
        #expect(ben.watch()?.names == ["Eve"])
        #expect(Set(eve.watch()?.names ?? []) == ["Ada", "Ben"])
        stage.pass(.seconds(2))
        ada.unblock(person: stage.person(ben))
        stage.pass(.seconds(1))
        #expect(ben.takeChanges().map { $0.people.map(\.name) } == [["Ada"]])
    }

    @Test func chattingAndDoNotDisturbAreListedAsBusy() {
        let ada = stage.nearby("Ada")
        let ben = stage.nearby("Ben")
        func busy() -> [Bool]? { ada.watch()?.people.map(\.busy) }
        #expect(busy() == [false])
        ben.set(doNotDisturb: true)
        #expect(busy() == [true])
        ben.set(doNotDisturb: false)
        #expect(busy() == [false])
        let carol = stage.arrive()
        _ = stage.pair(ben, carol)
        #expect(busy() == [true])
        carol.leave()
        #expect(busy() == [false])
        ben.stop()
    }

    // MARK: Pages

    @Test func pagesHaveNoGapsOrDuplicates() {
        let ada = stage.nearby("Ada")
        for number in 0..<120 { _ = stage.nearby("\(number)", 52.52 + Double(number % 7) * 0.1, 13.405) }
        var names: [String] = []
        var distances: [Int] = []
        var after: String?
        repeat {
            let list = ada.watch(after: after)
            names += list?.names ?? []
            distances += list?.people.map(\.distance) ?? []
            #expect((list?.people.count ?? 0) <= 50)
            after = list?.next
        } while after != nil
        #expect(names.count == 120)
        #expect(Set(names).count == 120)
        #expect(distances == distances.sorted())
        #expect(ada.watch(limit: 3)?.people.count == 3)
    }

    @Test func pageRequestsAreLimitedByPersonAndTheCurrentPageStaysLive() {
        let ada = stage.nearby("Ada")
        let tab = stage.arrive(ada.identity)
        tab.appear()
        for _ in 0..<30 { #expect(ada.watch() != nil) }
        guard case .error(let refusal)? = tab.ask(.nearby(.watch(.init(unit: .miles, radius: 5)))) else {
            Issue.record("another device can continue to request pages")
            return
        }
        #expect(refusal.error.code == .rateLimited)
        #expect(refusal.error.retryAfter == .seconds(2))
        _ = stage.nearby("Ben")
        stage.pass(.seconds(1))
        #expect(ada.takeChanges().map { $0.people.map(\.name) } == [["Ben"]])
        stage.pass(.seconds(1))
        #expect(tab.watch()?.names == ["Ben"])
    }

    @Test(arguments: ["", "x", "00000", "90000000000000000", "0000000000000000\u{0}", "../../etc/passwd"])
    func invalidCursorsAreRefused(cursor: String) {
        let ada = stage.nearby("Ada")
        let watch = NearbyVerb.Watch(unit: .miles, radius: 5, after: cursor)
        #expect(ada.ask(.nearby(.watch(watch)))?.errorCode == .malformed)
        #expect(ada.watch()?.people == [])
    }

    @Test func aForgedCursorShowsNobodyBeyondTheRadius() {
        let ada = stage.nearby("Ada")
        _ = stage.nearby("Ben", 52.62, 13.405)
        for after in (0..<7).flatMap({ ["\($0)0000000000000000", "\($0)ffffffffffffffff"] }) {
            #expect(ada.watch(1, .kilometers, after: after)?.people.isEmpty == true, "\(after)")
        }
        for after in ["0", "6"] {
            let far = ada.watch(.max >> 32, .kilometers, after: after + "0000000000000000")
            #expect(far?.radius == 320 && far?.names == (after == "0" ? ["Ben"] : []))
        }
    }

    @Test func theOrderChangesDailyAndIsTheSameForAll() {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben", 52.7, 13.2))
        for number in 0..<40 { _ = stage.nearby("\(number)") }
        func order(_ guest: Guest) -> [String] { guest.watch()?.names.filter { Int($0) != nil } ?? [] }
        let today = order(ada)
        #expect(order(ben) == today)
        #expect(order(ada) == today)
        stage.pass(.seconds(86_400))
        let tomorrow = order(ada)
        #expect(Set(tomorrow) == Set(today))
        #expect(tomorrow != today)
    }

    // MARK: Live

    @Test func changesAreSentAtMostOncePerSecond() {
        let ada = stage.nearby("Ada")
        ada.watch()
        stage.pass(.seconds(10))
        #expect(ada.take().isEmpty)
        let others = (0..<30).map { stage.nearby("\($0)") }
        for step in 0..<100 {
            others[step % 30].set(name: "\(step)")
            stage.pass(.milliseconds(100))
        }
        stage.pass(.seconds(2))
        let changes = ada.takeChanges()
        #expect((9...13).contains(changes.count), "\(changes.count)")
        #expect(changes.last?.order?.count == 30)
        stage.pass(.seconds(10))
        #expect(ada.take().isEmpty)
        _ = stage.nearby("far away", -10, 100)
        others[0].move(52.5201, 13.4051)
        stage.pass(.seconds(10))
        #expect(ada.take().isEmpty, "nothing on this page changed")
    }

    @Test func aChangedPageEqualsANewList() {
        let ada = stage.nearby("Ada")
        var page: [PersonID: NearbyRow] = [:]
        let list = ada.watch(limit: 10)
        var (order, next) = (list?.people.map(\.person) ?? [], list?.next)
        let others = (0..<25).map { stage.nearby("\($0)", 52.52 + Double($0 % 5) * 0.05, 13.405) }
        for step in 0..<60 {
            let other = others[Int.random(in: others.indices, using: &stage.generator)]
            switch step % 4 {
            case 0: other.set(name: "step \(step)")
            case 1: other.set(visible: step % 8 == 1)
            case 2: other.move(52.52 + Double(step % 5) * 0.02, 13.405)
            default: other.set(doNotDisturb: step % 8 == 3)
            }
            stage.pass(.milliseconds(700))
            for change in ada.takeChanges() {
                for row in change.people { page[row.person] = row }
                for person in change.gone ?? [] { page[person] = nil }
                (order, next) = (change.order ?? [], change.next)
                #expect(Set(page.keys) == Set(order))
            }
        }
        stage.pass(.seconds(3))
        for change in ada.takeChanges() {
            for row in change.people { page[row.person] = row }
            for person in change.gone ?? [] { page[person] = nil }
            (order, next) = (change.order ?? [], change.next)
        }
        let now = ada.watch(limit: 10)
        #expect(now?.people == order.compactMap { page[$0] })
        #expect(now?.next == next)
    }

    @Test func movingChangesThePage() {
        let ada = stage.nearby("Ada")
        _ = stage.nearby("Ben", 52.52, 13.405)
        ada.watch(2)
        stage.pass(.seconds(7200))
        _ = stage.nearby("Carol", 48.85, 2.35)
        ada.take()
        ada.move(48.85, 2.35)
        stage.pass(.seconds(1))
        let changes = ada.takeChanges()
        #expect(changes.map { $0.people.map(\.name) } == [["Carol"]])
        #expect(changes.first?.gone?.count == 1)
        ada.ask(.nearby(.forget))
        stage.pass(.seconds(1))
        #expect(ada.takeChanges().map(\.order) == [[]], "without a location no one is nearby")
        ada.move(48.85, 2.35)
        stage.pass(.seconds(1))
        #expect(ada.takeChanges().map { $0.people.map(\.name) } == [["Carol"]], "the page continues to be updated")
    }

    @Test func watchingEndsOnRequestAndWithTheDevice() {
        let ada = stage.nearby("Ada")
        func heard(_ body: () -> Void) -> Int {
            ada.watch()
            stage.pass(.seconds(2))
            body()
            ada.take()
            let ben = stage.nearby("Ben")
            stage.pass(.seconds(2))
            ben.leave()
            stage.pass(.seconds(2))
            return ada.takeChanges().count
        }
        #expect(heard {} == 2)
        #expect(heard { ada.ask(.nearby(.unwatch)) } == 0)
        #expect(heard { ada.watch(2) } == 2, "a second watch replaces the first")
        #expect(heard { ada.ask(.presence(.leave)) } == 0)
        ada.appear()
        ada.move(52.52, 13.405)
        ada.watch()
        ada.leave()
        #expect(stage.hub.nextTimeout.map { $0 > stage.now + .seconds(60) } ?? true, "no timer is left")
    }

    @Test func aReturningViewerGetsThePagesChangesImmediately() {
        let ada = stage.nearby("Ada")
        ada.watch()
        ada.drop()
        for number in 0..<20 {
            _ = stage.nearby("\(number)")
            stage.pass(.seconds(1))
        }
        ada.take()
        ada.resume()
        stage.pass(.seconds(1))
        let changes = ada.takeChanges()
        #expect(changes.map { $0.order?.count } == [20])
    }

    @Test func manyViewersAreNotifiedInTurnWithinTheRateLimit() {
        let stage = Stage { $0.nearbyRefreshesPerSecond = 20 }
        let guests = (0..<60).map { stage.nearby("\($0)") }
        for guest in guests { guest.watch(limit: 5) }
        stage.pass(.seconds(5))
        for guest in guests { guest.take() }
        let first = guests[0].watch(limit: 5)?.people.first?.person
        let shown = guests.first { stage.person($0) == first }
        shown?.set(doNotDisturb: true)
        var reported: [Int] = []
        for _ in 0..<6 {
            stage.pass(.seconds(1))
            reported.append(guests.count { !$0.takeChanges().isEmpty })
        }
        #expect(reported.allSatisfy { $0 <= 21 }, "\(reported)")
        #expect(reported.reduce(0, +) >= 59, "all viewers are notified: \(reported)")
    }

    // MARK: Hostile positions

    @Test(
        arguments: [
            (JSONValue.number(91), JSONValue.number(0)), (.number(-90.5), .integer(0)), (.integer(0), .number(180.5)),
            (.integer(.max), .integer(.min)), (.number(.infinity), .number(0)), (.number(.nan), .number(.nan)),
            (.number(1e308), .number(-1e308)), (.string("52.5"), .string("13.4")), (.null, .null),
            (.number(90.0000001), .integer(0)), (.integer(0), .number(180.0000001)),
            (.string("NaN"), .string("Infinity")),
            (.string("\u{0}\u{202E}"), .string("../../etc/passwd")), (.bool(true), .bool(false)),
            (.array([.integer(1)]), .object(JSONObject())),
        ])
    func whatIsNoPositionIsRefusedAndTheOldOneStays(latitude: JSONValue, longitude: JSONValue) {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben"))
        var move = NearbyVerb.Move()
        (move.latitude, move.longitude) = (latitude, longitude)
        #expect(ben.ask(.nearby(.move(move)))?.errorCode == .positionInvalid)
        #expect(ben.ask(.nearby(.move(.init())))?.errorCode == .positionInvalid)
        var lie = NearbyVerb.Move(latitude: 52.52, longitude: 13.405)
        lie.accuracy = .string("very")
        #expect(ben.ask(.nearby(.move(lie)))?.errorCode == .positionInvalid)
        lie.accuracy = .integer(-1)
        #expect(ben.ask(.nearby(.move(lie)))?.errorCode == .positionInvalid)
        lie.accuracy = .null
        #expect(ben.ask(.nearby(.move(lie)))?.type == "ok")
        #expect(ada.watch()?.names == ["Ben"])
    }

    @Test func aLeapIsRefusedAndTheLocationStays() {
        let (ada, ben) = (stage.nearby("Ada"), stage.nearby("Ben"))
        stage.pass(.seconds(60))
        guard case .error(let refusal)? = ben.move(48.85, 2.35) else {
            Issue.record("a move from Berlin to Paris in a minute is accepted")
            return
        }
        #expect(refusal.error.code == .positionTooFast)
        #expect(refusal.error.retryable)
        #expect(ada.watch()?.names == ["Ben"])
        // Neither forgetting the location nor reconnecting circumvents the speed limit.
        for verb in [ClientMessage.nearby(.forget), .presence(.leave)] {
            ben.ask(verb)
            ben.appear()
            #expect(ben.move(48.85, 2.35)?.errorCode == .positionTooFast)
        }
        #expect(stage.another(of: ben).move(48.85, 2.35)?.errorCode == .positionTooFast, "nor does another device")
        ben.leave()
        ben.arrive()
        ben.appear()
        #expect(ben.move(48.85, 2.35)?.errorCode == .positionTooFast)
        stage.pass(refusal.error.retryAfter ?? .zero)
        #expect(ben.move(48.85, 2.35)?.type == "ok")
    }
}

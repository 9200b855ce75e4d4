import Signaling
import TestSupport
import Testing
import Wire

/// What coming and going may cost the people in a room.
@Suite struct RoomArrivalTests {
    private let stage = Stage { $0.routesMedia = true }

    /// Opens a room with this many people, each of another address, and returns the first.
    private func fill(_ count: Int) -> Guest {
        let host = stage.arrive(address: "host")
        host.open(with: RoomChanges { $0.capacity = 100 })
        for number in 1..<count { stage.arrive(address: "\(number)").open() }
        host.take()
        return host
    }

    @Test func comingAndGoingIsLimitedForAnAddress() throws {
        let host = fill(50)
        var answers: [String: Int] = [:]
        var refusal: ServerMessage?
        for _ in 0..<400 {
            let stranger = stage.arrive(address: "flood")
            let answer = stranger.open()
            answers[answer?.errorCode?.rawValue ?? answer?.type ?? "", default: 0] += 1
            if answer?.errorCode != nil { refusal = answer }
            stranger.leave()
        }
        #expect(answers["room.joined"] == 101, "the first made the room grow")
        #expect(host.takeRooms().count == 202)
        guard case .error(let error)? = refusal else { return }
        #expect(error.error.code == .rateLimited && error.error.retryAfter == .seconds(1))
        #expect(stage.arrive(address: "friend").open()?.room?.joined != nil, "others still come in")
        stage.pass(.seconds(1))
        #expect(stage.arrive(address: "flood").open()?.room?.joined != nil)
    }

    @Test func comingAndGoingIsLimitedForAPerson() {
        _ = fill(3)
        let person = stage.identity()
        let joined = (0..<50).count { number in
            let tab = stage.arrive(person, address: "tab \(number)")
            defer { tab.leave() }
            return tab.open()?.room?.joined != nil
        }
        #expect(joined == 21)
    }

    @Test func comingAndGoingIsLimitedForARoom() {
        let host = fill(99)
        let joined = (0..<200).count { number in
            let stranger = stage.arrive(address: "flood \(number)")
            defer { stranger.leave() }
            return stranger.open()?.room?.joined != nil
        }
        // Each costs three messages of 256 bytes to 99 people.
        #expect(joined == 1 + Int(stage.rules.sessionTraffic.burst) / (3 * 256 * 99))
        #expect(host.write("hello")?.type == "ok", "the chat has another budget")
    }

    @Test func aHundredPeopleBehindOneAddressComeBackFromABreakAndAfterARestart() {
        let host = stage.arrive(address: "office")
        host.open(with: RoomChanges { ($0.capacity, $0.persistent) = (100, true) })
        func arrive() -> [Guest] {
            (1..<100).map { _ in
                let guest = stage.arrive(address: "office")
                #expect(guest.open()?.room?.joined != nil)
                return guest
            }
        }
        for guest in arrive() { guest.leave() }
        stage.pass(.seconds(60))
        _ = arrive()
        stage.restart()
        stage.arrive(host.identity, address: "office").open()
        _ = arrive()
    }

    /// A person who joins on another connection takes the place of the one that dropped, so that the room does not grow.
    @Test func takingOnesOwnPlaceAgainIsComingAndGoingToo() {
        let host = stage.arrive(address: "host")
        host.open(with: RoomChanges { $0.capacity = 2 })
        let person = stage.identity()
        let joined = (0..<50).count { number in
            let tab = stage.arrive(person, address: "tab \(number)")
            defer { tab.drop() }
            return tab.open()?.room?.joined != nil
        }
        #expect(joined == 21)
    }

    @Test func dropsBeyondTheBudgetAreNotAnnounced() {
        let host = fill(90)
        let flaky = stage.arrive(address: "flaky")
        flaky.open()
        host.take()
        for _ in 0..<200 {
            flaky.drop()
            flaky.resume()
        }
        let states = host.takeRooms().compactMap(\.person?.state)
        #expect(states.count == 2 * (Int(stage.rules.sessionTraffic.burst) / (2 * 256 * 91)))
        #expect(states.last == .connected, "a drop that was announced has a return")
    }

    @Test func knocksAreChargedForEachHost() {
        let stage = Stage {
            ($0.routesMedia, $0.roomKnocks) = (true, .init(perMinute: 1000))
            $0.sessionTraffic = .init(perSecond: 1024, burst: 10 * 1024)
        }
        let host = stage.arrive(address: "host")
        host.open(with: RoomChanges { $0.lobby = true })
        let waiting = (0..<30).count { number in
            let stranger = stage.arrive(address: "\(number)")
            defer { stranger.leave() }
            return stranger.open()?.type == "room.waiting"
        }
        #expect(waiting == 20)
    }
}

import Signaling
import TestSupport
import Testing
import Wire

/// Random joins, departures, drops, streams and acknowledgements in a session whose roster comes in small pages.
@Suite("What the members of a session know of each other") struct RosterModelTests {
    private struct World {
        let stage: Stage
        let session: SessionID
        var random: SeededGenerator
        var guests: [Guest] = []
        var views: [Guest: RosterView] = [:]
        /// The members and their streams, as they should be.
        var members: [Guest: [StreamInfo]] = [:]

        init(seed: UInt64) {
            // Two or three members fit on a page, and three joins are a lag.
            stage = Stage(seed: seed) {
                ($0.rosterPage, $0.largeSession) = (600, 6)
                $0.joins = Budget.Rate(perSecond: 1000, burst: 100_000)
                $0.sessionTraffic = Budget.Rate(perSecond: 1e12, burst: 1e12)
                $0.verbs = Budget.Rate(perSecond: 1000, burst: 100_000)
            }
            session = stage.room()
            random = SeededGenerator(seed: seed)
        }

        mutating func step() {
            for guest in guests where guest.socket == nil && Int.random(in: 0..<8, using: &random) == 0 { back(guest) }
            guard let guest = guests.randomElement(using: &random), Int.random(in: 0..<5, using: &random) > 0 else {
                return arrive()
            }
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<25: guest.acknowledge()
            case 25..<50: if members[guest] == nil { join(guest) }
            case 50..<58: leaveSession(guest)
            case 58..<60: disappear(guest)
            case 60..<70: guest.drop()
            case 70..<84: publish(guest)
            case 84..<92: unpublish(guest)
            default: update(guest)
            }
            hear()
        }

        private mutating func arrive() {
            guard guests.count < 30 else { return }
            let guest = stage.arrive()
            guests.append(guest)
            join(guest)
            hear()
        }

        private mutating func back(_ guest: Guest) {
            guest.resume()
            guard guest.welcome?.resumed == false else { return }
            // Too many messages were missing, so the guest has a new connection.
            members[guest] = nil
            views[guest] = nil
        }

        private mutating func join(_ guest: Guest) {
            guard guest.socket != nil else { return }
            let data = String(repeating: "d", count: Int.random(in: 0..<200, using: &random))
            guard let joined = guest.enter(session, data: data, on: stage) else {
                Issue.record("a join was refused")
                return
            }
            views[guest] = RosterView(joined)
            members[guest] = []
        }

        private mutating func leaveSession(_ guest: Guest) {
            guard guest.socket != nil, members.removeValue(forKey: guest) != nil else { return }
            hear()
            views[guest] = nil
            guest.ask(.session(.leave(.init(session: session))))
            guest.take()
        }

        private mutating func disappear(_ guest: Guest) {
            guest.leave()
            members[guest] = nil
            views[guest] = nil
            guests.removeAll { $0 == guest }
            stage.pass(.seconds(31))
            // Dropped guests have used up their grace period.
            for other in guests where other.socket == nil {
                members[other] = nil
                views[other] = nil
            }
            guests.removeAll { $0.socket == nil }
        }

        private mutating func publish(_ guest: Guest) {
            guard guest.socket != nil, let streams = members[guest], streams.count < 3 else { return }
            guard let stream = guest.publish(session, name: "camera") else { return }
            members[guest]?.append(stream)
        }

        private mutating func unpublish(_ guest: Guest) {
            guard guest.socket != nil, let stream = members[guest]?.popLast() else { return }
            guest.unpublish(session, stream.id)
        }

        private mutating func update(_ guest: Guest) {
            guard guest.socket != nil, let index = members[guest]?.indices.randomElement(using: &random),
                var stream = members[guest]?[index]
            else { return }
            stream.hasAudio.toggle()
            members[guest]?[index] = stream
            guest.update(session, stream.id, audio: stream.hasAudio)
        }

        mutating func hear() {
            for guest in guests { views[guest]?.apply(guest.take()) }
        }

        /// Lets everyone acknowledge until nothing is left to send, and compares what each member knows with the truth.
        mutating func judge() -> Int {
            for guest in guests where guest.socket == nil { back(guest) }
            var rounds = 0
            repeat {
                rounds += 1
                hear()
                for guest in guests { guest.acknowledge() }
            } while rounds < 3 || (rounds < 1000 && views.values.contains { !$0.isComplete })
            hear()
            for (guest, view) in views {
                let others = members.keys.filter { $0 != guest }
                #expect(Set(view.connections.keys) == Set(others.map(\.connection)))
                #expect(Set(view.streams.values) == Set(others.flatMap { members[$0] ?? [] }))
            }
            return views.count
        }
    }

    @Test(
        "is exactly who is there, whatever happened while pages were outstanding",
        arguments: (1...12).map { UInt64($0) })
    func model(_ seed: UInt64) {
        var world = World(seed: seed)
        var judged = 0
        for number in 1...1500 {
            world.step()
            if number.isMultiple(of: 250) { judged += world.judge() }
        }
        #expect(judged > 20, "seed \(seed)")
    }
}

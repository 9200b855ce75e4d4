import Foundation
import Testing
import Wire

/// A fake identity that moves to claimed locations, and what it sees from them.
private final class Spy {
    let person: Person
    /// The most recent list.
    private(set) var list = NearbyNotice.List()
    private(set) var sightings: [Sighting] = []

    init(_ server: ServerProcess) throws {
        (person, _) = try Person.present("Spy", port: server.port, visible: false, from: FloodedSession.elsewhere)
    }

    /// Requests the list from each of these locations in turn.
    func look(for target: PersonID, from places: [GlobePlace]) throws {
        let asked = try places.map { place in
            (
                place, try person.say(Person.move(place)),
                try person.say(.nearby(.watch(.init(unit: .miles, radius: 200))))
            )
        }
        for (place, move, watch) in asked {
            if let error = try person.hearAnswer(to: move) { throw TimedOut("a spy may not move: \(error)") }
            list = try person.hearList(watch)
            let label = list.people.first { $0.person == target }?.distance
            sightings.append(Sighting(from: GlobeCell(place), label: label))
        }
        person.forget()
    }

    /// Requests the list again and returns whether it is the same.
    func seesTheSame() throws -> Bool {
        let again = try person.watch()
        defer { list = again }
        return again.people == list.people && again.next == list.next
    }

    /// Whether the list in kilometers has the same buckets and order.
    func seesTheSameInKilometers() throws -> Bool {
        let labels = [2: 3, 5: 8, 10: 16, 25: 40, 50: 80, 100: 160, 200: 320]
        let again = try person.watch(.init(unit: .kilometers, radius: 320))
        return again.people.map(\.person) == list.people.map(\.person)
            && again.people.map(\.distance) == list.people.map { labels[$0.distance] }
    }
}

extension Hostile {
    @Suite("Case 22: people nearby") struct NearbyAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUEST_BURST": "1000",
        ]
        private static let zurich = GlobePlace(latitude: 47.3769, longitude: 8.5417)

        /// Returns one of the most revealing locations, from which a bucket's edge runs through the target's cell or
        /// close to it, and further locations in the cells around the first one, so that no spy has to travel far.
        private static func places(_ number: Int, around cell: GlobeCell, _ random: inout Random) -> [GlobePlace] {
            let edge = Sighting.edges[1 + number % (Sighting.edges.count - 1)]
            let first = GlobeCell(
                cell.center.going(
                    edge + .random(in: -1500...1500, using: &random), towards: .random(in: 0..<2 * .pi, using: &random))
            ).center
            return [first]
                + (0..<7).map { _ in
                    first.going(
                        .random(in: 0...1000, using: &random), towards: .random(in: 0..<2 * .pi, using: &random))
                }
        }

        @Test("a thousand fake locations reveal no more than the cell, and moves within it are not announced")
        func trilateration() async throws {
            var random = Random(ofCase: 22)
            try await Attack(number: 22, name: "trilateration", settings: Self.settings).run { server in
                let cell = GlobeCell(Self.zurich)
                let (target, id) = try Person.present("Target", port: server.port)
                // The clock is another person in that cell. Once a spy receives its new name, all earlier updates have
                // been sent.
                let (clock, clockID) = try Person.present("Clock", port: server.port)
                #expect(try target.move(cell.place(0.001, 0.001)) == nil)
                #expect(try clock.move(cell.center) == nil)
                let spies = try (0..<128).map { number in
                    let spy = try Spy(server)
                    try spy.look(for: id, from: Self.places(number, around: cell, &random))
                    return spy
                }
                let sightings = spies.flatMap(\.sightings)
                let region = Region(sightings, around: cell.place(0.2, 0.9))
                #expect(region.area > 0.9 * cell.area, "\(region.area) m² of a cell of \(cell.area) m²")
                #expect(region.places.contains { GlobeCell($0) == cell })
                // Move the target to the cell's corners and to random places in it.
                var corners = [(0.001, 0.999), (0.999, 0.001), (0.999, 0.999)]
                for _ in 0..<3 {
                    corners.append(
                        (.random(in: 0.001...0.999, using: &random), .random(in: 0.001...0.999, using: &random)))
                }
                for (north, east) in corners {
                    #expect(try target.move(cell.place(north, east)) == nil)
                    #expect(try spies.allSatisfy { try $0.seesTheSame() }, "distinguishable at \(north), \(east)")
                }
                #expect(try spies.allSatisfy { try $0.seesTheSameInKilometers() })
                let told = try Self.pushes(target, in: cell, clock, clockID, spies, &random)
                // A move into the next cell must be visible.
                #expect(try target.move(cell.place(1.5, 0.5)) == nil)
                let changes = try Self.tick("Next cell", clock, spies).flatMap(\.people).filter { $0.person == id }
                #expect(!changes.isEmpty, "no spy saw the target leave the cell")
                return AttackOutcome(
                    sent: "\(sightings.count) positions of \(spies.count) spies, 66 moves in a cell",
                    cameBack: String(
                        format:
                            "a region of %.2f km² for a cell of %.2f km², %d updates without it, %d with the next cell",
                        region.area / 1e6, cell.area / 1e6, told, changes.count))
            }
        }

        /// Moves the target within its cell, which must not be announced, and renames the clock. Every spy that sees
        /// the clock must be notified of the clock only. Returns the number of notifications.
        private static func pushes(
            _ target: Person, in cell: GlobeCell, _ clock: Person, _ clockID: PersonID, _ spies: [Spy],
            _ random: inout Random
        ) throws -> Int {
            for spy in spies { spy.person.forget() }
            var told = 0
            for round in 0..<3 {
                for _ in 0..<20 {
                    let place = cell.place(
                        .random(in: 0.001...0.999, using: &random), .random(in: 0.001...0.999, using: &random))
                    #expect(try target.move(place) == nil)
                }
                for changed in try tick("Clock \(round)", clock, spies) {
                    #expect(changed.people.map(\.person) == [clockID], "\(changed)")
                    #expect(changed.gone == [])
                    told += 1
                }
            }
            // A spy that sees neither person must receive nothing.
            for spy in spies where spy.list.people.isEmpty {
                #expect(try spy.person.verdict(.nearby(.unwatch)) == "ok")
                #expect(!spy.person.wasTold)
            }
            return told
        }

        /// Renames the clock, and returns the changes that the spies receive up to the new name.
        private static func tick(_ name: String, _ clock: Person, _ spies: [Spy]) throws -> [NearbyNotice.Changed] {
            _ = try clock.ask(.presence(.set(Appearance(name: name))))
            return try spies.filter { spy in spy.list.people.contains { $0.name.hasPrefix("Clock") } }.flatMap { spy in
                var heard: [NearbyNotice.Changed] = []
                repeat {
                    heard.append(try spy.person.hearChanged())
                } while heard.last?.people.contains {
                    $0.name == name
                } != true
                return heard
            }
        }

        @Test("the order within a bucket is the same from everywhere, and forged cursors reveal no more")
        func pages() async throws {
            var random = Random(ofCase: 22)
            try await Attack(number: 22, name: "pages and their order", settings: Self.settings).run { server in
                // All people are in one bucket from every viewer's location.
                let people = try (0..<20).map { number in
                    let (person, id) = try Person.present("\(number)", port: server.port)
                    let place = Self.zurich.going(
                        .random(in: 0...4000, using: &random), towards: .random(in: 0..<2 * .pi, using: &random))
                    #expect(try person.move(place) == nil)
                    return (person, id)
                }
                var orders: Set<[PersonID]> = []
                var (lists, refused) = (0, 0)
                for _ in 0..<12 {
                    let spy = try Spy(server).person
                    let bearing = Double.random(in: 0..<2 * .pi, using: &random)
                    #expect(try spy.move(Self.zurich.going(28_000, towards: bearing)) == nil)
                    var (order, after) = ([PersonID](), String?.none)
                    repeat {
                        let list = try spy.watch(.init(unit: .miles, radius: 200, after: after, limit: 5))
                        #expect(list.people.allSatisfy { $0.distance == 25 } && list.people.count <= 5)
                        (order, after, lists) = (order + list.people.map(\.person), list.next, lists + 1)
                    } while after != nil
                    orders.insert(order)
                    let (told, errors) = try Self.forgedPages(spy, Set(people.map(\.1)), &random)
                    (lists, refused) = (lists + told, refused + errors)
                }
                refused += try Self.leaf(server)
                #expect(orders.count == 1, "the order depends on the viewer's location")
                #expect(orders.first?.count == people.count)
                return AttackOutcome(
                    sent: "\(lists + refused) pages from 12 places",
                    cameBack: "\(lists) lists in \(orders.count) order, \(refused) × malformed or rate_limited")
            }
        }

        /// Requests a hundred pages and returns how many requests were refused.
        private static func leaf(_ server: ServerProcess) throws -> Int {
            let (spy, began) = (try Spy(server).person, ContinuousClock.now)
            #expect(try spy.move(zurich) == nil)
            let verdicts = try (0..<100).map { _ in
                try spy.verdict(.nearby(.watch(.init(unit: .miles, radius: 200))))
            }
            let lists = verdicts.count { $0 == "nearby.list" }
            #expect(Set(verdicts) == ["nearby.list", "rate_limited"])
            #expect(lists >= 30 && Double(lists) <= 31 + (ContinuousClock.now - began).inSeconds / 2)
            return verdicts.count - lists
        }

        /// Requests pages with forged cursors and returns how many requests were answered and how many were refused.
        private static func forgedPages(
            _ spy: Person, _ people: Set<PersonID>, _ random: inout Random
        ) throws -> (told: Int, refused: Int) {
            let digits = (0..<16).map { _ in String(Int.random(in: 0..<16, using: &random), radix: 16) }.joined()
            let forged = (0..<7).map { "\($0)\(digits)" } + ["0ffffffffffffffff", "6ffffffffffffffff"]
            for after in forged {
                let list = try spy.watch(.init(unit: .kilometers, radius: 1, after: after, limit: 50))
                #expect(list.radius == 3 && list.people.isEmpty, "\(after): \(list)")
                let far = try spy.watch(.init(unit: .kilometers, radius: .max >> 32, after: after))
                #expect(far.radius == 320 && far.people.allSatisfy { $0.distance == 40 && people.contains($0.person) })
            }
            // Malformed cursors, so few that the server keeps the connection open.
            let broken = ["7\(digits)", "f\(digits)", digits, "0\(digits)0", "-\(digits)", ""]
            for after in broken {
                #expect(
                    try spy.verdict(.nearby(.watch(.init(unit: .miles, radius: 200, after: after))))
                        == "malformed")
            }
            return (2 * forged.count, broken.count)
        }

        @Test("no one moves faster than 1 000 km/h: not in small steps, and not by forgetting, leaving or reconnecting")
        func teleports() async throws {
            try await Attack(number: 22, name: "teleports", settings: Self.settings).run { server in
                let began = ContinuousClock.now
                let places = [
                    GlobePlace(latitude: 47.9, longitude: 8.5417), GlobePlace(latitude: -33.9, longitude: 151.2),
                    GlobePlace(latitude: -47.3769, longitude: -171.4583), GlobePlace(latitude: 90, longitude: 0),
                ]
                let (neighbor, id) = try Person.present("Neighbor", port: server.port)
                #expect(try neighbor.move(Self.zurich) == nil)
                let secret = try #require(try Person.arrive(port: server.port).welcome.identity)
                var (spy, _) = try Person.present("Spy", port: server.port, visible: false, identity: secret)
                #expect(try spy.move(Self.zurich) == nil)
                var tally = Tally()
                func tryAll() throws {
                    for place in places {
                        let error = try spy.move(place)
                        tally.count(error?.code.rawValue ?? "ok")
                        #expect(error?.code == .positionTooFast && error?.retryable == true)
                        // A move of 60 km takes minutes at 1 000 km/h, and a move to the other side of the globe a day.
                        #expect(try #require(error?.retryAfter) > .seconds(60) - (ContinuousClock.now - began))
                    }
                }
                try tryAll()
                #expect(try spy.watch().people.map(\.person) == [id], "the spy is where it was")
                for verb in [ClientMessage.nearby(.forget), .presence(.leave)] {
                    #expect(try spy.verdict(verb) == "ok")
                    try spy.appear()
                    try tryAll()
                    #expect(try spy.verdict(.nearby(.watch(.init()))) == "position_unknown")
                }
                try spy.close()
                try spy.hearClose()
                (spy, _) = try Person.present("Spy", port: server.port, visible: false, identity: secret)
                try tryAll()
                // Another device of the same person moves at the same time.
                let (other, _) = try Person.present("Spy", port: server.port, visible: false, identity: secret)
                #expect(try other.move(places[1])?.code == .positionTooFast)
                let walked = try Self.walk(spy, &tally)
                // A single step may be five kilometers, the first three kilometers cost nothing, and a cell is two
                // kilometers wide.
                let earned = (ContinuousClock.now - began).inSeconds * 1000 / 3.6
                #expect(walked < 11_000 + earned, "small steps covered \(walked) m")
                return AttackOutcome(
                    sent: "\(tally.total) leaps and steps, after forgetting, leaving, and on two devices",
                    cameBack: tally.text + String(format: ", %.1f km away at most", walked / 1000))
            }
        }

        /// Moves in one direction with the largest allowed steps and returns the distance.
        private static func walk(_ spy: Person, _ tally: inout Tally) throws -> Double {
            var reached = zurich
            for step in 0..<60 {
                let place = reached.going([2900, 2000, 1000][step % 3], towards: 1)
                let error = try spy.move(place)
                tally.count(error?.code.rawValue ?? "ok")
                if error == nil { reached = place }
            }
            return zurich.distance(to: reached)
        }

        /// Members of `nearby.move` that are JSON but not a location.
        private static let noPositions = [
            "", #""latitude":47.3"#, #""longitude":8.5"#, #""latitude":null,"longitude":null"#,
            #""latitude":90.0000001,"longitude":0"#, #""latitude":-91,"longitude":0"#,
            #""latitude":0,"longitude":180.0000001"#, #""latitude":0,"longitude":-181"#,
            #""latitude":1e308,"longitude":-1e308"#, #""latitude":0,"longitude":9007199254740993"#,
            #""latitude":9223372036854775807,"longitude":-9223372036854775808"#,
            #""latitude":18446744073709551616,"longitude":0"#, #""latitude":"47.3","longitude":"8.5""#,
            #""latitude":"NaN","longitude":"Infinity""#, #""latitude":true,"longitude":false"#,
            #""latitude":[47.3],"longitude":{"degrees":8.5}"#, #""lat":47.3,"lon":8.5"#,
            #""latitude":47.3,"longitude":8.5,"accuracy":-1"#, #""latitude":47.3,"longitude":8.5,"accuracy":"10""#,
            #""latitude":47.3,"longitude":8.5,"accuracy":[]"#,
            #""latitude":"\u0000\u202e","longitude":"../../etc/passwd""#,
        ]

        /// Extreme but valid locations. The server ignores their accuracy.
        private static let positions = [
            #""latitude":90,"longitude":0"#, #""latitude":-90,"longitude":-180"#, #""latitude":0,"longitude":180"#,
            #""latitude":-0.0,"longitude":-0"#, #""latitude":5e-324,"longitude":-1e-400"#,
            #""latitude":89.99999999999999,"longitude":179.99999999999997"#,
            #""latitude":47.3,"longitude":8.5,"accuracy":1e308"#, #""latitude":47.3,"longitude":8.5,"accuracy":0"#,
            #""latitude":47.3,"longitude":8.5,"accuracy":null,"altitude":"high""#,
        ]

        /// Invalid JSON in place of a latitude.
        private static let noNumbers = [
            "NaN", "Infinity", "-Infinity", "1e400", "-1e999", "0x2F", "047", "+47", ".5", "47.", "1e", "--1", "47,3",
            "1_000", "٤٧",
        ]

        @Test("invalid locations are refused with their codes, and the old location stays")
        func positions() async throws {
            try await Attack(number: 22, name: "positions off the globe", settings: Self.settings).run { server in
                let (spy, _) = try Person.present("Spy", port: server.port, visible: false)
                let (ann, id) = try Person.present("Ann", port: server.port)
                for person in [spy, ann] { #expect(try person.move(Self.zurich) == nil) }
                var tally = Tally()
                for members in Self.noPositions {
                    let verdict = try ann.verdict("nearby.move", members: members)
                    tally.count(verdict)
                    #expect(verdict == "position_invalid", "\(members)")
                }
                #expect(try spy.watch().people.map(\.person) == [id])
                #expect(try ann.watch().people.isEmpty && ann.closeCode == nil)
                for members in Self.positions {
                    let (person, _) = try Person.present("New", port: server.port, visible: false)
                    let verdict = try person.verdict("nearby.move", members: members)
                    tally.count(verdict)
                    #expect(verdict == "ok", "\(members)")
                    _ = try person.watch()
                }
                for half in [Self.noNumbers.prefix(8), Self.noNumbers.dropFirst(8)] {
                    try Self.sayNoNumbers(half, server, &tally)
                }
                try Self.endWithNoNumbers(server, &tally)
                return AttackOutcome(sent: "\(tally.total) positions", cameBack: tally.text)
            }
        }

        private static func noNumber(_ text: String, _ seq: Int) -> String {
            #"{"type":"nearby.move","seq":\#(seq),"latitude":\#(text),"longitude":8.5}"#
        }

        /// Sends fewer than ten malformed messages. The server has not read their sequence numbers, so the next valid
        /// message continues the numbering.
        private static func sayNoNumbers(
            _ texts: some Sequence<String>, _ server: ServerProcess, _ tally: inout Tally
        ) throws {
            let (person, _) = try Person.present("New", port: server.port, visible: false)
            for text in texts {
                try person.line.send(text: noNumber(text, 2))
                let code = try person.hear("error") {
                    if case .error(let message) = $0, message.re == nil { message.error.code } else { nil }
                }
                tally.count(code.rawValue)
                #expect(code == .malformed, "\(text)")
            }
            #expect(try person.move(zurich) == nil)
            #expect(try person.watch().radius == 200)
        }

        /// Sends malformed messages until the server closes. It answers ten per minute.
        private static func endWithNoNumbers(_ server: ServerProcess, _ tally: inout Tally) throws {
            let began = ContinuousClock.now
            let (person, _) = try Person.present("New", port: server.port, visible: false)
            var said = 0
            while person.closeCode == nil, said < 100 {
                said += 1
                person.line.socket.sendWhatGoes(RawFrame.text(noNumber("NaN", 2)).bytes)
                guard try person.next(until: .now + .seconds(20)) != nil else { break }
            }
            let code = try person.hearClose()
            tally.count("\(code)")
            #expect(code == 4400)
            #expect(said >= 11 && Double(said) <= 12 + (ContinuousClock.now - began).inSeconds / 6, "after \(said)")
        }
    }
}

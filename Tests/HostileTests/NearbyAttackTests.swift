import Foundation
import Testing
import Wire

/// A false identity, where it pretends to be, and what it saw there.
private final class Spy {
    let person: Person
    /// Where it was listed from last.
    private(set) var list = NearbyNotice.List()
    private(set) var sightings: [Sighting] = []

    init(_ server: ServerProcess) throws {
        (person, _) = try Person.present("Spy", port: server.port, visible: false, from: FloodedSession.elsewhere)
    }

    /// Looks from each of these places, one after the other.
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

    /// The same question again; whether the answer is the same.
    func seesTheSame() throws -> Bool {
        let again = try person.watch()
        defer { list = again }
        return again.people == list.people && again.next == list.next
    }

    /// Whether another unit tells the same buckets, and the same order.
    func seesTheSameInKilometres() throws -> Bool {
        let labels = [2: 3, 5: 8, 10: 16, 25: 40, 50: 80, 100: 160, 200: 320]
        let again = try person.watch(.init(unit: .kilometres, radius: 320))
        return again.people.map(\.person) == list.people.map(\.person)
            && again.people.map(\.distance) == list.people.map { labels[$0.distance] }
    }
}

extension Hostile {
    @Suite("Case 22: people nearby") struct NearbyAttacks {
        private static let settings = ["CONFAB_LIMITS_HELLO_BURST": "100000", "CONFAB_LIMITS_VERB_BURST": "1000"]
        private static let zurich = GlobePlace(latitude: 47.3769, longitude: 8.5417)

        /// Where a spy learns most: from there one of the edges runs through the cell, or close to it. The further places
        /// are in the cells around the first, where nobody has to travel to.
        private static func places(_ number: Int, around cell: GlobeCell, _ random: inout Random) -> [GlobePlace] {
            let edge = Sighting.edges[1 + number % (Sighting.edges.count - 1)]
            let first = GlobeCell(
                cell.centre.going(
                    edge + .random(in: -1500...1500, using: &random), towards: .random(in: 0..<2 * .pi, using: &random))
            ).centre
            return [first]
                + (0..<7).map { _ in
                    first.going(
                        .random(in: 0...1000, using: &random), towards: .random(in: 0..<2 * .pi, using: &random))
                }
        }

        @Test("a thousand false positions place nobody better than the cell, and moves within it are told to nobody")
        func trilateration() async throws {
            var random = Random(ofCase: 22)
            try await Attack(number: 22, name: "trilateration", settings: Self.settings).run { server in
                let cell = GlobeCell(Self.zurich)
                let (target, id) = try Person.present("Target", port: server.port)
                // Somebody else in that cell, whose names show that time has passed.
                let (clock, clockID) = try Person.present("Clock", port: server.port)
                #expect(try target.move(cell.place(0.001, 0.001)) == nil)
                #expect(try clock.move(cell.centre) == nil)
                let spies = try (0..<128).map { number in
                    let spy = try Spy(server)
                    try spy.look(for: id, from: Self.places(number, around: cell, &random))
                    return spy
                }
                let sightings = spies.flatMap(\.sightings)
                let region = Region(sightings, around: cell.place(0.2, 0.9))
                #expect(region.area > 0.9 * cell.area, "\(region.area) m² of a cell of \(cell.area) m²")
                #expect(region.places.contains { GlobeCell($0) == cell })
                // Wherever in the cell it is: each corner, and anywhere.
                var corners = [(0.001, 0.999), (0.999, 0.001), (0.999, 0.999)]
                for _ in 0..<3 {
                    corners.append(
                        (.random(in: 0.001...0.999, using: &random), .random(in: 0.001...0.999, using: &random)))
                }
                for (north, east) in corners {
                    #expect(try target.move(cell.place(north, east)) == nil)
                    #expect(try spies.allSatisfy { try $0.seesTheSame() }, "told apart at \(north), \(east)")
                }
                #expect(try spies.allSatisfy { try $0.seesTheSameInKilometres() })
                let told = try Self.pushes(target, in: cell, clock, clockID, spies, &random)
                // That a move is seen at all: into the next cell.
                #expect(try target.move(cell.place(1.5, 0.5)) == nil)
                let changes = try Self.tick("Next cell", clock, spies).flatMap(\.people).filter { $0.person == id }
                #expect(!changes.isEmpty, "nobody saw it leave the cell")
                return AttackOutcome(
                    sent: "\(sightings.count) positions of \(spies.count) spies, 66 moves in a cell",
                    cameBack: String(
                        format:
                            "a region of %.2f km² for a cell of %.2f km², %d updates without it, %d with the next cell",
                        region.area / 1e6, cell.area / 1e6, told, changes.count))
            }
        }

        /// Moves that nobody must hear of, while each spy who sees the clock hears of that; how many did.
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
            // Who sees neither of the two was told nothing at all.
            for spy in spies where spy.list.people.isEmpty {
                #expect(try spy.person.verdict(.nearby(.unwatch)) == "ok")
                #expect(!spy.person.wasTold)
            }
            return told
        }

        /// Lets the clock be called something else, and each spy who sees it hear of that and of what changed before.
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

        @Test("the order within a bucket is the same from everywhere, page by page, and forged pages tell no more")
        func pages() async throws {
            var random = Random(ofCase: 22)
            try await Attack(number: 22, name: "pages and their order", settings: Self.settings).run { server in
                // All in one bucket from everywhere that is looked from.
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
                #expect(orders.count == 1, "the order depends on where one looks from")
                #expect(orders.first?.count == people.count)
                return AttackOutcome(
                    sent: "\(lists + refused) pages from 12 places",
                    cameBack: "\(lists) lists in \(orders.count) order, \(refused) × malformed or rate_limited")
            }
        }

        /// Leafs without end; how often that was refused.
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

        /// Pages that no list named; how many were answered, and how many refused.
        private static func forgedPages(
            _ spy: Person, _ people: Set<PersonID>, _ random: inout Random
        ) throws -> (told: Int, refused: Int) {
            let digits = (0..<16).map { _ in String(Int.random(in: 0..<16, using: &random), radix: 16) }.joined()
            let forged = (0..<7).map { "\($0)\(digits)" } + ["0ffffffffffffffff", "6ffffffffffffffff"]
            for after in forged {
                let list = try spy.watch(.init(unit: .kilometres, radius: 1, after: after, limit: 50))
                #expect(list.radius == 3 && list.people.isEmpty, "\(after): \(list)")
                let far = try spy.watch(.init(unit: .kilometres, radius: .max >> 32, after: after))
                #expect(far.radius == 320 && far.people.allSatisfy { $0.distance == 40 && people.contains($0.person) })
            }
            // Below what closes a connection.
            let broken = ["7\(digits)", "f\(digits)", digits, "0\(digits)0", "-\(digits)", ""]
            for after in broken {
                #expect(
                    try spy.verdict(.nearby(.watch(.init(unit: .miles, radius: 200, after: after))))
                        == "malformed")
            }
            return (2 * forged.count, broken.count)
        }

        @Test("faster than 1 000 km/h goes nobody: not in small steps, not by forgetting, leaving or coming anew")
        func teleports() async throws {
            try await Attack(number: 22, name: "teleports", settings: Self.settings).run { server in
                let began = ContinuousClock.now
                let places = [
                    GlobePlace(latitude: 47.9, longitude: 8.5417), GlobePlace(latitude: -33.9, longitude: 151.2),
                    GlobePlace(latitude: -47.3769, longitude: -171.4583), GlobePlace(latitude: 90, longitude: 0),
                ]
                let (neighbour, id) = try Person.present("Neighbour", port: server.port)
                #expect(try neighbour.move(Self.zurich) == nil)
                let secret = try #require(try Person.arrive(port: server.port).welcome.identity)
                var (spy, _) = try Person.present("Spy", port: server.port, visible: false, identity: secret)
                #expect(try spy.move(Self.zurich) == nil)
                var tally = Tally()
                func tryAll() throws {
                    for place in places {
                        let error = try spy.move(place)
                        tally.count(error?.code.rawValue ?? "ok")
                        #expect(error?.code == .positionTooFast && error?.retryable == true)
                        // Some 60 km need minutes, and the other side of the globe a day.
                        #expect(try #require(error?.retryAfter) > .seconds(60) - (ContinuousClock.now - began))
                    }
                }
                try tryAll()
                #expect(try spy.watch().people.map(\.person) == [id], "it is where it was")
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
                // And on another device of the same person at the same time.
                let (other, _) = try Person.present("Spy", port: server.port, visible: false, identity: secret)
                #expect(try other.move(places[1])?.code == .positionTooFast)
                let walked = try Self.walk(spy, &tally)
                // Five kilometres are allowed, three cost nothing, and cells are two wide.
                let earned = (ContinuousClock.now - began).inSeconds * 1000 / 3.6
                #expect(walked < 11_000 + earned, "a walk of small steps came \(walked) m far")
                return AttackOutcome(
                    sent: "\(tally.total) leaps and steps, after forgetting, leaving, and on two devices",
                    cameBack: tally.text + String(format: ", %.1f km away at most", walked / 1000))
            }
        }

        /// Steps as large as are allowed, always in one direction; how far away it got.
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

        /// Members of `nearby.move` that are JSON and no position.
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

        /// Of the globe, to its last digit; how exact they are makes no difference.
        private static let positions = [
            #""latitude":90,"longitude":0"#, #""latitude":-90,"longitude":-180"#, #""latitude":0,"longitude":180"#,
            #""latitude":-0.0,"longitude":-0"#, #""latitude":5e-324,"longitude":-1e-400"#,
            #""latitude":89.99999999999999,"longitude":179.99999999999997"#,
            #""latitude":47.3,"longitude":8.5,"accuracy":1e308"#, #""latitude":47.3,"longitude":8.5,"accuracy":0"#,
            #""latitude":47.3,"longitude":8.5,"accuracy":null,"altitude":"high""#,
        ]

        /// Not JSON, in the place of a latitude.
        private static let noNumbers = [
            "NaN", "Infinity", "-Infinity", "1e400", "-1e999", "0x2F", "047", "+47", ".5", "47.", "1e", "--1", "47,3",
            "1_000", "٤٧",
        ]

        @Test("what is no position is refused by its code, and the position before it stays")
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

        /// Fewer than ten: their numbers were never read, and the next that is right goes on.
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

        /// Ten a minute, and no more.
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

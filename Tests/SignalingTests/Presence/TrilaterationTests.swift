import TestSupport
import Testing
import Wire

@testable import Signaling

/// A thousand fake identities around a person can learn the cell of the person's location, and nothing more precise.
@Suite struct TrilaterationTests {
    /// Returns locations in one cell of 2 km: its center, its corners a centimeter from the edges, and random
    /// locations.
    private func placesInOneCell(_ random: inout SeededGenerator) throws -> [(latitude: Double, longitude: Double)] {
        let cell = try #require(Cell(latitude: 47.3769, longitude: 8.5417))
        let (south, north) = (Double(cell.row) / 10_000 * 180 - 90, Double(cell.row + 1) / 10_000 * 180 - 90)
        let columns = Double(Cell.columns(inRow: cell.row))
        let (west, east) = (Double(cell.column) / columns * 360 - 180, Double(cell.column + 1) / columns * 360 - 180)
        let inch = 1e-7
        var places = [((south + north) / 2, (west + east) / 2)]
        for latitude in [south + inch, north - inch] {
            for longitude in [west + inch, east - inch] { places.append((latitude, longitude)) }
        }
        for _ in 0..<3 {
            places.append(
                (
                    .random(in: south + inch..<north - inch, using: &random),
                    .random(in: west + inch..<east - inch, using: &random)
                ))
        }
        for place in places { try #require(Cell(latitude: place.0, longitude: place.1) == cell) }
        return places
    }

    /// Returns everything that a crowd of fake identities receives while the target is at one of these locations and
    /// then at others: lists, their order, their pages and every change.
    private func reported(_ places: [(latitude: Double, longitude: Double)], spies: Int, seed: UInt64) throws
        -> [[NearbyNotice]]
    {
        let stage = Stage(seed: seed)
        var random = SeededGenerator(seed: seed)
        let target = stage.arrive()
        target.appear("Target")
        let crowd = (0..<spies).map { number in
            let spy = stage.arrive()
            // Most spies are invisible, as attackers would be, so they see the target but not each other.
            spy.appear("\(number)", visible: number % 25 == 0)
            // The spies are in all directions, some within meters of a cell's edge, others at the largest listed
            // distance.
            let scale = [0.001, 0.02, 0.2, 4.0][number % 4]
            spy.move(
                47.3769 + .random(in: -scale...scale, using: &random),
                8.5417 + .random(in: -scale...scale, using: &random))
            return spy
        }
        for (number, spy) in crowd.enumerated() {
            spy.watch([2, 5, 10, 25, 50, 100, 200][number % 7], number % 2 == 0 ? .miles : .kilometers)
        }
        for place in places {
            target.move(place.latitude, place.longitude)
            stage.pass(.seconds(4))
            for (number, spy) in crowd.enumerated() where number % 50 == 0 { spy.watch(200, .miles) }
            stage.pass(.seconds(4))
        }
        target.leave()
        stage.pass(.seconds(4))
        return crowd.map { $0.take().compactMap(\.nearby) }
    }

    @Test func aThousandIdentitiesLearnOnlyTheCell() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("trilateration: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let places = try placesInOneCell(&random)
        let first = try reported([places[0], places[1]], spies: 1000, seed: seed)
        let seen = first.count { news in
            news.contains {
                if case .changed(let changed) = $0 { changed.people.contains { $0.name == "Target" } } else { false }
            }
        }
        #expect(seen > 200, "the spies must see other people")
        #expect(try reported([places[4], places[6]], spies: 1000, seed: seed) == first)
    }

    @Test func allLocationsInACellLookTheSame() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("trilateration: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let places = try placesInOneCell(&random)
        let first = try reported([places[0]], spies: 60, seed: seed)
        for place in places.dropFirst() { #expect(try reported([place], spies: 60, seed: seed) == first) }
    }

    @Test func movingWithinACellIsNotAnnounced() throws {
        let stage = Stage()
        var random = SeededGenerator(seed: 7)
        let places = try placesInOneCell(&random)
        let spy = stage.nearby("Spy", 47.38, 8.55)
        let target = stage.nearby("Target", places[0].latitude, places[0].longitude)
        #expect(spy.watch()?.names == ["Target"])
        stage.pass(.seconds(2))
        spy.take()
        for place in places {
            #expect(target.move(place.latitude, place.longitude)?.type == "ok")
            stage.pass(.seconds(2))
        }
        #expect(spy.take().isEmpty)
    }

    /// The order within a bucket must not reveal who is nearer. Without a correlation between rank and distance, the
    /// rank correlation stays within 4 standard deviations (of 1/√n) of zero in all but one of sixteen thousand runs.
    /// The project's secret and the people are the same in each run, so the result is always the same.
    @Test func theOrderWithinABucketDoesNotFollowDistance() throws {
        let project = try #require(Project(apiKey: Stage.apiKey, secret: Stage.secret))
        var directory = Directory(rules: Rules(), project: project)
        var random = SeededGenerator(seed: 3)
        let viewer = try #require(Cell(latitude: 47, longitude: 8))
        var distances: [PersonID: Double] = [:]
        var context = Context(HubSettings(rules: Rules(), project: project), generator: random)
        context.now = Timestamp(milliseconds: 1_790_000_000_000)
        for _ in 0..<3000 {
            let identity = IdentityID.random(using: &random)
            let cell = try #require(
                Cell(
                    latitude: 47 + .random(in: -1...1, using: &random),
                    longitude: 8 + .random(in: -1...1, using: &random)))
            let person = project.personID(of: identity)
            distances[person] = viewer.center.distance(to: cell.center)
            let listing = Listing(identity: identity, person: person, name: "", isBusy: false, cell: cell)
            directory.handle(.show(listing), &context)
        }
        var rows: [NearbyRow] = []
        var after: String?
        repeat {
            let watch = NearbyVerb.Watch(unit: .miles, radius: 50, after: after)
            let (client, nobody) = (ConnectionID(high: 0, low: 1), IdentityID(high: 0, low: 0))
            directory.handle(
                .watch(client, re: 1, viewer: nobody, blocked: [], at: viewer, watch), &context)
            guard case .client(_, .deliver(.nearby(.list(let list))))? = context.nextLetter() else { break }
            rows += list.people
            after = list.next
        } while after != nil
        for bucket in [25, 50] {
            let members = rows.filter { $0.distance == bucket }.compactMap { distances[$0.person] }
            try #require(members.count > 300)
            let correlation = rankCorrelation(members)
            print("trilateration: \(members.count) within \(bucket) miles, correlation \(correlation)")
            #expect(abs(correlation) < 4 / Double(members.count).squareRoot())
        }
    }

    /// Returns Spearman's rank correlation between the values and their positions in the list.
    private func rankCorrelation(_ values: [Double]) -> Double {
        let ranks = values.indices.sorted { values[$0] < values[$1] }
        let count = Double(values.count)
        let squares = ranks.enumerated().reduce(0.0) {
            $0 + Double(($1.offset - $1.element) * ($1.offset - $1.element))
        }
        return 1 - 6 * squares / (count * (count * count - 1))
    }
}

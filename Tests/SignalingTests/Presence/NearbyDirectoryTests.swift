import Foundation
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Compares the directory with a simple model. Random people go online, move, change, block each other and go offline,
/// and random pages of their lists are compared.
@Suite struct NearbyDirectoryTests {
    /// The expected list, computed by checking every person.
    private struct Model {
        var people: [IdentityID: Listing] = [:]
        /// Cached, because computing this keyed hash is slow.
        var orders: [PersonID: UInt64] = [:]

        func bucket(_ one: Cell, _ other: Cell) -> Int? {
            let (a, b) = (one.latitude, other.latitude)
            let turn = (one.turn - other.turn) * 2 * .pi
            let half = pow(sin((a - b) / 2), 2) + cos(a) * cos(b) * pow(sin(turn / 2), 2)
            let meters = 2 * 6_371_008.8 * asin(min(1, half.squareRoot()))
            return [2, 5, 10, 25, 50, 100, 200].firstIndex { meters <= $0 * 1609.344 }
        }

        func rows(for viewer: IdentityID, _ blocked: Set<IdentityID>, _ cell: Cell, reach: Int, _ directory: Directory)
            -> [NearbyRow]
        {
            var all: [(bucket: Int, place: UInt64, listing: Listing)] = []
            for listing in people.values where listing.identity != viewer {
                guard let bucket = bucket(cell, listing.cell), bucket < reach, !blocked.contains(listing.identity),
                    !listing.blocked.contains(viewer)
                else { continue }
                let order = orders[listing.person] ?? 0
                all.append((bucket, order ^ directory.key, listing))
            }
            all.sort { ($0.bucket, $0.place) < ($1.bucket, $1.place) }
            return all.map {
                let miles = [2, 5, 10, 25, 50, 100, 200][$0.bucket]
                return NearbyRow(
                    person: $0.listing.person, name: $0.listing.name, distance: miles, busy: $0.listing.isBusy)
            }
        }
    }

    private final class World {
        var random: SeededGenerator
        var directory: Directory
        var model = Model()
        var now = Timestamp(milliseconds: 1_790_000_000_000)
        private var context: Context
        /// The centers of the people's locations, including unusual places on the globe.
        let places: [(latitude: Double, longitude: Double)]
        /// The maximum distance from a center, in degrees of latitude.
        let spread: Double
        let project: Project

        init(seed: UInt64, spread: Double) throws {
            random = SeededGenerator(seed: seed)
            project = try #require(Project(apiKey: Stage.apiKey, secret: Stage.secret))
            directory = Directory(rules: Rules(), project: project)
            context = Context(HubSettings(rules: Rules(), project: project), generator: random)
            places = [(52.52, 13.405), (89.9, 17), (-90, 0), (0.001, 179.99), (0, -179.99), (65, -180)]
            self.spread = spread
        }

        func cell() throws -> Cell {
            let place = places[Int.random(in: places.indices, using: &random)]
            let latitude = place.latitude + Double.random(in: -spread...spread, using: &random)
            let wide = place.longitude + Double.random(in: -spread...spread, using: &random) * 3
            return try #require(
                Cell(latitude: min(90, max(-90, latitude)), longitude: wide.remainder(dividingBy: 360)))
        }

        func handle(_ event: DirectoryEvent) -> [ServerMessage] {
            context.now = now
            directory.handle(event, &context)
            var heard: [ServerMessage] = []
            while let letter = context.nextLetter() {
                if case .client(_, .deliver(let message)) = letter { heard.append(message) }
            }
            return heard
        }

        func show(_ identity: IdentityID) throws {
            let other = model.people.keys.sorted().randomElement(using: &random) ?? identity
            let listing = Listing(
                identity: identity, person: project.personID(of: identity), name: "\(identity.low % 1000)",
                isBusy: Bool.random(using: &random), cell: try cell(),
                blocked: Int.random(in: 0..<8, using: &random) == 0 ? [other] : []
            )
            model.people[identity] = listing
            if model.orders[listing.person] == nil {
                model.orders[listing.person] = project.serverKey.nearbyOrder(listing.person.description)
            }
            _ = handle(.show(listing))
        }

        func hide(_ identity: IdentityID) {
            model.people[identity] = nil
            _ = handle(.hide(identity))
        }

        /// Returns all pages of a viewer's list in order, or nil if there is no last page.
        func pages(
            _ viewer: IdentityID, _ blocked: Set<IdentityID>, _ cell: Cell, radius: Int, limit: Int
        ) -> [NearbyRow]? {
            let client = ConnectionID.random(using: &random)
            var rows: [NearbyRow] = []
            var after: String?
            for _ in 0...model.people.count {
                let watch = NearbyVerb.Watch(unit: .miles, radius: radius, after: after, limit: limit)
                let said = handle(.watch(client, re: 1, viewer: viewer, blocked: blocked, at: cell, watch))
                guard case .nearby(.list(let list))? = said.first else { return nil }
                guard list.people.count == limit || list.next == nil else { return nil }
                rows += list.people
                guard let next = list.next else {
                    _ = handle(.unwatch(client))
                    return rows
                }
                after = next
            }
            return nil
        }
    }

    @Test(arguments: [0.01, 0.3, 2.0]) func everyPageMatchesTheModel(spread: Double) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("directory: seed \(seed), spread \(spread)")
        let world = try World(seed: seed, spread: spread)
        var known: [IdentityID] = []
        for step in 0..<2500 {
            switch Int.random(in: 0..<20, using: &world.random) {
            case 0..<9:
                let identity = IdentityID.random(using: &world.random)
                known.append(identity)
                try world.show(identity)
            case 9..<14: if let identity = known.randomElement(using: &world.random) { try world.show(identity) }
            case 14..<18:
                guard let index = known.indices.randomElement(using: &world.random) else { continue }
                world.hide(known.remove(at: index))
            case 18: if step % 500 < 3 { world.now = world.now + .seconds(86_400) }
            default:
                let viewer = known.randomElement(using: &world.random) ?? IdentityID(high: 0, low: 0)
                let blocked = Set(known.shuffled(using: &world.random).prefix(2))
                let cell = try world.cell()
                let reach = Int.random(in: 1...7, using: &world.random)
                let limit = [1, 7, 50][Int.random(in: 0..<3, using: &world.random)]
                let radius = [2, 5, 10, 25, 50, 100, 200][reach - 1]
                let seen = world.pages(viewer, blocked, cell, radius: radius, limit: limit)
                let expected = world.model.rows(for: viewer, blocked, cell, reach: reach, world.directory)
                try #require(seen == expected, "step \(step), seed \(seed)")
            }
        }
        for identity in known { world.hide(identity) }
        #expect(world.directory.listedCount == 0)
        #expect(world.directory.grid.blocks.count == 0)
        #expect(world.directory.table.leaves.count == 1, "empty leaves are merged into one")
    }
}

import Foundation
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Tests the grid of cells. A cell is all that the server computes from a location.
@Suite struct NearbyCellTests {
    @Test func sinesAndTheirInversesAreThoseOfTheSystem() {
        for step in -2000...2000 {
            let angle = Double(step) / 1000 * .pi
            let (ours, theirs) = (Trigonometry.sin(angle), sin(angle))
            #expect(abs(ours - theirs) < 1e-14)
            #expect(abs(Trigonometry.cos(angle) - cos(angle)) < 1e-14)
            let value = Double(step) / 2000
            #expect(abs(Trigonometry.acos(value) - acos(value)) < 1e-14)
        }
        #expect(Trigonometry.acos(1.0000001) == 0)
        #expect(Trigonometry.acos(-3) == .pi)
    }

    @Test func cellsAreAboutTwoKilometersWideEverywhere() throws {
        for row in stride(from: Int32(0), to: Cell.rows, by: 1) {
            let around = 2 * Double.pi * 6371.0088 * cos(Cell.latitude(ofRow: row))
            let width = around / Double(Cell.columns(inRow: row))
            #expect((1.7...2.4).contains(width), "row \(row): \(width) km")
        }
    }

    @Test func everyLocationHasACellWithANearbyCenter() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("cells: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            let latitude = asin(Double.random(in: -1...1, using: &random)) * 180 / .pi
            let longitude = Double.random(in: -180...180, using: &random)
            let cell = try #require(Cell(latitude: latitude, longitude: longitude))
            let there = GlobePoint(latitude: latitude / 180 * .pi, turn: (longitude + 180) / 360)
            #expect(cell.center.distance(to: there) < 1700)
            let (row, column) = BlockRow.place(of: cell)
            #expect(row.center(ofColumn: column).distance(to: cell.center) < PeopleGrid.blockRadius)
        }
    }

    @Test func extremeCoordinatesAreValid() {
        for latitude in [-90.0, -89.999, 0, 89.999, 90] {
            for longitude in [-180.0, -0.0, 179.999, 180] {
                #expect(Cell(latitude: latitude, longitude: longitude) != nil)
            }
        }
        #expect(Cell(latitude: 10, longitude: 180) == Cell(latitude: 10, longitude: -180))
        #expect(Cell(latitude: 90, longitude: 45)?.row == Cell.rows - 1)
    }

    @Test func acrossTheAntimeridianAndThePoleIsNear() throws {
        func bucket(_ one: (Double, Double), _ other: (Double, Double)) throws -> Int? {
            Distance.bucket(
                try #require(Cell(latitude: one.0, longitude: one.1)),
                try #require(Cell(latitude: other.0, longitude: other.1)))
        }
        #expect(try bucket((10, 179.995), (10, -179.995)) == 0)
        #expect(try bucket((89.99, 0), (89.99, 180)) == 0)
        #expect(try bucket((52.52, 13.405), (52.52, 13.405)) == 0)
        #expect(try bucket((52.52, 13.405), (48.85, 2.35)) == nil)
        #expect(try bucket((0, 0), (0, 180)) == nil)
        #expect(try bucket((90, 0), (-90, 0)) == nil)
    }

    @Test func invalidCoordinatesHaveNoCell() {
        let bad: [(Double, Double)] = [
            (90.0001, 0), (-90.0001, 0), (0, 180.0001), (0, -181), (.nan, 0), (0, .nan), (.infinity, 0),
            (0, -.infinity), (1e308, 1e308), (.greatestFiniteMagnitude, 0),
        ]
        for (latitude, longitude) in bad { #expect(Cell(latitude: latitude, longitude: longitude) == nil) }
    }

    @Test func kilometersAreTheSameBucketsAsMiles() {
        for (mile, kilometer) in zip(Distance.miles, Distance.kilometers) {
            let ratio = Double(kilometer) / (Double(mile) * 1.609344)
            #expect((0.93...1.07).contains(ratio))
        }
        #expect(Distance.reach(200, .miles) == 7)
        #expect(Distance.reach(1, .kilometers) == 1)
        #expect(Distance.reach(4, .kilometers) == 2)
        #expect(Distance.reach(101, .miles) == 7)
        #expect(Distance.reach(.max, .miles) == 7)
    }

    // MARK: Speed

    private func cell(_ kilometersNorth: Double) throws -> Cell {
        try #require(Cell(latitude: 10 + kilometersNorth / 111.195, longitude: 20))
    }

    @Test func theSpeedOfAPlaneIsAcceptedAndALeapIsNot() throws {
        var now = Timestamp(milliseconds: 0)
        var trail = TravelLimiter(try cell(0), now: now)
        now = now + .seconds(3600)
        #expect(trail.follow(to: try cell(990), now: now, fastest: 1000) == nil)
        let wait = try #require(trail.follow(to: try cell(1500), now: now, fastest: 1000))
        #expect((1700...1900).contains(wait.wholeMilliseconds / 1000))
        #expect(trail.follow(to: try cell(1500), now: now + wait, fastest: 1000) == nil)
    }

    @Test func manySmallLeapsAreLimitedLikeOneLargeLeap() throws {
        let start = Timestamp(milliseconds: 0)
        for step in [1.0, 2.5, 3.5, 4.9, 6] {
            var trail = TravelLimiter(try cell(0), now: start)
            var furthest = 0.0
            for second in 1...600 {
                let now = start + .seconds(second)
                let there = furthest + step
                if trail.follow(to: try cell(there), now: now, fastest: 1000) == nil { furthest = there }
            }
            let possible = 600.0 / 3600 * 1000 + 12
            #expect(furthest < possible, "in steps of \(step) km")
        }
    }

    @Test func jitterAtACornerOfCellsIsNotTraveling() throws {
        let start = Timestamp(milliseconds: 0)
        let cells = try [(10.0001, 20.0001), (9.9999, 20.0001), (10.0001, 19.9999), (9.9999, 19.9999)].map {
            try #require(Cell(latitude: $0.0, longitude: $0.1))
        }
        var trail = TravelLimiter(cells[0], now: start)
        for step in 1...1000 {
            let now = start + .milliseconds(100 * step)
            #expect(trail.follow(to: cells[step % 4], now: now, fastest: 1000) == nil)
        }
    }

    // MARK: Cursors

    @Test func aCursorIsReadBackUnchanged() {
        for bucket in 0..<7 {
            for place: UInt64 in [0, 1, 0xFEDC_BA98_7654_3210, .max] {
                let cursor = Cursor(bucket: bucket, place: place)
                #expect(Cursor(cursor.text) == cursor)
            }
        }
        let bad: [String] = [
            "", "0", "70000000000000000", "0000000000000000A", "0000000000000000g", "000000000000000é",
        ]
        for text in bad { #expect(Cursor(text) == nil, "\(text)") }
        #expect(Cursor(String(repeating: "0", count: 18)) == nil)
    }
}

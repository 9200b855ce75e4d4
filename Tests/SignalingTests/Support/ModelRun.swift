import Foundation
import Testing

/// A system with random events that is small enough to be checked after each event.
protocol RandomWorld {
    /// Counts how often each kind of event happened, to print the counts and to verify that every kind happened.
    var figures: [String: Int] { get }
    mutating func step()
    /// Returns a description of a broken invariant, if any.
    mutating func fault() -> String?
}

/// Reads the number of random events and the seed from `CONFAB_MODEL_EVENTS` and `CONFAB_MODEL_SEED`. The same seed
/// reproduces a run.
enum ModelRun {
    private static let environment = ProcessInfo.processInfo.environment

    static var events: Int { environment["CONFAB_MODEL_EVENTS"].flatMap { Int($0) } ?? 50_000 }
    /// Whether the number of events was chosen.
    static var isChosen: Bool { environment["CONFAB_MODEL_EVENTS"] != nil }
    static var seed: UInt64 { environment["CONFAB_MODEL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max) }

    static func text(_ figures: [String: Int]) -> String {
        figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    }

    /// Performs a tenth of the events on a new world, and checks the world after each event. Stops at the first fault.
    ///
    /// - Returns: the world, or nil after a fault, which is recorded.
    static func run<World: RandomWorld>(_ name: String, _ make: (_ seed: UInt64) -> World) -> World? {
        let (seed, events) = (seed, events / 10)
        print("\(name): seed \(seed), \(events) events")
        var world = make(seed)
        for event in 0..<events {
            world.step()
            if let fault = world.fault() {
                Issue.record("\(name), seed \(seed), event \(event): \(fault)")
                return nil
            }
        }
        print("\(name): \(text(world.figures))")
        return world
    }
}

import Foundation
import Testing

/// Something that random events happen to, small enough to be judged after each.
protocol RandomWorld {
    /// How often what happened, for people, and to see that it happened at all.
    var figures: [String: Int] { get }
    mutating func step()
    /// What must not be, if it is.
    mutating func fault() -> String?
}

/// How many random events, and from which seed: `CONFAB_MODEL_EVENTS` and `CONFAB_MODEL_SEED`, which repeats a run.
enum ModelRun {
    private static let environment = ProcessInfo.processInfo.environment

    static var events: Int { environment["CONFAB_MODEL_EVENTS"].flatMap { Int($0) } ?? 50_000 }
    static var seed: UInt64 { environment["CONFAB_MODEL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max) }

    static func text(_ figures: [String: Int]) -> String {
        figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    }

    /// Lets a tenth of the events happen to a world, and judges it after each; the first fault is the end.
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

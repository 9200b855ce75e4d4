import Foundation
import Signaling

/// Simulates many people on the nodes of a cluster, and prints what a person costs. The simulation is that of the tests of `Signaling`.
/// It has its own process, because it measures the memory of the process. `scripts/soak population` starts it.
@main
enum Main {
    /// Each person has an IPv4 address in 10.0.0.0/8.
    private static let people = PopulationHabit.block...1 << 24
    private static let nodes = 2...200
    private static let minutes = 1...1440

    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let numbers = arguments.dropLast().compactMap { Int($0) }
        guard arguments.count == 4, numbers.count == 3, let seed = UInt64(arguments[3]), people ~= numbers[0],
            nodes ~= numbers[1], minutes ~= numbers[2]
        else {
            print("usage: Population PEOPLE NODES MINUTES SEED")
            print("people: \(people), nodes: \(nodes), minutes: \(minutes), seed: any unsigned 64-bit number")
            exit(64)
        }
        guard let project = Project(apiKey: "1", secret: String(repeating: "0", count: Project.shortestSecret)) else {
            print("The project is invalid.")
            exit(1)
        }
        let run = PopulationRun(
            people: numbers[0], nodes: numbers[1], minutes: numbers[2], filling: .seconds(120), seed: seed,
            project: project, isAlone: true)
        let faults = run.findFaults()
        for fault in faults { print("population, seed \(seed): \(fault)") }
        exit(faults.isEmpty ? 0 : 1)
    }
}

import Foundation
import RTC
import Testing
import Wire

/// People who connect, publish, subscribe and disconnect in random ways and order, on a few threads.
private struct MediaChurn {
    static let threads = 5
    /// People per thread.
    static let people = 4

    let place: MediaPlace
    let seed: UInt64

    /// - Parameter steps: counts the steps that succeeded.
    /// - Returns: how often each action was done.
    func run(counting steps: Counter, until isOver: Flag) -> [Background<[String: Int]>] {
        (0..<Self.threads).map { thread in
            let (place, seed) = (place, seed &+ UInt64(thread))
            return Background {
                var crowd = Crowd(place: place, random: Random(seed: seed))
                while !isOver.isSet {
                    // If the server refused the step, wait briefly before the next one.
                    if crowd.step() { steps.add() } else { _ = isOver.isSet(within: .milliseconds(2)) }
                }
                return crowd.done
            }
        }
    }

    private struct Crowd {
        let place: MediaPlace
        var random: Random
        var robots: [MediaRobot] = []
        var done: [String: Int] = [:]

        init(place: MediaPlace, random: Random) { (self.place, self.random) = (place, random) }

        /// Returns whether the step succeeded.
        mutating func step() -> Bool {
            do {
                if robots.count < MediaChurn.people {
                    try join()
                } else {
                    for robot in robots { try robot.run(for: .milliseconds(4)) }
                    try act(robots.remove(at: Int.random(in: robots.indices, using: &random)))
                }
                return true
            } catch {
                // Members who were removed, and clients of a server that is shutting down, get many different errors.
                done["put out", default: 0] += 1
                robots.removeAll { $0.person.closeCode != nil || $0.lines.values.contains(where: \.isClosed) }
                return false
            }
        }

        private mutating func join() throws {
            let robot = try MediaRobot(place, tcp: .random(using: &random), from: MediaAttack.elsewhere)
            robots.append(robot)
            done["joined", default: 0] += 1
            if Int.random(in: 0..<4, using: &random) == 0 {
                // The robot cannot publish yet, because ICE has no path.
                try robot.open(.receive, MediaOffering.slots(2))
            } else {
                try robot.openBoth(slots: 2)
            }
            if Bool.random(using: &random) { try robot.publish() }
            for (slot, stream) in robot.streams.shuffled(using: &random).prefix(2).enumerated() {
                try robot.watch(stream.id, slot: slot)
            }
        }

        /// Makes one person do something. The person stays connected only if the action can be repeated.
        private mutating func act(_ robot: MediaRobot) throws {
            func count(_ what: String) { done[what, default: 0] += 1 }
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                count("left")
                try robot.ask(.session(.leave(.init(session: robot.session))))
            case 1:
                count("closed")
                try robot.person.close()
            case 2:
                count("dropped")
                robot.person.drop()
            case 3:
                count("cut")
                for line in robot.lines.values { line.cut() }
                robot.person.drop()
            case 4:
                count("kicked")
                guard let other = robots.randomElement(using: &random) else { return }
                // A moderator removes the person while the person's TCP connection closes.
                if Bool.random(using: &random) { other.lines.randomElement(using: &random)?.value.cut() }
                robots.append(robot)
                try robot.ask(.session(.forceDisconnect(.init(session: robot.session, connection: other.connection))))
            case 5:
                count("closed a side")
                robots.append(robot)
                try robot.ask(.media(.close(.init(side: Bool.random(using: &random) ? .send : .receive))))
            case 6:
                count("left on purpose")
                for line in robot.lines.values { line.transport.close(sink: line) }
                robots.append(robot)
            case 7:
                count("unpublished")
                robots.append(robot)
                if robot.published == nil { try robot.publish() } else { try robot.unpublish() }
            case 8:
                count("reconnected media")
                robots.append(robot)
                try robot.open(.receive, MediaOffering.slots(2))
            default:
                count("cut the line")
                robot.lines.randomElement(using: &random)?.value.cut()
                try robot.person.close()
            }
        }
    }
}

extension Hostile {
    @Suite("Case 25: teardown") struct MediaTeardown {
        /// The number of steps per round.
        private static let steps = 90
        private static let rounds = 4
        private static let timeout: Duration = .seconds(60)
        /// The maximum growth between identical rounds. It allows for memory that the allocator keeps, but not for
        /// memory of connections.
        private static let maxLeft = Attack.isSanitized ? Attack.maxGrowth : Attack.maxGrowth / 8

        @Test("people who connect and disconnect in any order leave nothing behind, and other calls continue")
        func churn() async throws {
            let seed = UInt64.random(in: .min ... .max)
            print("seed \(seed)")
            // The grace period is short, because this test is not about state that is kept for a resume.
            let settings = ["CONFAB_CONNECTION_RESUME_GRACE": "200ms"]
            try await MediaAttack(number: 25, name: "coming and going", settings: settings).run { place, _ in
                let (other, before) = (try await place.another(), place.server.openFiles)
                var done: [String: Int] = [:]
                var memories: [Int] = []
                for round in 0..<Self.rounds {
                    let crowd = try Self.churn(MediaChurn(place: other, seed: seed &+ UInt64(round * 100)))
                    for thread in crowd { done.merge(try thread.join()) { $0 + $1 } }
                    // Count only sockets, because the runtime opens timers and database files when it first needs them.
                    try eventually("open: \(place.server.openFiles), before: \(before)") {
                        try Self.isEmpty(other) && place.server.sockets <= before["socket", default: 0]
                    }
                    memories.append(place.server.memory)
                }
                // Tables and pools reach their size in the first round.
                let left = memories[Self.rounds - 1] - memories[1]
                #expect(left < Self.maxLeft, "\(memories.map(mebibytes))")
                #expect(done["joined", default: 0] > 20, "\(done)")
                let ways = done.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
                return AttackOutcome(sent: ways, cameBack: "memory after each round \(memories.map(mebibytes))")
            }
        }

        /// Runs one round of the crowd's steps. Some threads may still be stopping afterwards.
        private static func churn(_ churn: MediaChurn) throws -> [Background<[String: Int]>] {
            let (steps, isOver) = (Counter(), Flag())
            defer { isOver.set() }
            let crowd = churn.run(counting: steps, until: isOver)
            try eventually("the crowd did only \(steps.count)", within: timeout) { steps.count >= Self.steps }
            return crowd
        }

        /// Whether a newcomer finds the session empty. Members whose places are kept for a resume count as present.
        private static func isEmpty(_ place: MediaPlace) throws -> Bool {
            let visitor = try Person.arrive(port: place.port)
            let joined = try visitor.join(Admission(session: place.session, token: place.token("moderator")))
            try visitor.say(.bye)
            try visitor.hearClose()
            return joined.connections.isEmpty && joined.streams.isEmpty
        }

        @Test("a server stops cleanly while people connect and disconnect")
        func stopping() async throws {
            let seed = UInt64.random(in: .min ... .max)
            print("seed \(seed)")
            let isOver = Flag()
            let steps = Counter()
            var crowd: [Background<[String: Int]>] = []
            defer { isOver.set() }
            let log = try await ServerProcess.run(MediaAttack.settings) { server in
                crowd = MediaChurn(place: try await MediaPlace(server), seed: seed)
                    .run(counting: steps, until: isOver)
                try eventually("the crowd did only \(steps.count)", within: Self.timeout) {
                    steps.count >= Self.steps
                }
                return server.log
            }
            // The server was stopped at the end of the scope above, while people were still connecting and
            // disconnecting.
            isOver.set()
            let joined = try crowd.reduce(0) { try $0 + ($1.join()["joined"] ?? 0) }
            #expect(joined > 5 && !log.isEmpty)
            print("hostile 25 | stopped among \(joined) people")
        }
    }
}

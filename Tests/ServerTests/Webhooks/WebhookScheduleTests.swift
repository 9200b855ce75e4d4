import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("The schedule of webhooks") struct WebhookScheduleTests {
    private static let start = WebhookSimulation.start

    @Test func `everything arrives in order after a receiver was down for an hour`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1", "2"], seed: seed)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5000 {
            let project = Bool.random(using: &random) ? "1" : "2"
            simulation.happen(
                project, "session-\(project)-\(Int.random(in: 0..<50, using: &random))",
                after: .milliseconds(Int.random(in: 0..<7_200_000, using: &random)))
        }
        let outage = (Self.start + .seconds(600))..<(Self.start + .seconds(4200))
        simulation.behavior = { entry, now in
            // The first project's receiver is down, and the second's is not.
            .init(isAccepted: entry.project == "2" || !outage.contains(now))
        }
        simulation.run(for: .seconds(4200))
        let waiting = simulation.waitingCount
        // Less than the longest delay after the outage, nothing of that time waits any more.
        simulation.run(for: .seconds(3000) + WebhookSchedule.maxDelay)
        #expect(simulation.faults() == [], "seed \(seed)")
        #expect(simulation.accepted.count == simulation.stored.count, "seed \(seed): something was sent twice")
        #expect(simulation.log.count == 2, "seed \(seed): \(simulation.log)")
        let attempts = simulation.attempts.values.map(\.count).max() ?? 0
        print("webhooks: \(waiting) events waited at the end of the outage; at most \(attempts) attempts for an event")
    }

    @Test(arguments: [0, 5]) func `restarts lose nothing and reorder nothing`(storageFailures: Int) {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1", "2", "3"], seed: seed, concurrency: 8)
        var random = SeededGenerator(seed: seed)
        simulation.storageFailures = storageFailures
        for _ in 0..<3000 {
            let project = "\(Int.random(in: 1...3, using: &random))"
            simulation.happen(
                project, "session-\(project)-\(Int.random(in: 0..<10, using: &random))",
                after: .milliseconds(Int.random(in: 0..<600_000, using: &random)))
        }
        for _ in 0..<20 { simulation.restart(after: .milliseconds(Int.random(in: 0..<600_000, using: &random))) }
        var faults = SeededGenerator(seed: ~seed)
        simulation.behavior = { _, _ in
            .init(
                isAccepted: Int.random(in: 0..<10, using: &faults) > 0,
                delay: .milliseconds(Int.random(in: 0..<3000, using: &faults)))
        }
        simulation.run(for: .seconds(10 * 86400))
        #expect(simulation.faults() == [], "seed \(seed)")
        #expect(simulation.waitingCount == 0, "seed \(seed)")
        print("webhooks: \(simulation.accepted.count - simulation.stored.count) of 3000 events were sent twice")
    }

    @Test(arguments: [1, 3000, 100_000]) func `a hundred thousand waiting events need bounded memory`(sessions: Int) {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1"], seed: seed)
        for number in 0..<100_000 { simulation.keep("1", "session-\(number % sessions)") }
        simulation.behavior = { _, _ in .init(delay: .milliseconds(1)) }
        simulation.run(for: .seconds(1000))
        #expect(simulation.faults() == [], "seed \(seed)")
        #expect(simulation.accepted.count == 100_000, "seed \(seed)")
        #expect(simulation.highestLaneCount <= WebhookSchedule.sessionsPerProject)
        print("webhooks: at most \(simulation.highestLaneCount) sessions in memory, for \(sessions)")
    }

    @Test func `receivers that hang do not hold up those that answer`() {
        let seed = UInt64.random(in: 0 ... .max)
        let slow = Set((0..<40).map { "slow-\($0)" })
        var simulation = WebhookSimulation(slow.union(["1"]), seed: seed)
        for project in slow {
            for number in 0..<200 { simulation.keep(project, "session-\(project)-\(number)") }
        }
        simulation.behavior = { entry, _ in
            entry.project == "1" ? .init() : .init(isAccepted: false, delay: .seconds(10))
        }
        // After their first failures, the slow ones use at most half of the requests.
        simulation.run(for: .seconds(60))
        for number in 0..<1000 { simulation.happen("1", "session", after: .milliseconds(100 * number)) }
        simulation.run(for: .seconds(200))
        let own = simulation.stored.filter { $0.project == "1" }
        #expect(own.count == 1000)
        for entry in own {
            #expect(simulation.attempts[entry.id]?.count == 1, "seed \(seed)")
            let delay = (simulation.attempts[entry.id]?.first).map { $0 - entry.at }
            // The time that the database takes in the simulation.
            #expect(delay.map { $0 <= .milliseconds(10) } == true, "seed \(seed): \(String(describing: delay))")
        }
    }

    @Test(arguments: [4, 100]) func `receivers that take nine seconds do not delay one that answers at once`(
        slow: Int
    ) {
        let seed = UInt64.random(in: 0 ... .max)
        let projects = Set((0..<slow).map { "slow-\($0)" })
        // Four are known from the start. A hundred appear when the other one has answered.
        var simulation = WebhookSimulation(slow == 4 ? projects.union(["1"]) : ["1"], seed: seed)
        for project in projects {
            for number in 0..<100 { simulation.keep(project, "session-\(project)-\(number)") }
        }
        simulation.behavior = { entry, _ in .init(delay: entry.project == "1" ? .milliseconds(20) : .seconds(9)) }
        for number in 0..<1000 { simulation.happen("1", "session", after: .milliseconds(100 * number + 1)) }
        simulation.run(for: .seconds(1))
        simulation.retarget(projects.union(["1"]))
        simulation.run(for: .seconds(20_000))
        #expect(simulation.faults() == [], "seed \(seed)")
        let delays = simulation.stored.filter { $0.project == "1" }.compactMap { entry in
            (simulation.attempts[entry.id]?.first).map { $0 - entry.at }
        }
        #expect(delays.count == 1000, "seed \(seed)")
        #expect(delays.allSatisfy { $0 <= .milliseconds(100) }, "seed \(seed): \(delays.max() ?? .zero)")
    }

    @Test func `a request that had to wait for a DNS lookup is no failure of its receiver`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1"], seed: seed)
        for number in 0..<20 { simulation.keep("1", "session-\(number)") }
        simulation.behavior = { _, now in .init(isPostponed: now <= Self.start + .seconds(3600)) }
        simulation.run(for: .seconds(3600))
        #expect(simulation.accepted.isEmpty, "seed \(seed)")
        simulation.run(for: WebhookSchedule.firstDelay + .seconds(2))
        #expect(simulation.accepted.count == 20 && simulation.log.isEmpty, "seed \(seed): \(simulation.log)")
    }

    @Test func `when a webhook is corrected, the events that wait are sent at once`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1", "2"], seed: seed)
        for number in 0..<100 {
            simulation.keep("1", "session-1-\(number)")
            simulation.keep("1", "session-1-\(number)")
        }
        // Let each session fail until its delay is the longest.
        simulation.behavior = { _, _ in .init(isAccepted: false) }
        simulation.run(for: .seconds(4 * 3600))
        simulation.behavior = { _, _ in .init() }
        simulation.retarget(["1", "2"], path: "/corrected")
        simulation.run(for: .seconds(60))
        #expect(simulation.accepted.count == 200 && simulation.faults() == [], "seed \(seed)")
        #expect(simulation.schedule.wakeAt == nil, "seed \(seed)")
    }

    @Test func `events that were never sent are given up after a day too`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1"], seed: seed)
        for number in 0..<5000 { simulation.keep("1", "session-\(number % 2000)") }
        for number in 0..<10 { simulation.happen("1", "later-\(number)", after: .seconds(40_000 + number)) }
        simulation.behavior = { _, _ in .init(isAccepted: false, delay: .seconds(10)) }
        simulation.run(for: .seconds(86_400) + WebhookSchedule.giveUpInterval + .seconds(20))
        #expect(simulation.givenUp.count == 5000 && simulation.waitingCount == 10, "seed \(seed)")
        #expect(simulation.attempts.count < 2500, "seed \(seed): most events were never sent")
        // The receiver works again.
        simulation.behavior = { _, _ in .init() }
        simulation.run(for: WebhookSchedule.maxDelay + .seconds(10))
        #expect(simulation.accepted.count == 10 && simulation.faults() == [], "seed \(seed)")
    }

    @Test func `a project has at most a quarter of the requests, and one that fails has one`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1", "2"], seed: seed, concurrency: 16)
        for number in 0..<100 {
            simulation.keep("1", "good-\(number)")
            simulation.keep("2", "bad-\(number)")
        }
        simulation.behavior = { entry, _ in .init(isAccepted: entry.project == "1", delay: .seconds(1)) }
        simulation.run(for: .seconds(3600))
        #expect(simulation.highestSending == ["1": 4, "2": 1], "seed \(seed)")
        let bad = simulation.stored.filter { $0.project == "2" }.flatMap { simulation.attempts[$0.id] ?? [] }
        // The attempts for the failing project never overlap.
        for (first, second) in zip(bad.sorted(), bad.sorted().dropFirst()) {
            #expect(second - first >= .seconds(1), "seed \(seed)")
        }
    }

    @Test func `the delay doubles from five seconds to fifteen minutes, and an event is given up after a day`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1"], seed: seed)
        simulation.keep("1", "session")
        simulation.happen("1", "session", after: .seconds(3600))
        simulation.behavior = { entry, _ in .init(isAccepted: entry.id == 2, delay: .zero) }
        simulation.run(for: .seconds(2 * 86400))
        let times = simulation.attempts[1] ?? []
        let expected: [Duration] =
            [5, 10, 20, 40, 80, 160, 320, 640].map { .seconds($0) }
            + Array(repeating: .seconds(900), count: max(0, times.count - 9))
        for (index, delay) in expected.enumerated() where index + 1 < times.count {
            let actual = times[index + 1] - times[index]
            // Ticks are a second apart.
            #expect(actual >= delay - delay / 5 && actual <= delay + .seconds(1), "seed \(seed): \(index), \(actual)")
        }
        #expect(simulation.givenUp.map(\.id) == [1] && simulation.accepted.map(\.id) == [2])
        let end = times.last.map { $0 - Self.start } ?? .zero
        #expect(end >= .seconds(86400) && end <= .seconds(86400) + WebhookSchedule.maxDelay + .seconds(1))
    }

    @Test func `an event that was given up while it was being sent does not delay its session`() throws {
        var (schedule, random) = (
            WebhookSchedule(concurrency: 4, giveUpAfter: .seconds(100)), SystemRandomNumberGenerator()
        )
        func handle(_ event: WebhookSchedule.Event, after seconds: Int) -> [WebhookSchedule.Command] {
            schedule.handle(event, at: Moment(now: Self.start + .seconds(seconds)), using: &random)
        }
        let target = try WebhookTarget(url: "https://example.org/", secret: WebhookSamples.secret)
        let entries = [0, 150].enumerated().map { index, seconds in
            WebhookEntry(
                id: Int64(index + 1), project: "1", session: WebhookSamples.session, at: Self.start + .seconds(seconds))
        }
        #expect(handle(.targets(["1": target]), after: 0) == [.read("1", after: 0)])
        #expect(handle(.page("1", after: 0, entries), after: 0) == [.send(entries[0])])
        let limit = Self.start + .seconds(100)
        #expect(handle(.tick, after: 200) == [.giveUp("1", before: limit)])
        #expect(handle(.gaveUp("1", before: limit), after: 200) == [])
        let failed = handle(.sent(entries[0], .failed("late")), after: 210)
        #expect(failed == [.logFailing("1", reason: "late"), .send(entries[0])])
        #expect(handle(.sent(entries[0], .missing), after: 210) == [.remove(entries[0])])
        #expect(handle(.removed(entries[0], next: entries[1]), after: 210) == [.send(entries[1])])
    }

    @Test func `nothing is given up while the clock may be wrong`() {
        var simulation = WebhookSimulation(["1"], seed: 1)
        simulation.keep("1", "session")
        simulation.isClockConfirmed = false
        simulation.behavior = { _, _ in .init(isAccepted: false) }
        simulation.run(for: .seconds(3 * 86400))
        #expect(simulation.givenUp.isEmpty && simulation.waitingCount == 1)
        simulation.isClockConfirmed = true
        simulation.run(for: .seconds(1000))
        #expect(simulation.givenUp.count == 1 && simulation.waitingCount == 0)
    }

    @Test func `a project without a webhook is forgotten, and read from the start when it has one again`() {
        let seed = UInt64.random(in: 0 ... .max)
        var simulation = WebhookSimulation(["1", "2"], seed: seed)
        for number in 0..<500 {
            simulation.keep("1", "session-1-\(number % 50)")
            simulation.keep("2", "session-2-\(number % 50)")
        }
        simulation.behavior = { _, _ in .init(delay: .seconds(1)) }
        simulation.run(for: .seconds(3))
        simulation.retarget(["2"])
        simulation.run(for: .seconds(1))
        let before = simulation.accepted.filter { $0.project == "1" }.count
        simulation.run(for: .seconds(1000))
        #expect(simulation.accepted.filter { $0.project == "1" }.count == before, "seed \(seed)")
        #expect(simulation.accepted.filter { $0.project == "2" }.count == 500, "seed \(seed)")
        #expect(simulation.schedule.laneCount == 0, "seed \(seed)")
        simulation.retarget(["1", "2"])
        simulation.run(for: .seconds(1000))
        #expect(simulation.faults() == [], "seed \(seed)")
    }

    @Test func `random projects, failures and restarts never reorder a session or exceed the limits`() {
        for _ in 0..<20 {
            let seed = UInt64.random(in: 0 ... .max)
            var random = SeededGenerator(seed: seed)
            let all: Set<String> = ["1", "2", "3", "4", "5"]
            var simulation = WebhookSimulation(all, seed: seed, concurrency: Int.random(in: 1...8, using: &random))
            simulation.storageFailures = Int.random(in: 0...20, using: &random)
            var faults = SeededGenerator(seed: ~seed)
            let percent = Int.random(in: 0...60, using: &random)
            simulation.behavior = { _, _ in
                .init(
                    isAccepted: Int.random(in: 0..<100, using: &faults) >= percent,
                    delay: .milliseconds(Int.random(in: 0..<10_000, using: &faults)))
            }
            for _ in 0..<30 {
                for _ in 0..<Int.random(in: 0..<60, using: &random) {
                    let project = "\(Int.random(in: 1...5, using: &random))"
                    simulation.happen(
                        project, "s\(project)-\(Int.random(in: 0..<8, using: &random))",
                        after: .milliseconds(Int.random(in: 0..<60_000, using: &random)))
                }
                if Bool.random(using: &random) { simulation.retarget(all.filter { _ in Bool.random(using: &random) }) }
                if Bool.random(using: &random) {
                    simulation.restart(after: .milliseconds(Int.random(in: 0..<60_000, using: &random)))
                }
                simulation.run(for: .seconds(60))
            }
            simulation.retarget(all)
            simulation.run(for: .seconds(20 * 86400))
            #expect(simulation.faults() == [], "seed \(seed)")
            #expect(simulation.waitingCount == 0 && simulation.schedule.laneCount == 0, "seed \(seed)")
            #expect(simulation.schedule.wakeAt == nil, "seed \(seed)")
        }
    }
}

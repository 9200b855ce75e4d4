import NIOCore

/// The nodes of the benchmark and the Redis that they share.
struct LoadCluster {
    /// Nothing is measured before this much time, so that connections, scripts and caches are in use.
    private static let warmUp = TimeAmount.seconds(5)
    /// How long letters that are under way may take to arrive when nothing more is posted.
    private static let rest = 100

    let nodes: [LoadNode]
    let redis: ServerProcess
    /// The people on all nodes, each of whom has a place.
    let people: Int

    /// Figures at one time.
    private struct Reading {
        var time = ContinuousClock.now
        var redisSeconds: Double
        var ownSeconds = processorSeconds()
        var counts: [LoadNode.Counts]
        /// How often Redis has carried out each command, also in scripts.
        var commands: [String: Int] = [:]

        var received: Int { counts.reduce(0) { $0 + $1.received } }
        var posted: Int { counts.reduce(0) { $0 + $1.posted } }
    }

    func start() async throws { for node in nodes { try await node.start() } }

    // MARK: Places

    /// Claims a place for each person, and enters all of them again, as nodes do after a Redis has lost them.
    func fill() async throws {
        let empty = redis.residentBytes()
        try await eachNode { try await $0.register(under: 1) }
        let claiming = try await read()
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for (index, node) in nodes.enumerated() {
                let share = (people * index / nodes.count)..<(people * (index + 1) / nodes.count)
                tasks.addTask { try await node.claim(share) }
            }
            try await tasks.waitForAll()
        }
        let claimed = try await read()
        let each = (claimed.redisSeconds - claiming.redisSeconds) / Double(people)
        Main.row("claiming \(people) places, each: CPU time of Redis", "\((each * 1e6).text(1)) µs")
        let grown = redis.residentBytes() - empty
        Main.row(
            "memory of Redis for \(people) places",
            "\((grown / 1e6).text(0)) MB, \((grown / Double(people)).text(0)) bytes each")
        try await eachNode { try await $0.register(under: 2) }
        let entered = try await read()
        let cost = "\((entered.redisSeconds - claimed.redisSeconds).text(1)) s of CPU time of Redis"
        Main.row("entering all of them again", "\(cost) in \((entered.time - claimed.time).seconds.text(1)) s")
    }

    private func eachNode(_ body: @escaping @Sendable (LoadNode) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for node in nodes { tasks.addTask { try await body(node) } }
            try await tasks.waitForAll()
        }
    }

    // MARK: Letters

    /// Posts letters for a while, and prints what that costs Redis.
    ///
    /// - Parameter goal: for the CPU time of Redis. Empty for none.
    func measure(_ traffic: Traffic, for duration: TimeAmount, goal: String) async throws {
        let tags = nodes.map(\.tag)
        for node in nodes { try await node.begin(traffic, to: tags.filter { $0 != node.tag }, people: people) }
        try await pass(Self.warmUp)
        for node in nodes { try await node.setMeasured(true) }
        let before = try await read()
        try await pass(duration)
        let after = try await read()
        for node in nodes { try await node.setMeasured(false) }
        for node in nodes { try await node.end() }
        try await waitForLetters()
        let figures = try await read()
        report(traffic, before, after, delays: figures.counts.flatMap(\.delays), goal: goal)
    }

    private func pass(_ duration: TimeAmount) async throws {
        try await nodes[0].loop.scheduleTask(in: duration) {}.futureResult.get()
    }

    private func waitForLetters() async throws {
        for _ in 0..<Self.rest {
            let reading = try await read()
            if reading.received == reading.posted { return }
            try await pass(.milliseconds(100))
        }
        throw Failure(description: "Letters have not arrived.")
    }

    private func report(_ traffic: Traffic, _ before: Reading, _ after: Reading, delays: [Double], goal: String) {
        let seconds = (after.time - before.time).seconds
        let letters = Double(after.received - before.received)
        let busy = after.redisSeconds - before.redisSeconds
        let own = after.ownSeconds - before.ownSeconds
        func row(_ what: String, _ figure: String, _ goal: String = "") {
            Main.row("\(traffic.name): \(what)", figure, goal)
        }
        func often(_ command: String) -> Double {
            Double((after.commands[command] ?? 0) - (before.commands[command] ?? 0))
        }
        row("CPU time of Redis, share of a core", "\((100 * busy / seconds).text(1)) %", goal)
        let posted = Double(after.posted - before.posted)
        row("letters posted and received in a second", "\((posted / seconds).text(0)), \((letters / seconds).text(0))")
        row("CPU time of Redis for a letter, with the places", "\((1e6 * busy / letters).text(1)) µs")
        row("CPU time of all nodes for a letter", "\((1e6 * own / letters).text(1)) µs")
        row("letters in an entry", (letters / often("xadd")).text(2))
        let commands = ["xadd", "evalsha", "xread", "xtrim"].map { "\((often($0) / seconds).text(0)) \($0)" }
        row("commands in a second", commands.joined(separator: ", "))
        let delay = "\(delays.median.text(2)) ms; 99 of 100 within \(delays.quantile(0.99).text(2)) ms"
        row("posted → received, median", delay)
    }

    // MARK: Reading

    private func read() async throws -> Reading {
        var counts: [LoadNode.Counts] = []
        for node in nodes { counts.append(try await node.figures()) }
        var reading = Reading(redisSeconds: redis.processorSeconds(), counts: counts)
        for (name, value) in try await nodes[0].information("commandstats") {
            // Such as "calls=123,usec=456,…".
            let calls = value.split(separator: ",").first { $0.hasPrefix("calls=") }?.dropFirst("calls=".count)
            reading.commands[String(name.dropFirst("cmdstat_".count))] = calls.flatMap { Int($0) }
        }
        return reading
    }
}

extension Duration {
    /// The duration in seconds.
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

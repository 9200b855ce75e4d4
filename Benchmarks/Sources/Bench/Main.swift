import NIOPosix
import Signaling

#if canImport(Glibc)
import Glibc
#endif

/// The entry point. `run` starts this program once per measurement and collects the printed rows in one table.
@main
enum Main {
    static func main() {
        do {
            try measure()
        } catch {
            print("The measurement failed: \(error)")
            exit(1)
        }
    }

    private static func measure() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let numbers = arguments.dropFirst().compactMap { Int($0) }
        switch (arguments.first, numbers.count) {
        case ("pairing", 2): pairing(waiting: numbers[0], pairings: numbers[1])
        case ("nearby", 1): try nearby(people: numbers[0])
        case ("relay", 7): try relay(numbers)
        case ("next", 4): try next(numbers)
        case ("connect", 3): try connect(arguments[1], numbers)
        case ("calls", 4): try calls(numbers)
        case ("flood", 4): try flood(arguments[1], numbers)
        case ("crowd", 4): try crowd(arguments[1], numbers)
        case ("idle", 3): try idle(numbers)
        case ("drill-kill", 3): try drillKill(arguments[1], arguments[2], numbers)
        case ("drill-fault", 2): try drillFault(arguments[1], arguments[2], arguments[3], arguments[4], numbers)
        default:
            print("usage: Bench pairing WAITING PAIRINGS")
            print("       Bench nearby PEOPLE")
            print("       Bench relay PORT PID PEERPORT PEERPID CONNECTIONS ROUNDS RELAYS")
            print("       Bench next PORT PID OTHERS ROUNDS")
            print("       Bench connect TRANSPORT PORT PID CONNECTIONS")
            print("       Bench calls PORT PID PAIRS RINGS")
            print("       Bench flood people|session PORT PID SOCKETS SECONDS")
            print("       Bench crowd NAME PORT PID MEMBERS DATALENGTH")
            print("       Bench idle PORT PID CONNECTIONS")
            print("       Bench drill-kill EXECUTABLE FOLDER COMMITS KILLS SEED")
            print("       Bench drill-fault NAME survives|stops EXECUTABLE FOLDER SECONDS SEED")
            exit(64)
        }
    }

    static func row(_ what: String, _ figure: String, _ goal: String) {
        print("| \(what) | \(figure) | \(goal) |")
    }

    private static func pairing(waiting: Int, pairings: Int) {
        var benchmark = PairingBenchmark(waiting: waiting, pairings: pairings)
        let figures = benchmark.run()
        row("a pairing, \(waiting) waiting", "\((figures.perPairing / 1000).text(2)) µs", "under 2 µs")
        if let bytes = figures.bytesPerEntry {
            row("memory per waiting person, \(waiting) waiting", "\(bytes.text(0)) bytes", "")
        }
    }

    private static func nearby(people: Int) throws {
        for crowd in NearbyBenchmark.Crowd.allCases {
            var benchmark = NearbyBenchmark(count: people, crowd: crowd, project: try project())
            let figures = benchmark.run(pages: 2000, moves: 50_000)
            let what = "\(people) people, \(crowd.rawValue)"
            row("a page of 50, \(what)", "\((figures.perPage / 1000).text(1)) µs", "under 1000 µs")
            row("a page of 50 in the slowest of 50 batches", "\((figures.slowestPage / 1000).text(1)) µs", "")
            row(
                "a change of location, \(what)", "\((figures.perMove / 1000).text(2)) µs",
                "the same for any number of people")
            guard let bytes = figures.bytesPerPerson, crowd == .globe else { continue }
            row("memory per listed person, \(people) listed", "\(bytes.text(0)) bytes", "")
        }
    }

    /// Returns the project of the servers under test, which `run` chooses.
    static func project() throws -> Project {
        guard let key = getenv("CONFAB_API_KEY"), let secret = getenv("CONFAB_API_SECRET"),
            let project = Project(apiKey: String(cString: key), secret: String(cString: secret))
        else { throw LoadClient.Failure(description: "CONFAB_API_KEY and CONFAB_API_SECRET are not set") }
        return project
    }

    private static func relay(_ numbers: [Int]) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let servers = [
            ServerProcess(name: "Confab", port: numbers[0], id: numbers[1]),
            // `run` starts an earlier build instead of the peer if it is given one.
            ServerProcess(
                name: getenv("CONFAB_BENCH_BASE") == nil ? "node-ws" : "base", port: numbers[2], id: numbers[3]),
        ]
        let (connections, rounds, relays) = (numbers[4], numbers[5], numbers[6])
        let project = try project()
        let benchmarks = servers.map { RelayBenchmark(crowd: Crowd(server: $0, loop: group.next())) }
        for benchmark in benchmarks {
            try benchmark.open(connections: connections) { sleep(2) }
            row(
                "memory per idle connection, \(connections) connections, \(benchmark.crowd.server.name)",
                "\((benchmark.figures.bytesPerIdle / 1000).text(1)) kB",
                benchmark === benchmarks[0] ? "at most 12 kB" : ""
            )
        }
        for benchmark in benchmarks {
            try benchmark.join(project: project)
            // Warm up, so that code and memory used for the first time are not counted.
            try benchmark.relay(relays / 2)
        }
        // Alternate between the servers, so that other work on the computer affects both equally.
        for _ in 0..<rounds { for benchmark in benchmarks { try benchmark.round(relays) } }
        let figures = benchmarks.map { $0.figures.relaysPerSecond.median }
        for (benchmark, figure) in zip(benchmarks, figures) {
            let each = "\((1e6 / figure).text(1)) µs each"
            row(
                "relays per second of CPU time, \(benchmark.crowd.server.name)", "\(figure.text(0)) (\(each))", ""
            )
        }
        row(
            "Confab's relays ÷ those of \(servers[1].name), for the same CPU time",
            "\((figures[0] / figures[1]).text(2))", "at least 1")
        for benchmark in benchmarks { try benchmark.crowd.close() }
    }

    private static func connect(_ name: String, _ numbers: [Int]) throws {
        // The peers support only one transport each.
        let peers: [String: ConnectClient.Transport] = ["node-ws": .native, "python-socketio": .engine]
        let isPeer = peers[name] != nil
        guard let transport = peers[name] ?? ConnectClient.Transport(rawValue: name) else {
            throw LoadClient.Failure(description: "unknown transport \(name)")
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = ServerProcess(name: name, port: numbers[0], id: numbers[1])
        let benchmark = ConnectBenchmark(server: server, transport: transport, loop: group.next())
        let figures = try benchmark.run(numbers[2]) { sleep(2) }
        let each = "\((1e6 / figures.connectsPerSecond).text(0)) µs each"
        row("connects per second of CPU time, \(name)", "\(figures.connectsPerSecond.text(0)) (\(each))", "")
        row(
            "memory per idle connection, \(numbers[2]) connections, \(name)",
            "\((figures.bytesPerIdle / 1000).text(1)) kB",
            transport == .native && !isPeer ? "at most 12 kB" : ""
        )
    }

    private static func calls(_ numbers: [Int]) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let crowd = Crowd(server: ServerProcess(name: "Confab", port: numbers[0], id: numbers[1]), loop: group.next())
        let (pairs, rings) = (numbers[2], numbers[3])
        let benchmark = CallBenchmark(crowd: crowd)
        try benchmark.open(pairs: pairs)
        // Warm up, so that code and memory used for the first time are not counted.
        _ = try benchmark.ring(rings / 10, pairs: pairs)
        let rates = try (0..<5).map { _ in try benchmark.rate(rings, pairs: pairs) }
        let each = "\((1e6 / rates.median).text(0)) µs each"
        row("rings per second of CPU time, \(pairs) at a time", "\(rates.median.text(0)) (\(each))", "")
        let alone = try benchmark.ring(max(100, rings / 10), pairs: 1)
        let what = "`call.start` → `call.incoming`, one at a time"
        row("\(what), median of \(alone.count)", "\((alone.median * 1000).text(2)) ms", "")
        row("\(what), 99 of 100 within", "\((alone.quantile(0.99) * 1000).text(2)) ms", "")
        try crowd.close()
    }

    private static func next(_ numbers: [Int]) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let crowd = Crowd(server: ServerProcess(name: "Confab", port: numbers[0], id: numbers[1]), loop: group.next())
        let benchmark = NextBenchmark(crowd: crowd, others: numbers[2])
        try benchmark.open()
        let samples = try benchmark.measure(rounds: numbers[3])
        let what = "`next` → `matched`, \(numbers[2]) others waiting"
        row("\(what), median of \(samples.count)", "\((samples.median * 1000).text(2)) ms", "")
        row("\(what), 99 of 100 within", "\((samples.quantile(0.99) * 1000).text(2)) ms", "")
        try crowd.close()
    }
}

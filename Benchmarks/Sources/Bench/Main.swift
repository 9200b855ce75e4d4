@main
enum Main {
    static func main() {
        let n = Int(CommandLine.arguments[1])!
        var b = PairingBenchmark(waiting: n, pairings: Int(CommandLine.arguments[2])!)
        print(b.run())
    }
}

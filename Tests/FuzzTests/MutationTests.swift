import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs mutations of the stored inputs for a short time per target. This part of fuzzing needs no special build. `make
/// fuzz` searches longer and uses coverage to choose its inputs.
///
/// All runs use the same seed. Otherwise a random input could fail on a change that has nothing to do with the failure.
/// `CONFAB_MUTATION_SEED` sets another seed, and `scripts/test --all` uses a random one. `CONFAB_MUTATION_SECONDS` sets
/// the CPU time per target. An input that breaks a target is written to `Fuzz/Findings/<target>`, and `ReplayTests`
/// runs it from then on.
@Suite("Mutated inputs")
struct MutationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seed = environment["CONFAB_MUTATION_SEED"].flatMap { UInt64($0) } ?? 1
    private static let seconds = min(
        max(environment["CONFAB_MUTATION_SECONDS"].flatMap { Double($0) } ?? 1, 0), 3600)

    @Test("do not crash", arguments: FuzzTarget.all.map(\.name))
    func breakNothing(_ name: String) async throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let (seed, seconds) = (Self.seed, Self.seconds)
        let progress = try MutationProgress()
        defer { progress.remove() }
        let result = await #expect(processExitsWith: .success) {
            [name, seed = seed as UInt64, seconds = seconds as Double, path = progress.path as String] in
            guard let target = FuzzTarget.all.first(where: { $0.name == name }),
                let progress = try? MutationProgress(path: path)
            else { exit(1) }
            // An input that is processed without end counts as a crash.
            limitTime(to: seconds + 60)
            let mutator = Mutator(target, seed: seed)
            let end = clock() + Int(seconds * Double(CLOCKS_PER_SEC))
            var number = 0
            while clock() < end {
                progress.begin(number)
                do throws(BrokenProperty) {
                    try target.check(mutator.input(number))
                } catch {
                    // The child process exits at the first input that breaks a property. The parent process then
                    // reports that input.
                    Issue.record("\(error)")
                    exit(1)
                }
                number += 1
            }
        }
        guard let number = progress.number else {
            Issue.record("\(name): the child process ended before its first mutation")
            return
        }
        guard result == nil else {
            print("\(name): \(number + 1) mutations, seed \(seed)")
            return
        }
        // Something else may have ended the process, for example because the machine ran out of memory. Such an input is not kept.
        let confirmed = await #expect(processExitsWith: .failure) {
            [name, seed = seed as UInt64, number = number as Int] in
            guard let target = FuzzTarget.all.first(where: { $0.name == name }) else { exit(0) }
            limitTime(to: 60)
            do throws(BrokenProperty) { try target.check(Mutator(target, seed: seed).input(number)) } catch { exit(1) }
        }
        guard confirmed != nil else {
            Issue.record(
                "\(name): the process ended during mutation \(number), which breaks nothing when it is run alone")
            return
        }
        let finding = "Fuzz/Findings/\(name)/mutation-\(seed)-\(number)"
        let file = KeptInput.root.appending(path: finding)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(Mutator(target, seed: seed).input(number)).write(to: file)
        Issue.record(
            """
            Mutation \(number) of seed \(seed) breaks \(name). The input is in \(finding); \
            "scripts/test swift --filter Replay" runs it again. Commit it with the fix.
            """
        )
    }
}

/// Ends this process after so much CPU time. The limit of time on the clock, for an input that waits without end, is far longer,
/// because a process of a busy machine waits too.
private func limitTime(to seconds: Double) {
    alarm(UInt32(seconds * 20))
    var limit = rlimit(rlim_cur: rlim_t(seconds.rounded(.up)), rlim_max: rlim_t(seconds.rounded(.up)) + 1)
    #if canImport(Glibc)
    _ = setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    #else
    _ = setrlimit(RLIMIT_CPU, &limit)
    #endif
}

/// The number of the current mutation of a child process, in a file that survives a crash.
private struct MutationProgress {
    let path: String
    private let descriptor: CInt

    /// Creates the file, without a mutation number.
    init() throws {
        try self.init(path: FileManager.default.temporaryDirectory.appending(path: "confab-mutation-\(UUID())").path)
    }

    init(path: String) throws {
        self.path = path
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    func begin(_ number: Int) {
        _ = withUnsafeBytes(of: Int64(number)) { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    /// The mutation's number, or nil before the first mutation.
    var number: Int? {
        var number: Int64 = 0
        let count = withUnsafeMutableBytes(of: &number) { pread(descriptor, $0.baseAddress, $0.count, 0) }
        return count == MemoryLayout<Int64>.size ? Int(number) : nil
    }

    func remove() {
        close(descriptor)
        unlink(path)
    }
}

import Logging
import Synchronization

/// The log settings that can change while the server runs: the minimum level, and the secrets to redact.
public final class LogSettings: Sendable {
    /// The level's position in `Logger.Level.allCases`. Atomic, because every log statement reads it and must not
    /// wait for a lock.
    private let position: Atomic<Int>
    private let state: Mutex<Scrubber>

    init(_ level: Logger.Level, _ scrubber: Scrubber) {
        position = Atomic(Self.position(of: level))
        state = Mutex(scrubber)
    }

    public convenience init(configuration: ConfabConfiguration, project: ProjectFile) {
        self.init(configuration.log.level, Scrubber(configuration: configuration, project: project))
    }

    var level: Logger.Level { Logger.Level.allCases[position.load(ordering: .relaxed)] }
    var scrubber: Scrubber { state.withLock { $0 } }

    func apply(_ configuration: ConfabConfiguration, _ project: ProjectFile, _ stored: [StoredProject]) {
        position.store(Self.position(of: configuration.log.level), ordering: .relaxed)
        let scrubber = Scrubber(configuration: configuration, project: project, stored: stored)
        state.withLock { $0 = scrubber }
    }

    private static func position(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}

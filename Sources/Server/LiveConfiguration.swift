import Synchronization

/// The current configuration, which a reload replaces. The gateway has a copy on its event loop. All other code reads
/// `current` when it needs a setting.
final class LiveConfiguration: Sendable {
    private let state: Mutex<ConfabConfiguration>

    init(_ configuration: ConfabConfiguration) { state = Mutex(configuration) }

    var current: ConfabConfiguration { state.withLock { $0 } }

    func replace(_ configuration: ConfabConfiguration) { state.withLock { $0 = configuration } }
}

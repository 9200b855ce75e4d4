import Synchronization

/// The configuration in use, which a reload replaces. The gateway has its own copy on its event loop; everything else reads this
/// one at the moment of use.
final class LiveConfiguration: Sendable {
    private let state: Mutex<ConfabConfiguration>

    init(_ configuration: ConfabConfiguration) { state = Mutex(configuration) }

    var current: ConfabConfiguration { state.withLock { $0 } }

    func replace(_ configuration: ConfabConfiguration) { state.withLock { $0 = configuration } }
}

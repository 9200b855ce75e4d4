import Synchronization

/// What a server has opened while it starts, and how to close it if the start fails.
final class OpenedParts: Sendable {
    private let closings = Mutex<[@Sendable () async -> Void]>([])

    func add(_ close: @escaping @Sendable () async -> Void) { closings.withLock { $0.append(close) } }

    /// Closes everything, the last part first.
    func closeAll() async {
        let closings = closings.withLock { closings in
            defer { closings = [] }
            return closings
        }
        for close in closings.reversed() { await close() }
    }
}

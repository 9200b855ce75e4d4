import AppModel
import Dispatch
import Network

/// Tells the model about each change of the network, so that it does not wait for the next attempt.
@MainActor final class NetworkWatcher {
    private let monitor = NWPathMonitor()

    init(app: ApplicationModel) {
        monitor.pathUpdateHandler = { @Sendable [weak app] path in
            let isAvailable = path.status == .satisfied
            Task { @MainActor in app?.networkChanged(isAvailable: isAvailable) }
        }
        monitor.start(queue: .main)
    }
}

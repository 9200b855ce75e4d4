import AppModel
import Dispatch
import Network

/// Notifies the model of each network change, so that the client reconnects without waiting for its next attempt.
@MainActor final class NetworkWatcher {
    private let monitor = NWPathMonitor()

    init(app: ApplicationModel) {
        monitor.pathUpdateHandler = { @Sendable [weak app] path in
            let state = NetworkState(path.status)
            Task { @MainActor in app?.networkChanged(to: state) }
        }
        monitor.start(queue: .main)
    }
}

extension NetworkState {
    fileprivate init(_ status: NWPath.Status) {
        switch status {
        case .satisfied: self = .available
        case .unsatisfied: self = .unavailable
        case .requiresConnection: self = .onDemand
        @unknown default: self = .onDemand
        }
    }
}

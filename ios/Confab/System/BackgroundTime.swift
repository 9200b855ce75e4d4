import Foundation
import UIKit

/// Asks the system for the seconds in which the model ends a chat after the app is left.
@MainActor final class BackgroundTime {
    private var task = UIBackgroundTaskIdentifier.invalid

    func begin() {
        guard task == .invalid else { return }
        task = UIApplication.shared.beginBackgroundTask(withName: "Leave") { [weak self] in self?.end() }
    }

    func end() {
        guard task != .invalid else { return }
        UIApplication.shared.endBackgroundTask(task)
        task = .invalid
    }
}

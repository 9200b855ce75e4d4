import AppModel
import Foundation
import UIKit

/// The system's background time, in which the model ends a chat after the app leaves the foreground.
@MainActor final class DeviceBackground: BackgroundControl {
    var onExpired: (@MainActor () -> Void)?
    private var task = UIBackgroundTaskIdentifier.invalid

    func begin() {
        task = UIApplication.shared.beginBackgroundTask(withName: "Leave") { [weak self] in self?.onExpired?() }
    }

    func end() { UIApplication.shared.endBackgroundTask(task) }
}

import AppModel
import Foundation
import UIKit

/// Notifies the model of the device's temperature and low-power mode, now and whenever they change.
@MainActor final class HeatWatcher {
    init(app: ApplicationModel) {
        let tell: @Sendable () -> Void = { [weak app] in
            Task { @MainActor in
                let process = ProcessInfo.processInfo
                app?.deviceChanged(ThermalState(process.thermalState), isLowPower: process.isLowPowerModeEnabled)
            }
        }
        // Read the state once now, because the system reports changes only after the first read.
        tell()
        for name in [ProcessInfo.thermalStateDidChangeNotification, .NSProcessInfoPowerStateDidChange] {
            _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { @Sendable _ in tell() }
        }
    }
}

extension ThermalState {
    fileprivate init(_ state: ProcessInfo.ThermalState) {
        switch state {
        case .nominal: self = .nominal
        case .fair: self = .fair
        case .serious: self = .serious
        case .critical: self = .critical
        @unknown default: self = .nominal
        }
    }
}

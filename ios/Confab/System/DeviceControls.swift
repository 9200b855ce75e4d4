import AppModel
import Foundation
import SwiftUI
import UIKit
import UserNotifications

/// Posts VoiceOver announcements, and notifications for a user whose device is locked.
@MainActor final class DeviceAnnouncer: Announcer {
    func announce(_ text: String) { AccessibilityNotification.Announcement(text).post() }

    func prepareToNotify() {
        UNUserNotificationCenter.current().requestAuthorization(options: [.alert]) { @Sendable _, _ in }
    }

    func notify(_ text: String) {
        let content = UNMutableNotificationContent()
        content.body = text
        let request = UNNotificationRequest(identifier: UUID().uuidString, content: content, trigger: nil)
        UNUserNotificationCenter.current().add(request)
    }
}

/// Keeps the screen on during conversations, and turns it off while the phone is at the ear.
@MainActor final class DeviceScreen: ScreenControl {
    var isScreenKeptAwake = false {
        didSet { UIApplication.shared.isIdleTimerDisabled = isScreenKeptAwake }
    }
    var isDarkAtEar = false {
        didSet { UIDevice.current.isProximityMonitoringEnabled = isDarkAtEar }
    }
}

/// Stores settings on this device. Confab stores secrets in the keychain instead.
@MainActor final class DeviceSettingsStore: SettingsStore {
    func data(for key: String) -> Data? { UserDefaults.standard.data(forKey: key) }
    func set(_ data: Data?, for key: String) { UserDefaults.standard.set(data, forKey: key) }
}

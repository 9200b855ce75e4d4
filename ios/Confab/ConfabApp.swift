import AVFoundation
import AppModel
import Confab
import Foundation
import SwiftUI
import UIKit
import VisionKit

/// The app, with one window that shows the current screen of the model.
@main struct ConfabApp: App {
    @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

    var body: some Scene {
        WindowGroup { RootView(app: delegate.app) }
    }
}

/// Creates the model at launch instead of with the first window, because a push may launch the app without a window.
@MainActor final class AppDelegate: NSObject {
    let app: ApplicationModel
    private let calls = CallKitBridge()
    private let network: NetworkWatcher
    private let heat: HeatWatcher
    #if PUSH
    private var pushes: PushBridge?
    #endif

    override init() {
        let location = DeviceLocation()
        let platform = Platform(
            permissions: DevicePermissions(location: location), location: location, calls: calls, ringing: CallRing(),
            audio: CallAudio(), announcer: DeviceAnnouncer(), screen: DeviceScreen(),
            settings: DeviceSettingsStore(), clock: SystemClock(), background: DeviceBackground(),
            canScan: DataScannerViewController.isSupported,
            cameraRunsInSmallWindow: AVCaptureSession().isMultitaskingCameraAccessSupported)
        #if ROULETTE
        let hasRoulette = true
        #else
        let hasRoulette = false
        #endif
        app = ApplicationModel(
            platform: platform, server: ClientServer(media: WebRTCEngine()), hasRoulette: hasRoulette)
        network = NetworkWatcher(app: app)
        heat = HeatWatcher(app: app)
        super.init()
    }
}

extension AppDelegate: UIApplicationDelegate {
    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool {
        calls.prepare()
        #if PUSH
        if app.receivesPushes { pushes = PushBridge(calls: calls) }
        #endif
        app.calls.isLocked = !application.isProtectedDataAvailable
        return true
    }

    func applicationProtectedDataWillBecomeUnavailable(_ application: UIApplication) { app.calls.isLocked = true }
    func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication) { app.calls.isLocked = false }
}

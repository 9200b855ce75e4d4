import AppModel
import Confab
import ConfabHeadless
import Foundation
import Observation

/// The app on a simulated device, online as a person of its own.
@MainActor final class Phone {
    let app: ApplicationModel
    let device = SimulatedDevice(at: DevicePosition(latitude: 51.5074, longitude: -0.1278))

    /// - Parameters:
    ///   - files: what the camera sees and the microphone hears.
    ///   - token: the token of the device for pushes; nil for none.
    init(_ server: TestServer, _ name: String, publishing files: [URL] = [], token: String? = nil) async throws {
        app = ApplicationModel(
            platform: device.platform, server: ClientServer(media: PhoneEngine(publishing: files)), hasRoulette: true)
        if let token { device.calls.onEvent?(.pushToken(token)) }
        app.welcome.address = "http://127.0.0.1:\(server.port)"
        app.welcome.submit()
        try await until("the app asks for the name") { self.app.stage == .aboutYou }
        app.aboutYou?.name = name
        app.aboutYou?.isRulesAgreed = true
        app.aboutYou?.submit()
        try await until("the app is online") { self.app.calls.coordinator.isOnline }
    }

    /// Disconnects.
    func turnOff() { app.settings.changeServer() }

    /// Shares the location, and calls a person as soon as the list has them.
    func call(_ name: String, video: Bool = true) async throws {
        app.nearby.share()
        try await until("\(name) is listed") { self.row(name)?.canCall == true }
        if let row = row(name) { app.nearby.call(row.id, video: video) }
    }

    private func row(_ name: String) -> NearbyModel.Row? { app.nearby.rows.first { $0.title == name } }

    /// The names of the calls on the system's screen, with their states.
    var shown: [String] { device.calls.calls.map { "\($0.name ?? "nobody") \($0.state)" } }

    /// Waits until both people are there, the other's video too, and sound flows.
    func talks(with name: String) async throws {
        try await until("there is a call with \(name)") {
            let call = self.app.calls.coordinator.current
            return call?.person?.name == name && call?.phase == .active && self.app.calls.partner != nil
                && self.device.audio.isSounding
        }
    }

    /// Waits until what the app or the device shows makes a condition true.
    func until(_ what: String, _ holds: @escaping @MainActor () -> Bool) async throws {
        while true {
            let (changes, change) = AsyncStream.makeStream(of: Void.self)
            let isTrue = withObservationTracking {
                holds()
            } onChange: {
                change.yield()
            }
            if isTrue { return }
            for await _ in changes { break }
            guard !Task.isCancelled else { throw Missing(description: "not yet: \(what). \(screen)") }
        }
    }

    private var screen: String {
        "The screen: \(app.lines.map(\.description)). The system: \(shown), \(device.calls.faults)"
    }
}

/// The engine of a phone, which has a screen too: the camera's film, without the sound.
private final class PhoneEngine: MediaEngine {
    private let files: [URL]
    private let engine: FileEngine

    init(publishing files: [URL]) { (self.files, engine) = (files, FileEngine(publishing: files)) }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        try await engine.makePeer(configuration)
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        guard request == .screen, let film = files.first else { return try await engine.capture(request) }
        return try await engine.capture(.file(film))
    }
}

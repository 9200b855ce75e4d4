import Foundation

/// A request from the app to the SDK. One adapter carries out these requests, so the screens' tests need no network.
public enum AppRequest: Equatable, Sendable {
    case check(URL)
    /// Connects to a server and closes any earlier connection.
    case connect(URL, name: String)
    case retry
    /// The device switched networks, or lost its network.
    case networkChanged(isAvailable: Bool)
    /// The device's temperature or its low-power mode changed.
    case deviceChanged(ThermalState, isLowPower: Bool)
    case leave
    case roulette(RouletteRequest)
    case nearby(NearbyRequest)
    case people(PeopleRequest)
    case room(RoomRequest)
    case settings(SettingsRequest)
    /// An effect of ``CallCoordinator`` that concerns the server or the media.
    case call(CallEffect)
    case callMedia(CallMediaRequest)
}

/// An event from the SDK.
public enum AppEvent: Sendable {
    case checked(URL, ServerHealth)
    case line(ConnectionState)
    case nameRefused
    case roulette(RouletteEvent)
    case nearby(NearbyEvent)
    case people(PeopleEvent)
    case room(RoomEvent)
    case settings(SettingsEvent)
    case call(CallServerEvent)
    case media(CallMediaEvent)
    case capture(CaptureEvent)
    case keep(KeepEvent)
}

/// An event of this device's camera or screen share.
public enum CaptureEvent: Equatable, Sendable {
    /// The system took the camera away, or returned it.
    case cameraInterrupted(Bool)
    case cameraFaces(CameraFacing)
    /// The screen share has started, so others can see the screen.
    case shareStarted
    /// The screen share failed to start, or ended without a request of the user.
    case shareEnded(CallTrouble)
}

/// The state of the connection to the server, as the app shows it.
public enum ConnectionState: Equatable, Sendable {
    case idle, connecting
    /// Connected. `isNew` is false if the connection resumed its previous session.
    case online(isNew: Bool)
    case reconnecting
    case offline(OfflineCause)
    case closed(CallTrouble?)
}

/// Why the app is not connected to the server.
public enum OfflineCause: Equatable, Sendable {
    case noNetwork, unreachable, tooOld
    case refused(CallTrouble)
}

/// Carries out the requests of the app and reports events of the SDK. Tests replace it.
@MainActor public protocol AppServer: AnyObject {
    var onEvent: (@MainActor (AppEvent) -> Void)? { get set }
    func perform(_ request: AppRequest)
}

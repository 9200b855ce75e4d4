import Foundation

/// What the app asks of the SDK. One adapter translates these requests, so that screens need no network in their tests.
public enum AppRequest: Equatable, Sendable {
    case check(URL)
    /// Connects to a server. An earlier connection ends.
    case connect(URL, name: String)
    case retry
    /// The device's network changed, or it has none.
    case networkChanged(isAvailable: Bool)
    /// The device became hot, or cooled down, or saves power.
    case deviceChanged(ThermalState, isLowPower: Bool)
    case leave
    case roulette(RouletteRequest)
    case nearby(NearbyRequest)
    case people(PeopleRequest)
    case room(RoomRequest)
    case settings(SettingsRequest)
    /// The effects of ``CallCoordinator`` that are for the server and the media.
    case call(CallEffect)
    case callMedia(CallMediaRequest)
}

/// What the SDK says.
public enum AppEvent: Sendable {
    case checked(URL, ServerHealth)
    case line(LineState)
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

/// What happens to the camera and the screen of this device.
public enum CaptureEvent: Equatable, Sendable {
    /// The system took the camera away, or gave it back.
    case cameraInterrupted(Bool)
    case cameraFaces(CameraFacing)
    /// Others see the screen now.
    case shareStarted
    /// The screen is not shared, or no longer, and the person here did not end it.
    case shareEnded(CallTrouble)
}

/// The connection to the server, as the person is told about it.
public enum LineState: Equatable, Sendable {
    case idle, connecting
    /// `isNew` is false after a connection that resumed.
    case online(isNew: Bool)
    case reconnecting
    case offline(OfflineCause)
    case closed(CallTrouble?)
}

public enum OfflineCause: Equatable, Sendable {
    case noNetwork, unreachable, tooOld
    case refused(CallTrouble)
}

@MainActor public protocol AppServer: AnyObject {
    var onEvent: (@MainActor (AppEvent) -> Void)? { get set }
    func perform(_ request: AppRequest)
}

import Confab
import Foundation

/// A request from the app to the SDK. ``ClientServer`` carries out all requests. Tests replace ``ClientServer``, so
/// they need no network.
public enum AppRequest: Equatable, Sendable {
    case check(URL)
    /// Connects to a server. Closes the connection to any other server first.
    case connect(URL, name: String)
    case retry
    /// The device's network changed. `isAvailable` is false if the device has no network now.
    case networkChanged(isAvailable: Bool)
    /// The device's temperature or its low-power mode changed.
    case deviceChanged(ThermalState, isLowPower: Bool)
    case leave
    case roulette(RouletteRequest)
    case nearby(NearbyRequest)
    case people(PeopleRequest)
    case room(RoomRequest)
    case settings(SettingsRequest)
    case call(CallRequest)
    case callMedia(CallMediaRequest)
}

/// An event from the SDK.
public enum AppEvent: Sendable {
    /// The result of checking a server: why it cannot be used, or nil if it can.
    case checked(URL, ConfabError?)
    /// The state of the connection. `isNew` is true if a new connection came online, and false if the connection
    /// resumed or is not online.
    case line(ConfabClient.State, isNew: Bool = false)
    case nameRefused
    case roulette(RouletteEvent)
    case nearby(Result<Nearby.Page, ConfabError>)
    case people(PeopleEvent)
    case room(RoomEvent)
    case settings(SettingsEvent)
    case call(CallServerEvent)
    case media(CallMediaEvent)
    case capture(CaptureEvent)
    case contacts(Contacts.Event)
    /// A request to keep in touch with the other person of a call failed.
    case keepFailed(CallID, ConfabError)
}

/// An event of this device's camera or screen share.
public enum CaptureEvent: Equatable, Sendable {
    /// True when the system took the camera away from the app, false when it gave the camera back.
    case cameraInterrupted(Bool)
    case cameraFaces(CameraFacing)
    /// The screen share has started, so others can see the screen.
    case shareStarted
    /// The screen share failed to start, or ended without a request from the user.
    case shareEnded(ConfabError)
}

/// Carries out the requests of the app and reports events of the SDK. Tests replace it.
@MainActor public protocol AppServer: AnyObject {
    var onEvent: (@MainActor (AppEvent) -> Void)? { get set }
    func perform(_ request: AppRequest)
}

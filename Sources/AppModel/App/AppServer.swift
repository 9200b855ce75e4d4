import Foundation

/// What the app asks of the SDK. One adapter translates these requests, so that screens need no network in their tests.
public enum AppRequest: Equatable, Sendable {
    case check(URL)
    /// Connects to a server. An earlier connection ends.
    case connect(URL, name: String)
    case retry
    /// The device's network changed, or it has none.
    case networkChanged(isAvailable: Bool)
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

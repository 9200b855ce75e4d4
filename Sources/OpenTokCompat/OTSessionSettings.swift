import Confab
import Foundation

/// Settings of a session.
@preconcurrency @MainActor open class OTSessionSettings: NSObject {
    /// The client of the session; nil for ``OTConfab/client``. OpenTok does not have this setting.
    public var client: ConfabClient?
    /// The engine that sends the frames of capturers; nil for ``OTConfab/frameEngine``. OpenTok does not have this
    /// setting.
    public var frameEngine: (any OTFrameEngine)?
    /// Whether to suppress the delegate's notifications of created and destroyed connections.
    public var connectionEventsSuppressed = false
    /// Not supported, because the server chooses the ICE servers. Connecting reports error 1011 if this asks for
    /// custom servers or for relay only; otherwise it has no effect.
    public var iceConfig: OTSessionICEConfig?
    /// Has no effect, as in OpenTok's SDK: the client already has the server's address.
    public var apiURL: URL?
    /// The URL of a proxy. Connecting with one reports error 1011, because the system's settings choose the proxy.
    public var proxyURL: String?
    /// Has no effect: a Confab server has one address.
    public var ipWhitelist = false
    /// Has no effect: in routed sessions, a client always has one peer connection in each direction for all its
    /// streams.
    public var singlePeerConnection = false
    /// Has no effect: sessions do not move to another server.
    public var sessionMigration = false

    /// The error for settings that are not supported; nil if there is none.
    var refusal: OTError? {
        if proxyURL != nil {
            return OTError(
                .nullOrInvalidParameter, "Sessions have no proxy setting. Remove proxyURL, and set it in the system."
            )
        }
        guard let iceConfig, iceConfig.transportPolicy == .relay || iceConfig.includeServers == .custom else {
            return nil
        }
        return OTError(
            .nullOrInvalidParameter, "The server chooses the ICE servers. Remove iceConfig, and configure the server.")
    }
}

/// Which ICE servers to use.
public enum OTSessionICEIncludeServers: Int32, Sendable {
    /// The ICE servers of the server and of the application.
    case all
    /// Only the ICE servers of the application.
    case custom
}

/// Which paths media may take.
public enum OTSessionICETransportPolicy: Int32, Sendable {
    /// Any path.
    case all
    /// Only paths through TURN.
    case relay
}

/// ICE servers of the application. They are not supported: the server's configuration contains the ICE servers.
@preconcurrency @MainActor open class OTSessionICEConfig: NSObject {
    /// Which servers to use. Connecting with `custom` reports error 1011.
    public var includeServers = OTSessionICEIncludeServers.all
    /// Which paths media may take. Connecting with `relay` reports error 1011.
    public var transportPolicy = OTSessionICETransportPolicy.all
    /// Always empty.
    public var customIceServers: [Any]? { [] }
    /// Returns the number of servers that can be added: none.
    public class func maxTURNServersLimit() -> Int { 0 }

    /// Always reports error 1011 and adds nothing.
    public func addICEServer(
        withURL url: String, userName: String, credential: String, error: UnsafeMutablePointer<NSError?>?
    ) {
        error?.pointee = OTError(
            .nullOrInvalidParameter, "The server chooses the ICE servers. Add this one to the server's configuration.")
    }
}

import Confab
import Foundation

/// Settings of a session.
@preconcurrency @MainActor open class OTSessionSettings: NSObject {
    /// The client of the session; nil for ``OTConfab/client``. OpenTok does not have this setting.
    public var client: ConfabClient?
    /// What sends the frames of capturers; nil for ``OTConfab/frameEngine``. OpenTok does not have this setting.
    public var frameEngine: (any OTFrameEngine)?
    /// Whether the delegate is not told of connections that come and go.
    public var connectionEventsSuppressed = false
    /// The server tells clients its ICE servers. With a configuration that demands others, connecting reports 1011.
    public var iceConfig: OTSessionICEConfig?
    /// Has no effect, as in OpenTok's SDK: the client knows its server.
    public var apiURL: URL?
    /// Connecting with a proxy reports 1011: the system's settings decide.
    public var proxyURL: String?
    /// Has no effect: a Confab server has one address.
    public var ipWhitelist = false
    /// Has no effect: a client has one peer connection in each direction for all its streams anyway.
    public var singlePeerConnection = false
    /// Has no effect: sessions do not move to another server.
    public var sessionMigration = false

    /// Why a session with these settings would not be what the application asked for; nil if it would.
    var refusal: OTError? {
        if proxyURL != nil {
            return OTError(
                .nullOrInvalidParameter, "A session has no proxy of its own. Remove proxyURL, and set it in the system."
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
    /// Those of the server and of the application.
    case all
    /// Only those of the application.
    case custom
}

/// Which ways media may go.
public enum OTSessionICETransportPolicy: Int32, Sendable {
    /// Any.
    case all
    /// Only through TURN.
    case relay
}

/// ICE servers of the application. There are none: the server's configuration has them.
@preconcurrency @MainActor open class OTSessionICEConfig: NSObject {
    /// Which servers to use. `custom` cannot be connected.
    public var includeServers = OTSessionICEIncludeServers.all
    /// Which ways media may go. `relay` cannot be connected.
    public var transportPolicy = OTSessionICETransportPolicy.all
    /// Always empty.
    public var customIceServers: [Any]? { [] }
    /// The number of servers that can be added: none.
    public class func maxTURNServersLimit() -> Int { 0 }

    /// Always reports 1011 and adds nothing.
    public func addICEServer(
        withURL url: String, userName: String, credential: String, error: UnsafeMutablePointer<NSError?>?
    ) {
        error?.pointee = OTError(
            .nullOrInvalidParameter, "The server chooses the ICE servers. Add this one to the server's configuration.")
    }
}

import Confab
import Foundation

// Converts values of CallKit and PushKit to types that do not depend on these frameworks.

extension SystemReportResult {
    /// Converts the system's answer to the report of an incoming call.
    ///
    /// - Parameter code: the code of the system's error; nil if the call was accepted.
    public init(errorCode code: Int?) {
        self =
            switch code {
            case nil: .ok
            // A call with this id already exists.
            case 2: .known
            // Do Not Disturb, the block list, and the filter for sensitive participants.
            case 3, 4, 7: .filtered
            default: .refused
            }
    }
}

extension CallCoordinator {
    /// Returns whether CallKit may be used in this region. Apps must not use CallKit in China. If the region is unknown
    /// (nil), returns true.
    public static func allowsSystem(inRegion region: String?) -> Bool { region != "CN" }
}

extension CallEvent {
    /// Converts a push from the server. Unreadable pushes are passed on too: the system terminates apps that do not
    /// report a push.
    public static func push(payload: [AnyHashable: Any], push: PushID?) -> CallEvent {
        .push(callID: payload["callId"] as? String ?? "", push: push)
    }

    /// Converts PushKit's token to hexadecimal.
    public static func pushToken(bytes: Data) -> CallEvent {
        .pushToken(bytes.map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }.joined())
    }
}

/// The features of the system's call screen that this app's calls use.
public enum CallScreenFeatures {
    public static let hasVideo = true
    /// One active call and one waiting call. Each has its own group, because calls cannot be merged.
    public static let maxGroups = 2
    public static let maxCallsPerGroup = 1
    /// Whether this app's calls appear in the system's list of recent calls, so that people can call back from there.
    public static let isInRecents = true
    /// The name of the SF Symbol shown beside the app's name.
    public static let symbol = "bubble.left.and.bubble.right.fill"
}

/// A call as the system's call screen shows it.
public struct ShownCall: Equatable, Sendable {
    public var name: String
    /// The id of the person to call back from the system's list of recent calls; nil if the call cannot be called
    /// back.
    public var personID: String?
    public var hasVideo: Bool
    /// Whether the call screen offers to hold the call.
    public let canBeHeld = true
    /// Whether the call screen offers to merge the call, which the app does not support.
    public let canBeGrouped = false
    /// Whether the call screen offers to send DTMF tones, which the app does not support.
    public let hasTones = false

    /// Creates the description of a call with this person.
    ///
    /// - Parameter person: nil while the call is known only from a push.
    public init(_ person: Person?, hasVideo: Bool) {
        (name, personID, self.hasVideo) = (person?.name ?? Person.unknownName, person.map { "\($0.id)" }, hasVideo)
    }
}

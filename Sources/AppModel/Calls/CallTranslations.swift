import Foundation

// What the system says, without its types.

extension SystemReportResult {
    /// The answer to a report of an incoming call.
    ///
    /// - Parameter code: The code of the system's error; nil if the call was accepted.
    public init(errorCode code: Int?) {
        self =
            switch code {
            case nil: .ok
            // The system knows the id.
            case 2: .known
            // Do not disturb, the list of blocked people, and a filter of sensitive participants.
            case 3, 4, 7: .filtered
            default: .refused
            }
    }
}

extension CallCoordinator {
    /// Whether the system's call screen may be used. In China it must not be active.
    public static func allowsSystem(inRegion region: String?) -> Bool { region != "CN" }
}

extension CallEvent {
    /// A push of the server. One that cannot be understood is passed on too: the system ends apps that do not report a push.
    public static func push(payload: [AnyHashable: Any], push: PushID?) -> CallEvent {
        .push(callID: payload["callId"] as? String ?? "", push: push)
    }

    /// The bytes of PushKit's token.
    public static func pushToken(bytes: Data) -> CallEvent {
        .pushToken(bytes.map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }.joined())
    }
}

/// What the system's call screen can do with this app's calls.
public enum CallScreenFeatures {
    public static let hasVideo = true
    /// One active call and one that waits. Each is a group of its own: calls are not merged.
    public static let maxGroups = 2
    public static let maxCallsPerGroup = 1
    /// Whether the system's list of recent calls has those of this app, from where people can be called back.
    public static let isInRecents = true
    /// The name of the symbol beside the app's name.
    public static let symbol = "bubble.left.and.bubble.right.fill"
}

/// A call as the system's call screen shows it.
public struct ShownCall: Equatable, Sendable {
    public var name: String
    /// With what the system's list of recent calls calls back; nil if it cannot.
    public var personID: String?
    public var hasVideo: Bool
    /// What the person can do with it there. Calls have no tones, and are not merged.
    public let canBeHeld = true
    public let canBeGrouped = false
    public let hasTones = false

    /// - Parameter person: nil while only a push told about the call.
    public init(_ person: CallPerson?, hasVideo: Bool) {
        (name, personID, self.hasVideo) = (person?.name ?? CallPerson.unknownName, person?.id, hasVideo)
    }
}

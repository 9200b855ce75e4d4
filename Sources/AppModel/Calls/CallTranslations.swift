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

import Confab
import Foundation

/// An error with a number of OpenTok's: an ``OTSessionErrorCode``, ``OTPublisherErrorCode`` or ``OTSubscriberErrorCode``,
/// depending on the domain. `localizedDescription` is a sentence that says what to do.
public final class OTError: NSError, @unchecked Sendable {
    /// The domain of errors with an ``OTSessionErrorCode``.
    public static let sessionDomain = "OTSessionErrorDomain"
    /// The domain of errors with an ``OTPublisherErrorCode``.
    public static let publisherDomain = "OTPublisherErrorDomain"
    /// The domain of errors with an ``OTSubscriberErrorCode``.
    public static let subscriberDomain = "OTSubscriberErrorDomain"

    /// The error of the SDK or the server, with a stable code; nil if the call was refused before it reached the SDK.
    public var cause: ConfabError? { userInfo[NSUnderlyingErrorKey] as? ConfabError }

    convenience init(_ code: OTSessionErrorCode, _ message: String) {
        self.init(domain: Self.sessionDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    /// - Parameter fallback: the number if ``ErrorNumbers`` has none for a session.
    convenience init(session error: ConfabError, otherwise fallback: OTSessionErrorCode) {
        let code = ErrorNumbers(error.code)?.session ?? fallback
        self.init(error, Self.sessionDomain, code.rawValue)
    }

    convenience init(publisher error: ConfabError) {
        self.init(error, Self.publisherDomain, (ErrorNumbers(error.code)?.publisher ?? .internalError).rawValue)
    }

    convenience init(subscriber error: ConfabError) {
        self.init(error, Self.subscriberDomain, (ErrorNumbers(error.code)?.subscriber ?? .internalError).rawValue)
    }

    private convenience init(_ error: ConfabError, _ domain: String, _ code: Int) {
        let details: [String: Any] = [NSLocalizedDescriptionKey: error.message, NSUnderlyingErrorKey: error]
        self.init(domain: domain, code: code, userInfo: details)
    }
}

/// What went wrong in a session. Only the numbers that can occur are declared.
public enum OTSessionErrorCode: Int, Sendable {
    /// The token is wrong, expired or revoked, or this person is banned.
    case authorizationFailure = 1004
    /// There is no such session.
    case invalidSession = 1005
    /// The server cannot be reached.
    case connectionFailed = 1006
    /// The session is not connected.
    case notConnected = 1010
    /// An argument is missing or cannot be used.
    case nullOrInvalidParameter = 1011
    /// The call is not possible in this state.
    case illegalState = 1015
    /// The connection was lost and did not come back in time.
    case connectionDropped = 1022
    /// The server does not accept this version of the client.
    case connectionRefused = 1023
    /// The session or the server has as many connections as it may have.
    case connectionLimitExceeded = 1027
    /// This subscriber does not belong to the session.
    case subscriberNotFound = 1112
    /// This publisher does not belong to the session.
    case publisherNotFound = 1113
    /// A signal has more data than 8 KiB.
    case signalDataTooLong = 1413
    /// The type of a signal is too long, or has characters that are not allowed.
    case invalidSignalType = 1461
    /// A connection could not be removed.
    case unableToForceDisconnect = 1520
    /// A stream could not be muted.
    case unableToForceMute = 1540
    /// A signal could not be sent.
    case unableToSendSignal = 1550
    /// An error inside the SDK or the server.
    case internalError = 2000
}

/// What went wrong with a publisher. Only the numbers that can occur are declared.
public enum OTPublisherErrorCode: Int, Sendable {
    /// The session is not connected.
    case sessionDisconnected = 1010
    /// Media cannot be captured or sent.
    case webRTCError = 1610
    /// Any other error.
    case internalError = 2000
}

/// What went wrong with a subscriber. Only the numbers that can occur are declared.
public enum OTSubscriberErrorCode: Int, Sendable {
    /// The session is not connected.
    case sessionDisconnected = 1010
    /// Media cannot be received.
    case webRTCError = 1600
    /// There is no such stream any longer.
    case streamNotFound = 1604
    /// The server cannot send this client more media.
    case streamLimitExceeded = 1605
    /// Any other error.
    case internalError = 2000
}

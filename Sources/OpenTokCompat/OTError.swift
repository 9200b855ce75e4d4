import Confab
import Foundation

/// An error with one of OpenTok's numbers: an ``OTSessionErrorCode``, ``OTPublisherErrorCode`` or
/// ``OTSubscriberErrorCode``, depending on the domain. `localizedDescription` is a sentence that says what to do.
public final class OTError: NSError, @unchecked Sendable {
    /// The domain of errors with an ``OTSessionErrorCode``.
    public static let sessionDomain = "OTSessionErrorDomain"
    /// The domain of errors with an ``OTPublisherErrorCode``.
    public static let publisherDomain = "OTPublisherErrorDomain"
    /// The domain of errors with an ``OTSubscriberErrorCode``.
    public static let subscriberDomain = "OTSubscriberErrorDomain"

    /// The error of the SDK or the server, with a stable code; nil if the call was rejected before it reached the SDK.
    public var cause: ConfabError? { userInfo[NSUnderlyingErrorKey] as? ConfabError }

    convenience init(_ code: OTSessionErrorCode, _ message: String) {
        self.init(domain: Self.sessionDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    convenience init(_ code: OTPublisherErrorCode, _ message: String) {
        self.init(domain: Self.publisherDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    convenience init(_ code: OTSubscriberErrorCode, _ message: String) {
        self.init(domain: Self.subscriberDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    /// Creates the error of a session.
    ///
    /// - Parameter fallback: the number if ``ErrorNumbers`` has none for a session.
    convenience init(session error: ConfabError, otherwise fallback: OTSessionErrorCode) {
        let code = ErrorNumbers(error.code)?.session ?? fallback
        self.init(error, Self.sessionDomain, code.rawValue)
    }

    convenience init(publisher error: ConfabError) {
        self.init(
            error, Self.publisherDomain, (ErrorNumbers(error.code)?.publisher ?? .publisherInternalError).rawValue)
    }

    convenience init(subscriber error: ConfabError) {
        self.init(
            error, Self.subscriberDomain, (ErrorNumbers(error.code)?.subscriber ?? .subscriberInternalError).rawValue)
    }

    private convenience init(_ error: ConfabError, _ domain: String, _ code: Int) {
        let details: [String: Any] = [NSLocalizedDescriptionKey: error.message, NSUnderlyingErrorKey: error]
        self.init(domain: domain, code: code, userInfo: details)
    }
}

/// The error numbers of a session. The names are those that Swift gives to OpenTok's constants.
public enum OTSessionErrorCode: Int, Sendable {
    /// No error. Never reported.
    case sessionSuccess = 0
    /// The token is wrong, expired or revoked, or this person is banned.
    case authorizationFailure = 1004
    /// There is no such session.
    case errorInvalidSession = 1005
    /// The server cannot be reached.
    case connectionFailed = 1006
    /// The session is not connected.
    case notConnected = 1010
    /// An argument or a setting is missing or cannot be used.
    case nullOrInvalidParameter = 1011
    /// The call is not possible in this state.
    case sessionIllegalState = 1015
    /// The state of the session is unknown. Never reported.
    case sessionStateFailed = 1020
    /// Connecting took too long. Never reported: ``connectionFailed`` is used instead.
    case sessionConnectionTimeout = 1021
    /// The connection was lost and was not restored in time.
    case connectionDropped = 1022
    /// The server does not accept this version of the client.
    case connectionRefused = 1023
    /// The country is blocked. Never reported.
    case sessionBlockedCountry = 1026
    /// The session or the server has reached its maximum number of connections.
    case sessionConnectionLimitExceeded = 1027
    /// This subscriber does not belong to the session.
    case sessionSubscriberNotFound = 1112
    /// This publisher does not belong to the session.
    case sessionPublisherNotFound = 1113
    /// A relayed session is full. Never reported: ``sessionConnectionLimitExceeded`` is used instead.
    case p2PSessionMaxParticipants = 1403
    /// The data of a signal is larger than 8 KiB.
    case sessionSignalDataTooLong = 1413
    /// The type of a signal is too long, or contains characters that are not allowed.
    case sessionInvalidSignalType = 1461
    /// The session has no server. Never reported.
    case noMessagingServer = 1503
    /// A connection could not be removed.
    case sessionUnableToForceDisconnect = 1520
    /// A stream could not be muted.
    case sessionUnableToForceMute = 1540
    /// A signal could not be sent.
    case sessionUnableToSendSignal = 1550
    /// An error inside the SDK or the server.
    case sessionInternalError = 2000
    /// The session is encrypted end to end, and there is no secret. Never reported.
    case sessionEncryptionSecretMissing = 6000
    /// The application set an encryption secret, but end-to-end encryption is not supported.
    case sessionInvalidEncryptionSecret = 6004
}

/// The error numbers of a publisher.
public enum OTPublisherErrorCode: Int, Sendable {
    /// No error. Never reported.
    case publisherSuccess = 0
    /// The session is not connected.
    case sessionDisconnected = 1010
    /// Media cannot be captured or sent.
    case publisherWebRTCError = 1610
    /// Any other error.
    case publisherInternalError = 2000
    /// The application requested end-to-end encryption, which is not supported.
    case publisherEncryptionInternalError = 6001
}

/// The error numbers of a subscriber.
public enum OTSubscriberErrorCode: Int, Sendable {
    /// No error. Never reported.
    case subscriberSuccess = 0
    /// The session is not connected.
    case subscriberSessionDisconnected = 1010
    /// Media took too long to arrive. Never reported: the SDK retries automatically.
    case connectionTimedOut = 1542
    /// Media cannot be received.
    case subscriberWebRTCError = 1600
    /// The stream no longer exists.
    case subscriberServerCannotFindStream = 1604
    /// The server cannot send this client more media.
    case subscriberStreamLimitExceeded = 1605
    /// Any other error.
    case subscriberInternalError = 2000
    /// The application requested end-to-end encryption, which is not supported.
    case subscriberDecryptionInternalError = 6002
    /// The publisher uses a different encryption secret. Never reported.
    case encryptionSecretMismatch = 6003
}

import Confab

/// OpenTok's numbers for an error code of Confab. Where a number is nil, the operation decides: a signal that may not be sent is
/// `unableToSendSignal`, for example.
struct ErrorNumbers {
    var session: OTSessionErrorCode?
    var publisher: OTPublisherErrorCode?
    var subscriber: OTSubscriberErrorCode?

    /// - Returns: nil for a code without numbers of its own.
    init?(_ code: ConfabError.Code) {
        // Whatever is wrong with a token.
        let key = code.rawValue.hasPrefix("token_") ? .tokenExpired : code
        guard let numbers = Self.table[key] else { return nil }
        self = numbers
    }

    private init(
        _ session: OTSessionErrorCode?, _ publisher: OTPublisherErrorCode? = nil,
        _ subscriber: OTSubscriberErrorCode? = nil
    ) {
        (self.session, self.publisher, self.subscriber) = (session, publisher, subscriber)
    }

    private static let table: [ConfabError.Code: ErrorNumbers] = [
        .tokenExpired: Self(.authorizationFailure),
        .banned: Self(.authorizationFailure),
        .credentialFailed: Self(.authorizationFailure),
        .sessionInvalid: Self(.invalidSession),
        .connectFailed: Self(.connectionFailed, .sessionDisconnected, .sessionDisconnected),
        .versionUnsupported: Self(.connectionRefused),
        .sessionFull: Self(.connectionLimitExceeded),
        .tooManyConnections: Self(.connectionLimitExceeded),
        .alreadyJoined: Self(.illegalState),
        .serverURLInvalid: Self(.nullOrInvalidParameter),
        .notJoined: Self(.notConnected, .sessionDisconnected, .sessionDisconnected),
        .notConnected: Self(.notConnected, .sessionDisconnected, .sessionDisconnected),
        .left: Self(.notConnected, .sessionDisconnected, .sessionDisconnected),
        .connectionLost: Self(.connectionDropped, .sessionDisconnected, .sessionDisconnected),
        .connectionRestarted: Self(.connectionDropped, .sessionDisconnected, .sessionDisconnected),
        .replaced: Self(.connectionDropped, .sessionDisconnected, .sessionDisconnected),
        .signalInvalid: Self(.invalidSignalType),
        .signalTooLarge: Self(.signalDataTooLong),
        .notFound: Self(nil, nil, .streamNotFound),
        .bandwidthExceeded: Self(nil, nil, .streamLimitExceeded),
        .noMediaEngine: Self(nil, .webRTCError, .webRTCError),
        .mediaFailed: Self(nil, .webRTCError, .webRTCError),
        .mediaUnavailable: Self(nil, .webRTCError, .webRTCError),
        .slowConsumer: Self(.internalError),
        .unexpectedAnswer: Self(.internalError),
        .internalError: Self(.internalError),
    ]
}

import Confab

/// OpenTok's error numbers for an error code of Confab. If a number is nil, it depends on the operation: for example, a
/// rejected signal is `sessionUnableToSendSignal`.
struct ErrorNumbers {
    var session: OTSessionErrorCode?
    var publisher: OTPublisherErrorCode?
    var subscriber: OTSubscriberErrorCode?

    /// Finds the numbers of an error code.
    ///
    /// - Returns: nil for a code without specific numbers.
    init?(_ code: ConfabError.Code) {
        // All token errors have the same numbers.
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
        .sessionInvalid: Self(.errorInvalidSession),
        .connectFailed: Self(.connectionFailed, .sessionDisconnected, .subscriberSessionDisconnected),
        .versionUnsupported: Self(.connectionRefused),
        .sessionFull: Self(.sessionConnectionLimitExceeded),
        .tooManyConnections: Self(.sessionConnectionLimitExceeded),
        .alreadyJoined: Self(.sessionIllegalState),
        .serverURLInvalid: Self(.nullOrInvalidParameter),
        .notJoined: Self(.notConnected, .sessionDisconnected, .subscriberSessionDisconnected),
        .notConnected: Self(.notConnected, .sessionDisconnected, .subscriberSessionDisconnected),
        .left: Self(.notConnected, .sessionDisconnected, .subscriberSessionDisconnected),
        .connectionLost: Self(.connectionDropped, .sessionDisconnected, .subscriberSessionDisconnected),
        .connectionRestarted: Self(.connectionDropped, .sessionDisconnected, .subscriberSessionDisconnected),
        .replaced: Self(.connectionDropped, .sessionDisconnected, .subscriberSessionDisconnected),
        .signalInvalid: Self(.sessionInvalidSignalType),
        .signalTooLarge: Self(.sessionSignalDataTooLong),
        .notFound: Self(nil, nil, .subscriberServerCannotFindStream),
        .bandwidthExceeded: Self(nil, nil, .subscriberStreamLimitExceeded),
        .noMediaEngine: Self(nil, .publisherWebRTCError, .subscriberWebRTCError),
        .mediaFailed: Self(nil, .publisherWebRTCError, .subscriberWebRTCError),
        .mediaUnavailable: Self(nil, .publisherWebRTCError, .subscriberWebRTCError),
        .slowConsumer: Self(.sessionInternalError),
        .unexpectedAnswer: Self(.sessionInternalError),
        .internalError: Self(.sessionInternalError),
    ]
}

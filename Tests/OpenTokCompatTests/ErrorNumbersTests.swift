import Confab
import Foundation
import Testing
import Wire

@testable import OpenTokCompat

@Suite("Error numbers of OpenTok")
struct ErrorNumbersTests {
    struct Row: Sendable {
        var code: WireError.Code
        var session: Int
        var publisher = 2000
        var subscriber = 2000
    }

    @Test(
        "errors of the server and the SDK have OpenTok's numbers",
        arguments: [
            Row(code: .tokenExpired, session: 1004),
            Row(code: .tokenSignature, session: 1004),
            Row(code: .tokenRevoked, session: 1004),
            Row(code: .banned, session: 1004),
            Row(code: .sessionInvalid, session: 1005),
            Row(code: .connectFailed, session: 1006, publisher: 1010, subscriber: 1010),
            Row(code: .notJoined, session: 1010, publisher: 1010, subscriber: 1010),
            Row(code: .alreadyJoined, session: 1015),
            Row(code: .connectionLost, session: 1022, publisher: 1010, subscriber: 1010),
            Row(code: .connectionRestarted, session: 1022, publisher: 1010, subscriber: 1010),
            Row(code: .versionUnsupported, session: 1023),
            Row(code: .sessionFull, session: 1027),
            Row(code: .tooManyConnections, session: 1027),
            Row(code: .signalTooLarge, session: 1413),
            Row(code: .signalInvalid, session: 1461),
            Row(code: .mediaUnavailable, session: 1550, publisher: 1610, subscriber: 1600),
            Row(code: .notFound, session: 1550, subscriber: 1604),
            Row(code: .bandwidthExceeded, session: 1550, subscriber: 1605),
            Row(code: .notPermitted, session: 1550),
            Row(code: .rateLimited, session: 1550),
            Row(code: .internalError, session: 2000),
        ])
    func numbers(_ row: Row) {
        let error = ConfabError(ConfabError.Code(rawValue: row.code.rawValue), "Something is wrong. Change it.")
        let inSession = OTError(session: error, otherwise: .sessionUnableToSendSignal)
        #expect(inSession.code == row.session)
        #expect(inSession.domain == OTError.sessionDomain)
        #expect(OTError(publisher: error).code == row.publisher)
        #expect(OTError(subscriber: error).code == row.subscriber)
    }

    @Test("an error keeps the sentence and the error of the SDK")
    func contents() {
        let error = ConfabError(.mediaFailed, "The camera is in use. Close the other application.")
        let shown = OTError(publisher: error)
        #expect(shown.localizedDescription == error.message)
        #expect(shown.cause == error)
        #expect(shown.code == OTPublisherErrorCode.publisherWebRTCError.rawValue)
        #expect(shown.domain == OTError.publisherDomain)
    }

    @Test("each number that OpenTok documents is declared, and no other")
    func allNumbers() {
        let numbers = 0...9999
        #expect(
            numbers.filter { OTSessionErrorCode(rawValue: $0) != nil } == [
                0, 1004, 1005, 1006, 1010, 1011, 1015, 1020, 1021, 1022, 1023, 1026, 1027, 1112, 1113, 1403, 1413, 1461,
                1503, 1520, 1540, 1550, 2000, 6000, 6004,
            ])
        #expect(numbers.filter { OTPublisherErrorCode(rawValue: $0) != nil } == [0, 1010, 1610, 2000, 6001])
        #expect(
            numbers.filter { OTSubscriberErrorCode(rawValue: $0) != nil } == [
                0, 1010, 1542, 1600, 1604, 1605, 2000, 6002, 6003,
            ])
    }

    @Test("the states of a session have the numbers of the SDK, which are OpenTok's")
    func states() {
        let states: [Session.Status] = [
            .notConnected, .connected, .connecting, .reconnecting, .disconnecting, .failed,
        ]
        for state in states { #expect("\(OTSessionConnectionStatus(rawValue: state.rawValue)!)" == "\(state)") }
    }
}

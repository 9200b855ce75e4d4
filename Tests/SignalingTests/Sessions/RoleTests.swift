import Signaling
import TestSupport
import Testing
import Wire

/// Tests each verb with each of OpenTok's four roles.
@Suite struct RoleTests {
    private let stage = Stage()
    private let session: SessionID
    private let other: Guest
    private let stream: StreamID

    init() throws {
        session = stage.room()
        other = stage.arrive()
        other.enter(session, on: stage)
        stream = try #require(other.publish(session)).id
    }

    private func member(_ role: Role) -> Guest {
        let guest = stage.arrive()
        #expect(guest.enter(session, role, on: stage)?.capabilities == SessionRights(role).capabilities)
        other.take()
        return guest
    }

    private static let all = Set(Role.allCases)

    @Test(arguments: [
        (Role.subscriber, [false, true, false, false]), (.publisher, [true, true, true, false]),
        (.publisherOnly, [true, false, false, false]), (.moderator, [true, true, true, true]),
    ])
    func aRoleHasItsCapabilities(_ role: Role, _ expected: [Bool]) {
        let reported = SessionRights(role).capabilities
        #expect([reported.publish, reported.subscribe, reported.signal, reported.forceDisconnect] == expected)
        #expect((reported.forceUnpublish, reported.forceMute) == (reported.forceDisconnect, reported.forceDisconnect))
    }

    @Test(arguments: Role.allCases) func publishingIsForAllButSubscribers(_ role: Role) {
        let guest = member(role)
        #expect((guest.publish(session) != nil) == (role != .subscriber))
        #expect(other.takeTypes() == (role == .subscriber ? [] : ["session.streamCreated"]))
    }

    @Test(arguments: Role.allCases) func subscribingIsForAllButPublisherOnly(_ role: Role) {
        let answer = member(role).subscribe(session, stream)
        #expect(answer?.errorCode == (role == .publisherOnly ? .notPermitted : nil))
        #expect(other.takeTypes() == (role == .publisherOnly ? [] : ["session.subscribed"]))
    }

    @Test(arguments: Role.allCases) func signalingIsForPublishersAndModerators(_ role: Role) {
        let isAllowed = role == .publisher || role == .moderator
        let guest = member(role)
        #expect(guest.signal(session)?.errorCode == (isAllowed ? nil : .notPermitted))
        #expect(guest.signal(session, to: other.connection)?.errorCode == (isAllowed ? nil : .notPermitted))
        #expect(other.take().count == (isAllowed ? 2 : 0))
    }

    @Test(arguments: Role.allCases) func forcingIsForModeratorsAlone(_ role: Role) {
        let guest = member(role)
        let expected: WireError.Code? = role == .moderator ? nil : .notPermitted
        var mute = SessionVerb.ForceMute()
        mute.session = session
        #expect(guest.ask(.session(.forceMute(mute)))?.errorCode == expected)
        mute.stream = stream
        #expect(guest.ask(.session(.forceMute(mute)))?.errorCode == expected)
        #expect(guest.ask(.session(.forceUnpublish(.init(session: session, stream: stream))))?.errorCode == expected)
        let force = SessionVerb.ForceDisconnect(session: session, connection: other.connection)
        #expect(guest.ask(.session(.forceDisconnect(force)))?.errorCode == expected)
        #expect(other.take().isEmpty == (role != .moderator))
    }

    /// A member has the role in the token that was used to join. Another token for the same session does not change the
    /// role.
    @Test func aRoleCannotBeRaisedByJoiningAgain() {
        let guest = member(.subscriber)
        #expect(guest.join(session, token: stage.token(session, .moderator))?.errorCode == .alreadyJoined)
        #expect(guest.publish(session) == nil)
    }

    /// Permissions are checked before the stream, so that a refusal does not reveal whether the stream exists.
    @Test func aRefusalDoesNotTellWhetherTheTargetExists() {
        let guest = member(.publisher)
        for target in [stream, StreamID(high: 9, low: 9)] {
            #expect(
                guest.ask(.session(.forceUnpublish(.init(session: session, stream: target))))?.errorCode
                    == .notPermitted)
        }
        for target in [other.connection, ConnectionID(high: 9, low: 9)] {
            let force = SessionVerb.ForceDisconnect(session: session, connection: target)
            #expect(guest.ask(.session(.forceDisconnect(force)))?.errorCode == .notPermitted)
        }
    }
}

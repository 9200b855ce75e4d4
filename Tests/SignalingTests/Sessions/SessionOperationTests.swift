import Signaling
import TestSupport
import Testing
import Wire

/// Requests of applications' servers for sessions.
@Suite("An application's server controls its sessions") struct SessionOperationTests {
    private let stage = Stage()
    private let session: SessionID
    private let ada: Guest
    private let bob: Guest

    init() {
        session = stage.room()
        (ada, bob) = (stage.arrive(), stage.arrive())
    }

    private func enter() {
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        for guest in [ada, bob] { guest.take() }
    }

    private func ask(_ operation: SessionOperation) -> OperatorReply? { stage.operate(.session(session, operation)) }

    private func refusal(_ operation: SessionOperation) -> WireError.Code? {
        if case .refused(let error)? = ask(operation) { error.code } else { nil }
    }

    @Test("nothing is possible while no client is connected")
    func inactive() {
        #expect(refusal(.describe(nil)) == .notFound)
        #expect(refusal(.signal(type: "a", data: nil, to: nil)) == .notFound)
        enter()
        #expect(ask(.describe(nil)) == .streams([]))
        for guest in [ada, bob] { guest.ask(.session(.leave(.init(session: session)))) }
        #expect(refusal(.muteAll(excluding: [])) == .notFound)
    }

    @Test("a signal has no sender, and reaches one connection or all")
    func signals() {
        enter()
        #expect(ask(.signal(type: "msg", data: "to all", to: nil)) == .done)
        #expect(ask(.signal(type: nil, data: "to Ada", to: ada.connection)) == .done)
        func signal(_ type: String?, _ data: String) -> ServerMessage {
            .session(.signal(.init(session: session, from: nil, type: type, data: data)))
        }
        #expect(ada.take() == [signal("msg", "to all"), signal(nil, "to Ada")])
        #expect(bob.take() == [signal("msg", "to all")])
        #expect(refusal(.signal(type: "a b", data: nil, to: nil)) == .signalInvalid)
        #expect(
            refusal(.signal(type: nil, data: String(repeating: "x", count: 8193), to: nil)) == .signalTooLarge)
        #expect(refusal(.signal(type: nil, data: nil, to: stage.arrive().connection)) == .notFound)
    }

    @Test("streams are described with their layout classes, which start as in the token and can be replaced")
    func streams() throws {
        enter()
        let stream = try #require(ada.publish(session))
        let other = try #require(bob.publish(session))
        #expect(
            ask(.describe(nil))
                == .streams([
                    StreamDescription(stream, layoutClasses: []), StreamDescription(other, layoutClasses: []),
                ]))
        let changed = OperatorReply.streams([StreamDescription(stream, layoutClasses: ["full"])])
        #expect(ask(.setLayoutClasses([StreamLayout(stream.id, ["full"])])) == changed)
        #expect(ask(.describe(stream.id)) == changed)
        let unknown = StreamID.random(using: &stage.generator)
        #expect(
            refusal(.setLayoutClasses([StreamLayout(stream.id, ["small"]), StreamLayout(unknown, [])])) == .notFound)
        #expect(ask(.describe(stream.id)) == .streams([StreamDescription(stream, layoutClasses: ["full"])]))
        #expect(refusal(.describe(unknown)) == .notFound)
        let claims = Forge.sessionClaims(
            session, at: stage.now, ["initial_layout_class_list": #""focus  wide""#])
        let eve = stage.arrive()
        #expect(eve.ask(.session(.join(.init(session: session, token: Forge.token(claims)))))?.type == "session.joined")
        let third = try #require(eve.publish(session))
        #expect(
            ask(.describe(third.id)) == .streams([StreamDescription(third, layoutClasses: ["focus", "wide"])]))
    }

    @Test("a disconnected client leaves with its reason, and its token is revoked for good")
    func disconnecting() {
        enter()
        #expect(ask(.disconnect(ada.connection)) == .done)
        #expect(ada.take() == [.session(.left(.init(session: session, reason: .forceDisconnected)))])
        #expect(
            bob.take() == [
                .session(
                    .connectionDestroyed(
                        .init(session: session, connection: ada.connection, reason: .forceDisconnected)))
            ])
        #expect(
            stage.changes.contains {
                if case .revoked(let revocation) = $0 {
                    revocation.by == .application(Stage.apiKey) && revocation.session == session
                } else {
                    false
                }
            })
        #expect(refusal(.disconnect(ada.connection)) == .notFound)
    }

    @Test("muting one stream or all notifies the publishers, and silences routed audio")
    func muting() throws {
        enter()
        let stream = try #require(ada.publish(session))
        let other = try #require(bob.publish(session))
        for guest in [ada, bob] { guest.take() }
        #expect(ask(.mute(stream.id)) == .done)
        #expect(ada.take() == [.session(.muted(.init(session: session, active: true, stream: stream.id)))])
        #expect(bob.take() == [])
        #expect(ask(.muteAll(excluding: [other.id])) == .done)
        #expect(
            ada.take() == [
                .session(.muted(.init(session: session, active: true))),
                .session(.muted(.init(session: session, active: true, stream: stream.id))),
            ])
        #expect(bob.take() == [.session(.muted(.init(session: session, active: true)))])
        let late = stage.arrive()
        late.enter(session, on: stage)
        late.publish(session)
        #expect(late.take().contains { if case .session(.muted(let muted)) = $0 { muted.active } else { false } })
        #expect(ask(.muteAll(excluding: nil)) == .done)
        #expect(bob.take().last == .session(.muted(.init(session: session, active: false))))
        #expect(refusal(.mute(StreamID.random(using: &stage.generator))) == .notFound)
    }
}

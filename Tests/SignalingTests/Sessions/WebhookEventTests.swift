import Signaling
import TestSupport
import Testing
import Wire

@Suite("What a session reports to its project's webhook") struct WebhookEventTests {
    private let stage = Stage { $0.routesMedia = true }
    private let session: SessionID
    private let (ada, bob, carl): (Guest, Guest, Guest)
    private let mids = MediaMids(audio: "0", video: "1")

    init() {
        session = stage.room(.routed)
        (ada, bob, carl) = (stage.arrive(), stage.arrive(), stage.arrive())
        setWebhook(true)
    }

    private func setWebhook(_ hasWebhook: Bool) {
        var settings = stage.hub.hubSettings
        settings.project.hasWebhook = hasWebhook
        stage.handle(.settingsChanged(settings))
    }

    /// Returns the events since the previous `count`, in order, such as `stream - Bob forceUnpublished`.
    private func events(after count: Int = 0) -> [String] {
        stage.archive.outbox.dropFirst(count).map { event in
            #expect((event.project, event.at) == (Stage.apiKey, stage.now))
            return switch event.kind {
            case .sessionCreated: "session +"
            case .sessionDestroyed: "session -"
            case .connectionCreated(let connection): "connection + \(connection.data)"
            case .connectionDestroyed(let connection, let reason): "connection - \(connection.data) \(reason.rawValue)"
            case .streamCreated(_, let connection): "stream + \(connection.data)"
            case .streamDestroyed(_, let connection, let reason): "stream - \(connection.data) \(reason.rawValue)"
            case .archive(let archive): "archive \(archive.status.rawValue)"
            case .broadcast(let broadcast): "broadcast \(broadcast.status.rawValue)"
            }
        }
    }

    /// Returns the events that `body` causes.
    private func events(_ body: () throws -> Void) rethrows -> [String] {
        let before = stage.archive.outbox.count
        try body()
        return events(after: before)
    }

    private func enter(_ guest: Guest, _ name: String, _ role: Role = .publisher) {
        #expect(guest.enter(session, role, data: name, on: stage) != nil)
    }

    private func publish(_ guest: Guest) throws -> StreamID { try #require(guest.publish(session, mids: mids)).id }

    @Test("joins, streams and departures are reported in order, each with its reason")
    func life() throws {
        #expect(events { enter(ada, "Ada", .moderator) } == ["session +", "connection + Ada"])
        #expect(events { enter(bob, "Bob") } == ["connection + Bob"])
        try #expect(
            events { bob.unpublish(session, try publish(bob)) } == ["stream + Bob", "stream - Bob clientUnpublished"])
        let stopped = try events {
            let stream = try publish(bob)
            #expect(ada.ask(.session(.forceUnpublish(.init(session: session, stream: stream))))?.type == "ok")
        }
        #expect(stopped == ["stream + Bob", "stream - Bob forceUnpublished"])
        _ = try publish(bob)
        #expect(events { bob.leave() } == ["stream - Bob clientDisconnected", "connection - Bob clientDisconnected"])
        #expect(
            events { ada.ask(.session(.leave(.init(session: session)))) }
                == ["connection - Ada clientDisconnected", "session -"])
        #expect(events { enter(carl, "Carl") } == ["session +", "connection + Carl"], "the session begins again")
    }

    @Test("a drop is reported only if the client does not return in time")
    func drop() throws {
        enter(ada, "Ada")
        enter(bob, "Bob")
        _ = try publish(bob)
        #expect(
            events {
                bob.drop()
                bob.resume()
                bob.drop()
            } == [])
        let before = stage.archive.outbox.count
        stage.pass(stage.rules.resumeGrace)
        #expect(events(after: before) == ["stream - Bob networkDisconnected", "connection - Bob networkDisconnected"])
    }

    @Test("everyone who is removed with a shared token is reported, streams before connections")
    func forceDisconnect() throws {
        enter(ada, "Ada", .moderator)
        let token = stage.token(session, data: "Twin")
        for guest in [bob, carl] {
            guest.join(session, token: token)
            _ = try publish(guest)
        }
        let reason = GoneReason.forceDisconnected.rawValue
        let removal = [
            "stream - Twin \(reason)", "stream - Twin \(reason)", "connection - Twin \(reason)",
            "connection - Twin \(reason)",
        ]
        let verb = SessionVerb.forceDisconnect(.init(session: session, connection: bob.connection))
        #expect(events { ada.ask(.session(verb)) } == removal)
        let last = events { #expect(stage.operate(.session(session, .disconnect(ada.connection))) == .done) }
        #expect(last == ["connection - Ada \(reason)", "session -"])
    }

    @Test("a WHIP publisher whose media stops is reported as lost")
    func media() throws {
        let client = WHIPClient(stage, session, token: stage.token(session, data: "OBS"))
        let connection = try client.create().connection
        #expect(events() == ["session +", "connection + OBS", "stream + OBS"])
        let error = WireError(.dtlsFailed, "The handshake failed.")
        #expect(
            events { stage.handle(.media(.closed(connection, .send, error))) }
                == ["stream - OBS networkDisconnected", "connection - OBS networkDisconnected", "session -"])
    }

    @Test("the end of a match removes its members, and ends the session")
    func match() throws {
        let (one, two, matched) = stage.pair()
        let before = stage.archive.outbox.count
        for guest in [one, two] {
            guest.join(matched.publish.session, token: guest.match?.publish.token ?? "")
            _ = try #require(guest.publish(matched.publish.session, mids: mids))
        }
        #expect(
            events(after: before) == ["session +", "connection + ", "stream + ", "connection + ", "stream + "])
        let end = events { one.next() }
        let reason = GoneReason.forceDisconnected.rawValue
        #expect(
            end == [
                "stream -  \(reason)", "stream -  \(reason)", "connection -  \(reason)", "connection -  \(reason)",
                "session -",
            ])
    }

    @Test("events are committed before anyone is notified of what they report")
    func order() throws {
        enter(ada, "Ada")
        enter(bob, "Bob")
        let reported = stage.effects.firstIndex { if case .persist(.webhook) = $0 { true } else { false } }
        let notified = stage.effects.firstIndex { if case .transmit = $0 { true } else { false } }
        #expect(try #require(reported) < #require(notified))
    }

    @Test("without a webhook nothing is reported, and a webhook that is set later gets what happens afterwards")
    func none() throws {
        setWebhook(false)
        enter(ada, "Ada")
        _ = try publish(ada)
        #expect(events() == [])
        setWebhook(true)
        #expect(events { enter(bob, "Bob") } == ["connection + Bob"])
        #expect(
            events { for guest in [ada, bob] { guest.leave() } } == [
                "stream - Ada clientDisconnected", "connection - Ada clientDisconnected",
                "connection - Bob clientDisconnected", "session -",
            ])
    }
}

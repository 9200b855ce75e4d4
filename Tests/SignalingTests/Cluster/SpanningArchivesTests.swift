import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// A room that spans nodes is recorded and broadcast by its own node.
@Suite("Archives and broadcasts of rooms on several nodes") struct SpanningArchivesTests: SpanningRooms {
    let world = ClusterWorld(nodes: 2) { rules in
        (rules.routesMedia, rules.recordsSessions, rules.broadcastsSessions) = (true, true, true)
        (rules.moderatorsMayRecord, rules.recordingConsent) = (true, .ask)
    }

    init() { connectAll() }

    /// The node of the room.
    private var home: Stage { world.nodes[0].stage }

    /// A room on the first node, with a host there and another person on the second node.
    private func meet() throws -> (host: ClusterClient, other: ClusterClient, session: SessionID) {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session && other.node?.name == "n2")
        return (host, other, session)
    }

    private func operate(_ session: SessionID, _ operation: SessionOperation) -> OperatorReply? {
        let reply = home.operate(.session(session, operation))
        world.pass(.milliseconds(500))
        return reply
    }

    private func startArchive(_ session: SessionID) throws -> ArchiveID {
        var request = ArchiveRequest()
        request.output = .individual
        guard case .archive(let record)? = operate(session, .startArchive(request)) else {
            throw Refusal()
        }
        return record.id
    }

    private func startBroadcast(_ session: SessionID) throws -> BroadcastID {
        var request = BroadcastRequest()
        request.hls = HLSOutput()
        guard case .broadcast(let record)? = operate(session, .startBroadcast(request)) else {
            throw Refusal()
        }
        return record.id
    }

    private struct Refusal: Error {}

    private func consent(_ client: ClusterClient, _ session: SessionID, _ accept: Bool, broadcast: Bool? = nil) {
        client.say(.session(.consent(.init(session: session, accept: accept, broadcast: broadcast))))
        world.pass(.milliseconds(500))
    }

    private func passNotice() { world.pass(home.rules.recordingNotice) }

    /// The commands for the recorder since the previous call. Only the room's node records.
    private func recorded() -> [String] {
        #expect(world.nodes[1].stage.takeRecorder().isEmpty)
        return home.takeRecorder().map { command in
            switch command {
            case .begin: "begin"
            case .add(_, let stream, _): "add \(stream)"
            case .remove(_, let stream): "remove \(stream)"
            case .note: "note"
            case .pause: "pause"
            case .resume: "resume"
            case .end(_, let reason): "end \(reason.rawValue)"
            }
        }
    }

    /// The commands for the broadcaster since the previous call. Only the room's node broadcasts.
    private func broadcasted() -> [String] {
        #expect(world.nodes[1].stage.takeBroadcast().isEmpty)
        return home.takeBroadcast().map { command in
            switch command {
            case .begin: "begin"
            case .add(_, let stream, _): "add \(stream)"
            case .remove(_, let stream): "remove \(stream)"
            case .setClasses: "classes"
            case .setLayout: "layout"
            case .end: "end"
            }
        }
    }

    /// What a client was notified of about archives and broadcasts.
    private func notices(_ client: ClusterClient) -> [String] {
        client.news.compactMap { message in
            switch message {
            case .session(.archiveStarted(let notice)):
                "archive \(notice.archive.archive)\(notice.archive.asks == true ? " asks" : "")"
            case .session(.archiveStopped(let notice)): "end of archive \(notice.archive)"
            case .session(.broadcastStarted(let notice)):
                "broadcast \(notice.broadcast.broadcast)\(notice.broadcast.asks == true ? " asks" : "")"
            case .session(.broadcastStopped(let notice)): "end of broadcast \(notice.broadcast)"
            default: nil
            }
        }
    }

    @Test("people on all nodes are notified and asked, and the streams of those who accept are recorded")
    func archive() throws {
        let (host, other, session) = try meet()
        let (near, far) = (try publish(host, session), try publish(other, session))
        let archive = try startArchive(session)
        #expect([host, other].map(notices) == [["archive \(archive) asks"], ["archive \(archive) asks"]])
        passNotice()
        #expect(recorded() == ["begin"])
        consent(other, session, true)
        #expect(recorded() == ["add \(far)"])
        consent(host, session, true)
        #expect(recorded() == ["add \(near)"])
        consent(other, session, false)
        #expect(recorded() == ["remove \(far)"])
        _ = operate(session, .archive(archive, .stop))
        #expect(recorded() == ["end user initiated"])
        #expect([host, other].allSatisfy { notices($0).last == "end of archive \(archive)" })
        judge()
    }

    @Test("streams that begin and end during the archive are recorded, and later arrivals are asked")
    func changes() throws {
        let (host, other, session) = try meet()
        let near = try publish(host, session)
        let archive = try startArchive(session)
        for client in [host, other] { consent(client, session, true) }
        passNotice()
        #expect(recorded() == ["begin", "add \(near)"])
        let far = try publish(other, session)
        #expect(recorded() == ["add \(far)"])
        var update = SessionVerb.Update()
        (update.session, update.stream, update.hasVideo) = (session, far, false)
        other.say(.session(.update(update)))
        world.pass(.milliseconds(500))
        #expect(recorded() == [], "the file of a muted stream continues")
        other.say(.session(.unpublish(.init(session: session, stream: far))))
        world.pass(.milliseconds(500))
        #expect(recorded() == ["remove \(far)"])

        let late = enter(at: 2)
        #expect(try joinSession(late) == session)
        let joined = late.news.compactMap { message -> SessionNotice.Joined? in
            if case .session(.joined(let joined)) = message { joined } else { nil }
        }
        #expect(joined.last?.archives == [ArchiveInfo(archive, asks: true)])
        let third = try publish(late, session)
        #expect(recorded() == [])
        consent(late, session, true)
        #expect(recorded() == ["add \(third)"])
        judge()
    }

    @Test("when the node of a recorded person dies, the stream's file ends and the archive continues")
    func death() throws {
        let (host, other, session) = try meet()
        let (near, far) = (try publish(host, session), try publish(other, session))
        let archive = try startArchive(session)
        for client in [host, other] { consent(client, session, true) }
        passNotice()
        #expect(recorded().sorted() == ["add \(near)", "add \(far)", "begin"].sorted())
        other.endWish()
        world.kill(world.nodes[1])
        world.pass(.seconds(10))
        #expect(home.takeRecorder() == [.remove(archive, far)])
        #expect(world.shelf.archive.archives[archive]?.status == .started)
        _ = operate(session, .archive(archive, .stop))
        #expect(home.takeRecorder() == [.end(archive, .requested)])
        let files = [near, far].map { stream in
            RecordedFile(
                stream: stream, name: "\(stream).webm", size: 1, start: .zero, stop: .seconds(9), connectionData: "",
                videoType: .camera)
        }
        let result = RecordingResult(began: home.now, duration: .seconds(9), files: files)
        home.handle(.recording(.ended(archive, .requested, result)))
        let stored = world.shelf.archive.archives[archive]
        #expect(stored?.status == .available && stored?.files.map(\.stream) == [near, far])
    }

    @Test("a host on another node starts and stops an archive, and a guest there may not")
    func moderator() throws {
        let (host, other, session) = try meet()
        let start = ClientMessage.session(.startArchive(.init(session: session, output: .individual)))
        other.say(start)
        world.pass(.milliseconds(500))
        #expect(other.news.compactMap(\.errorCode) == [.notPermitted])
        host.say(.room(.role(.init(connection: try connection(other), role: .host))))
        world.pass(.milliseconds(500))
        other.say(start)
        world.pass(.milliseconds(500))
        let archive = try #require(world.shelf.archive.archives.values.first).id
        #expect([host, other].map(notices) == [["archive \(archive) asks"], ["archive \(archive) asks"]])
        other.say(.session(.stopArchive(.init(session: session, archive: archive))))
        world.pass(.milliseconds(500))
        #expect([host, other].allSatisfy { notices($0).last == "end of archive \(archive)" })
        #expect(other.news.compactMap(\.errorCode) == [.notPermitted])
        judge()
    }

    @Test("people on all nodes are asked about a broadcast, and answer separately from archives")
    func broadcast() throws {
        let (host, other, session) = try meet()
        let far = try publish(other, session)
        let broadcast = try startBroadcast(session)
        #expect([host, other].map(notices) == [["broadcast \(broadcast) asks"], ["broadcast \(broadcast) asks"]])
        passNotice()
        #expect(broadcasted() == ["begin"])
        consent(other, session, true)
        #expect(broadcasted() == [], "this is consent to archives")
        consent(other, session, true, broadcast: true)
        #expect(broadcasted() == ["add \(far)"])
        other.say(.session(.unpublish(.init(session: session, stream: far))))
        world.pass(.milliseconds(500))
        #expect(broadcasted() == ["remove \(far)"])
        let again = try publish(other, session)
        #expect(broadcasted() == ["add \(again)"])
        _ = operate(session, .broadcast(broadcast, .stop))
        #expect(broadcasted() == ["end"])
        #expect([host, other].allSatisfy { notices($0).last == "end of broadcast \(broadcast)" })
        judge()
    }
}

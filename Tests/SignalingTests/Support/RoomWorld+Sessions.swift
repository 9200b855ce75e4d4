import Signaling
import TestSupport
import Wire

/// The sessions of rooms: who joins them, what people publish, and how hosts moderate it.
extension RoomWorld {
    /// Tries to join the session with a token of a place that is over.
    func useDeadToken() {
        guard let visitor = anybody({ $0.isLive && !$0.dead.isEmpty }),
            let token = visitor.dead.randomElement(using: &random)
        else { return }
        let answer = visitor.guest.join(token.session, token: token.token)
        if answer?.type == "session.joined" { fail("a dead token let its holder in") }
        count("dead token: \(answer?.errorCode?.rawValue ?? "closed")")
        if !visitor.isLive { forget(visitor) }
    }

    func enterSession() {
        guard let visitor = anybody({ $0.isLive && $0.view != nil }), let admission = visitor.view?.admission else {
            return
        }
        let answer = visitor.guest.join(admission.session, token: admission.token)
        if case .session(.joined(let joined))? = answer {
            visitor.roster = RosterView(joined)
            if joined.more != nil { fail("few members are announced in pages") }
        }
        count("session.join: \(answer?.errorCode?.rawValue ?? answer?.type ?? "closed")")
        if ![.alreadyJoined, nil].contains(answer?.errorCode) {
            fail("a good token was refused: \(String(describing: answer))")
        }
    }

    // MARK: What pages hear

    func hear(_ visitor: Visitor, _ notice: SessionNotice) {
        if case .left = notice { return visitor.roster = nil }
        guard visitor.roster != nil else { return fail("\(ServerMessage.session(notice).type) outside of a session") }
        if case .muted(let muted) = notice, muted.active, let stream = muted.stream {
            visitor.mutedStreams.append(stream)
        }
        if case .mediaModeChanged = notice { fail("the server carries the media of a mesh room") }
        visitor.roster?.apply(notice)
    }

    /// In a mesh room, only the pages can mute. In a routed room, the server must have done it.
    func obey(_ visitor: Visitor) {
        let streams = visitor.mutedStreams
        visitor.mutedStreams = []
        guard visitor.isLive, let view = visitor.view, view.options.media == .mesh else { return }
        for id in streams where visitor.roster?.ownStreams[id]?.hasAudio == true {
            let answer = visitor.guest.update(view.admission.session, id, audio: false)
            if answer?.type != "ok" { fail("a page could not mute itself: \(String(describing: answer))") }
            count("muted itself")
        }
    }

    // MARK: Streams

    func media() {
        guard let visitor = anybody({ $0.isLive && $0.view != nil && $0.roster != nil }), let view = visitor.view else {
            return
        }
        let session = view.admission.session
        let own = visitor.roster?.ownStreams.values.sorted { $0.id < $1.id }.randomElement(using: &random)
        switch (Int.random(in: 0..<10, using: &random), own) {
        case (0..<2, _), (4..<8, nil): publish(visitor, session)
        case (2, _), (3, nil): share(visitor, view)
        case (3, let stream?):
            if visitor.guest.unpublish(session, stream.id)?.type == "ok" { visitor.roster?.unpublished(stream.id) }
            count("unpublished")
        case (4..<7, let stream?): toggleAudio(visitor, stream, session)
        case (7, let stream?): visitor.guest.update(session, stream.id, video: !stream.hasVideo)
        default: moderateSession(visitor, view)
        }
    }

    private func publish(_ visitor: Visitor, _ session: SessionID) {
        var verb = SessionVerb.Publish()
        (verb.session, verb.mids) = (session, MediaMids(audio: "0", video: "1"))
        verb.hasAudio = chance(80)
        let answer = visitor.guest.ask(.session(.publish(verb)))
        count("published: \(answer?.errorCode?.rawValue ?? "ok")")
        if let stream = answer?.published { visitor.roster?.published(stream) }
    }

    private func share(_ visitor: Visitor, _ view: View) {
        let answer = visitor.guest.share(view.admission.session)
        let mayShare = view.options.share == .all || view.people[visitor.connection]?.role != .guest
        if answer?.errorCode == .notPermitted, mayShare { fail("a person who may share was refused") }
        if answer?.type == "session.published", !mayShare { fail("a guest shared a screen") }
        count("screen: \(answer?.errorCode?.rawValue ?? "shared")")
        if let stream = answer?.published { visitor.roster?.published(stream) }
    }

    /// Only this makes a muted stream audible again.
    private func toggleAudio(_ visitor: Visitor, _ stream: StreamInfo, _ session: SessionID) {
        let answer = visitor.guest.update(session, stream.id, audio: !stream.hasAudio)
        guard answer?.type == "ok", !stream.hasAudio else { return count("muted by the owner") }
        silent.remove(stream.id)
        count("unmuted by the owner")
    }

    // MARK: Moderation

    /// What a moderator of any session may do, hosts of rooms may too. It passes the room by.
    private func moderateSession(_ visitor: Visitor, _ view: View) {
        guard let roster = visitor.roster else { return }
        let all = roster.streams.values.filter { !$0.connection.isPhone } + roster.ownStreams.values
        let stream = all.map(\.id).sorted().randomElement(using: &random)
        let session = view.admission.session
        let verb: SessionVerb
        switch (Int.random(in: 0..<10, using: &random), stream) {
        case (0, let stream?): verb = .forceUnpublish(.init(session: session, stream: stream))
        case (1..<3, _):
            guard let connection = roster.connections.keys.sorted().randomElement(using: &random) else { return }
            verb = .forceDisconnect(.init(session: session, connection: connection))
        default:
            var mute = SessionVerb.ForceMute()
            (mute.session, mute.active, mute.stream) = (session, chance(50), chance(60) ? stream : nil)
            verb = .forceMute(mute)
        }
        let answer = visitor.guest.ask(.session(verb))
        count("\(ClientMessage.session(verb).type): \(answer?.errorCode?.rawValue ?? "ok")")
        let isHost = view.people[visitor.connection]?.role == .host
        let isDone = answer?.type == "ok"
        var isAllowed = isHost
        if case .forceDisconnect(let target) = verb {
            isAllowed = judgeDisconnection(of: target.connection, by: visitor, in: view, isDone: isDone) && isHost
        }
        if isDone != isAllowed { fail("a \(isHost ? "host" : "guest") may\(isDone ? "" : " not") do \(verb)") }
    }
}

import Signaling
import Wire

/// Who sees and hears whom: the invariants of the streams in a room's session.
extension RoomWorld {
    /// All streams in the session, as this visitor knows them.
    private func streams(_ visitor: Visitor) -> [StreamID: StreamInfo] {
        guard let roster = visitor.roster else { return [:] }
        return roster.streams.merging(roster.ownStreams) { one, _ in one }
    }

    /// Everyone in the session knows its members, and exactly what each of them publishes. A page's own streams are in the
    /// comparison, so each stream is as its owner knows it.
    func judgeSession(_ view: View, _ inside: [Visitor]) {
        let members = inside.filter { $0.roster != nil }
        guard let first = members.first else { return }
        let streams = streams(first)
        for member in members {
            if let fault = member.roster?.fault { fail(fault) }
            judgeMembers(member, view, inside)
            let others = self.streams(member)
            if others != streams { fail("two know different streams: \(difference(others, streams))") }
        }
        if members.count > 1, !streams.isEmpty { count("streams compared") }
        for stream in streams.values { judge(stream, view) }
        if view.options.media == .routed { judgeRouting(streams, view) }
    }

    private func judgeMembers(_ member: Visitor, _ view: View, _ inside: [Visitor]) {
        guard let roster = member.roster else { return }
        for connection in roster.connections.keys where view.people[connection] == nil {
            fail("\(connection) is in the session, and not in the room")
        }
        // Those whose connection dropped may have been in the session or not.
        for other in inside where other !== member {
            let isKnown = roster.connections[other.connection] != nil
            if isKnown != (other.roster != nil) { fail("a member \(isKnown ? "knows" : "misses") \(other.connection)") }
        }
        for phone in view.people.keys where phone.isPhone {
            let count = roster.streams.values.count { $0.connection == phone }
            if count != 1 { fail("a phone publishes \(count) streams") }
        }
    }

    private func judge(_ stream: StreamInfo, _ view: View) {
        if view.people[stream.connection] == nil { fail("a stream of a person who is not in the room") }
        if stream.hasAudio, silent.contains(stream.id) { fail("another person unmuted \(stream)") }
        if !stream.hasAudio { silent.insert(stream.id) }
        let role = view.people[stream.connection]?.role
        if view.options.share == .hosts, stream.videoType == .screen, role == .guest { fail("a guest shares a screen") }
    }

    /// The media plane routes what was announced, and no sound of a muted stream.
    private func judgeRouting(_ streams: [StreamID: StreamInfo], _ view: View) {
        let routed = stage.ledger.streams.filter { $0.value.session == view.admission.session }
        if Set(routed.keys) != Set(streams.keys) { fail("\(routed.count) of \(streams.count) streams are routed") }
        for (id, stream) in streams {
            guard let route = routed[id] else { continue }
            if (route.audio, route.video, route.publisher) != (stream.hasAudio, stream.hasVideo, stream.connection) {
                fail("\(stream) is routed as \(route)")
            }
        }
    }

    private func difference(_ one: [StreamID: StreamInfo], _ other: [StreamID: StreamInfo]) -> [StreamInfo?] {
        Set(one.keys).union(other.keys).sorted().flatMap { id in one[id] == other[id] ? [] : [one[id], other[id]] }
    }

    // MARK: What a request does

    /// - Parameter view: what the visitor saw before the request.
    func judgeEffect(of verb: RoomVerb, by visitor: Visitor, in view: View) {
        let inside = clients.filter { $0.isLive && $0.view?.name == view.name }
        switch verb {
        case .react(let react):
            let expected = [RoomNotice.Reacted(connection: visitor.connection, reaction: react.reaction)]
            for other in inside where other.reactions != expected { fail("a reaction became \(other.reactions)") }
        case .mute(let target):
            for stream in affected(by: target, visitor, inside) where stream.hasAudio {
                fail("\(stream) is not muted")
            }
        case .stopShare(let target):
            for stream in affected(by: target, visitor, inside) where stream.videoType == .screen {
                fail("\(stream) is still shared")
            }
        case .join, .leave, .admit, .deny, .set, .remove, .role, .say, .hand, .file, .removeFile: break
        }
    }

    /// The streams that a host has muted or stopped. In a mesh room, phones cannot mute, and who is away cannot yet.
    private func affected(by target: RoomVerb.Target, _ host: Visitor, _ inside: [Visitor]) -> [StreamInfo] {
        guard let observer = inside.first(where: { $0.roster != nil }) else { return [] }
        let present = Set(inside.map(\.connection))
        return streams(observer).values.filter { stream in
            guard observer.view?.options.media == .routed || present.contains(stream.connection) else { return false }
            return target.connection.map { $0 == stream.connection } ?? (stream.connection != host.connection)
        }
    }
}

import Confab
import Peers
import RTC

// The sections of a peer's descriptions. Everything in this file runs on the connection's thread.
extension RobotPeer {
    func makeOffer(restartingICE: Bool) -> String {
        offered = order + transceivers.map(\.mid).filter { !order.contains($0) }
        let sections = offered.compactMap(section)
        describe(offered)
        return restartingICE ? connection.restart(sections) : connection.offer(sections)
    }

    func makeAnswer(on thread: PeerThread) throws -> String {
        guard let remoteOffer else {
            throw ConfabError(.mediaFailed, "There is no offer to answer. Accept one first.")
        }
        self.remoteOffer = nil
        offered = []
        let answer = try connection.answer(offer: remoteOffer, candidates: candidates, now: thread.loop.now)
        order = connection.negotiated.map(\.mid)
        describe(order)
        settle(on: thread)
        return answer
    }

    private func describe(_ mids: [String]) {
        for index in transceivers.indices where mids.contains(transceivers[index].mid) {
            transceivers[index].isDescribed = true
        }
    }

    private func section(_ mid: String) -> OfferedMedia? {
        if let own = transceivers.first(where: { $0.mid == mid }) {
            return own.section(like: connection.negotiated.first { isTheirs($0) && $0.kind == MediaKind(own.kind) })
        }
        guard let theirs = connection.negotiated.first(where: { $0.mid == mid }) else { return nil }
        return OfferedMedia(
            mid: mid, kind: theirs.kind, direction: theirs.direction, codecs: theirs.codecs,
            extensions: theirs.extensions)
    }

    private func isTheirs(_ media: NegotiatedMedia) -> Bool {
        !media.isRejected && !transceivers.contains { $0.mid == media.mid }
    }

    /// Applies a completed negotiation: reports the tracks that the other peer sends, and sends the media that it
    /// accepts.
    func settle(on thread: PeerThread) {
        for media in connection.negotiated where !media.isRejected && media.direction.receives {
            guard let kind = TrackKind(media.kind) else { continue }
            let mid = media.mid
            var arrival =
                arrivals[mid]
                ?? PeerArrival(
                    track: EncodedTrack(kind) { [weak self] in self?.requestKeyframe(mid) },
                    receiver: FrameReceiver(kind))
            (arrival.hasPacket, arrival.hasFrame) = (false, false)
            let stream = media.msid?.stream
            if arrival.reported != .some(stream) {
                arrival.reported = .some(stream)
                event.yield(.track(mid: mid, kind, streamID: stream == "-" ? nil : stream))
            }
            arrivals[mid] = arrival
        }
        if state == .new { tell(.connecting) }
        updateFeeds(on: thread)
    }

    func tell(_ next: PeerState) {
        guard next != state else { return }
        state = next
        event.yield(.state(next))
    }

    // MARK: Feeds

    /// Starts, updates and ends feeds to match the transceivers that currently send media.
    func updateFeeds(on thread: PeerThread) {
        var feeds: [any PeerFeed] = []
        for transceiver in transceivers where sends(transceiver) {
            guard let media = transceiver.media, !feeds.contains(where: { $0.media === media }) else { continue }
            let video = transceivers.first { $0.media === media && $0.isVideo && sends($0) }
            let audio = transceivers.first { $0.media === media && !$0.isVideo && sends($0) }
            let sections = ClipPlayer.Sections(audio: audio?.mid, video: video?.mid)
            let feed = source.feeds.first { $0.media === media } ?? makeFeed(media, sections, video, on: thread)
            feed.sections = sections
            if feed.activeRIDs != video?.activeRIDs { feed.activeRIDs = video?.activeRIDs }
            feeds.append(feed)
        }
        for feed in source.feeds where !feeds.contains(where: { $0 === feed }) { feed.end() }
        source.feeds = feeds
        // Setting the source makes the connection read the time of the next frame again.
        connection.source = source
    }

    private func makeFeed(
        _ media: any PeerMedia, _ sections: ClipPlayer.Sections, _ video: PeerTransceiver?, on thread: PeerThread
    ) -> any PeerFeed {
        let now = thread.loop.now
        func next(_ mid: String?) -> UInt32? {
            guard let mid, let track = connection.tracks.first(where: { $0.mid == mid }), track.packetsSent > 0 else {
                return nil
            }
            return track.timestamp(at: now)
        }
        return media.makeFeed(
            FeedStart(
                connection: connection, thread: thread, sections: sections,
                timestamps: ClipPlayer.Timestamps(audio: next(sections.audio), video: next(sections.video)),
                isLayered: !(video?.rids.isEmpty ?? true)))
    }

    private func sends(_ transceiver: PeerTransceiver) -> Bool {
        transceiver.media != nil
            && connection.negotiated.contains {
                $0.mid == transceiver.mid && !$0.isRejected && $0.direction.sends
            }
    }
}

// MARK: - Receiving

extension RobotPeer: RobotHandler {
    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        let mid = reception.mid
        guard var arrival = arrivals.removeValue(forKey: mid) else { return }
        defer { arrivals[mid] = arrival }
        if !arrival.hasPacket {
            arrival.hasPacket = true
            event.yield(.firstPacket(mid: mid))
        }
        guard let codec = reception.codec(packet.header.payloadType) else { return }
        for frame in arrival.receiver.take(packet, of: codec) {
            arrival.track.yield(frame)
            guard !arrival.hasFrame, frame.codec == .vp8 else { continue }
            arrival.hasFrame = true
            event.yield(.firstFrame(mid: mid))
        }
        if arrival.receiver.needsKeyframe { connection.requestKeyframe(of: reception, now: packet.at) }
    }

    func stateChanged(of connection: RobotConnection) {
        switch connection.state {
        case .new: break
        case .connecting: tell(.connecting)
        case .connected:
            tell(.connected)
            source.connected()
        // Before the first connection, this state only means that DTLS completed before a path was nominated, so do
        // not report it.
        case .disconnected: if state != .connecting { tell(.disconnected) }
        case .failed(let failure):
            onFailure(failure)
            tell(.failed)
        case .closed: tell(.closed)
        }
    }
}

extension MediaKind {
    init(_ kind: TrackKind) { self = kind == .audio ? .audio : .video }
}

extension TrackKind {
    init?(_ kind: MediaKind) {
        switch kind {
        case .audio: self = .audio
        case .video: self = .video
        case .application, .other: return nil
        }
    }
}

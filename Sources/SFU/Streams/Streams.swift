import RTC

/// The streams that clients publish and subscribe to. It connects the tracks of publishers with the transceivers of
/// subscribers.
final class Streams {
    private let feeds: FeedTable
    private let egress: Egress
    private let speakers: Speakers
    private let crowds: Crowds
    private(set) var publications: [Key: Publication] = [:]
    private(set) var clients: [Key: Client] = [:]

    /// The streams of one client.
    struct Client {
        var published: Set<Key> = []
        var subscribed: Set<Key> = []
    }

    init(feeds: FeedTable, egress: Egress, speakers: Speakers, crowds: Crowds) {
        (self.feeds, self.egress, self.speakers, self.crowds) = (feeds, egress, speakers, crowds)
    }

    func publication(_ stream: Key) -> Publication? { publications[stream] }

    /// The sessions that have streams.
    var sessions: Set<String> { Set(publications.values.lazy.map(\.session)) }

    /// Returns the audio tracks of each session in which more than `limit` streams have audio that is not muted.
    func audioTracks(ofSessionsWithMoreThan limit: Int) -> [[FeedTrack]] {
        guard publications.count > limit else { return [] }
        var sessions: [String: [(stream: Key, track: FeedTrack)]] = [:]
        for publication in publications.values where publication.forwardsAudio {
            guard let track = audioTrack(of: publication), track.kind == .audio else { continue }
            sessions[publication.session, default: []].append((publication.stream, track))
        }
        // Of equally loud voices the earlier ones are chosen, so the order must be the same on all event loops.
        return sessions.values.filter { $0.count > limit }.map { session in
            session.sorted { ($0.stream.high, $0.stream.low) < ($1.stream.high, $1.stream.low) }.map(\.track)
        }
    }

    /// Returns, for each session, the lowest index of an event loop that has publishers in it.
    /// - Parameter own: the index of this router's event loop.
    func lowestLoops(own: Int) -> [String: Int] {
        var lowest: [String: Int] = [:]
        for publication in publications.values {
            for track in feeds.tracks(of: publication.client) where track.publication === publication {
                let loop = track.loop ?? own
                lowest[publication.session] = min(lowest[publication.session] ?? loop, loop)
            }
        }
        return lowest
    }

    /// Returns how loud this router's publishers are.
    func voices() -> [PipedVoice] {
        publications.values.compactMap { publication in
            guard publication.forwardsAudio, let track = audioTrack(of: publication), track.loop == nil else {
                return nil
            }
            return PipedVoice(
                stream: publication.stream, loudness: speakers.loudness(of: publication), voice: track.voice)
        }
    }

    /// Records how loud the publishers of another router are.
    func hear(_ voices: [PipedVoice], now: MediaTime) {
        for voice in voices {
            guard let publication = publications[voice.stream], publication.forwardsAudio,
                let track = audioTrack(of: publication), track.loop != nil
            else { continue }
            track.hear(voice.voice)
            speakers.hear(publication, loudness: voice.loudness, now: now)
        }
    }

    private func audioTrack(of publication: Publication) -> FeedTrack? {
        publication.mids.audio.flatMap { feeds.track($0, of: publication.client) }
    }

    /// Publishes a stream, or changes the transceivers and kinds of media of a stream that is already published.
    /// Ignored if another client has published the stream.
    func publish(
        _ stream: Key, session: String, client: Key, mids: Mids, audio: Bool, video: Bool, alwaysHeard: Bool = false
    ) {
        if let known = publications[stream] {
            guard known.client == client else { return }
            known.mids = mids
            (known.forwardsAudio, known.forwardsVideo) = (audio, video)
        } else {
            publications[stream] = Publication(
                stream: stream, session: session, client: client, mids: mids, audio: audio, video: video
            )
            publications[stream]?.isSpeaking = speakers.current(session) == stream
            clients[client, default: Client()].published.insert(stream)
        }
        publications[stream]?.alwaysHeard = alwaysHeard
        rebind(publications[stream])
    }

    /// Changes whether the audio and video of a stream are forwarded.
    func update(_ stream: Key, audio: Bool, video: Bool) {
        guard let publication = publications[stream] else { return }
        (publication.forwardsAudio, publication.forwardsVideo) = (audio, video)
        rebind(publication)
    }

    func unpublish(_ stream: Key) {
        guard let publication = publications.removeValue(forKey: stream) else { return }
        crowds.audioChanged()
        for subscription in publication.subscriptions.values {
            detach(subscription)
            clients[subscription.client]?.subscribed.remove(stream)
            forgetIfEmpty(subscription.client)
        }
        for recording in publication.recordings.values { recording.end() }
        for track in feeds.tracks(of: publication.client) where track.publication === publication {
            track.publication = nil
        }
        clients[publication.client]?.published.remove(stream)
        speakers.remove(publication)
        forgetIfEmpty(publication.client)
    }

    /// Subscribes to a stream, or changes the transceivers and kinds of media of an existing subscription. Ignored if
    /// the stream is not published.
    /// - Parameters:
    ///   - audio: whether the client receives the stream's audio.
    ///   - video: whether the client receives the stream's video.
    ///   - preference: selects the encoding if the publisher sends several.
    func subscribe(
        _ stream: Key, client: Key, mids: Mids, audio: Bool, video: Bool,
        preferring preference: VideoPreference = VideoPreference()
    ) {
        guard let publication = publications[stream] else { return }
        let subscription: Subscription
        if let known = publication.subscriptions[client] {
            subscription = known
            if known.mids != mids { detach(known) }
            (known.mids, known.audio, known.video) = (mids, audio, video)
        } else {
            subscription = Subscription(
                publication: publication, client: client, mids: mids, audio: audio, video: video
            )
            publication.subscriptions[client] = subscription
            clients[client, default: Client()].subscribed.insert(stream)
        }
        subscription.preference = preference
        take(mids, for: subscription)
        rebind(subscription)
    }

    /// Assigns transceivers to a subscription. A transceiver carries one stream at a time, so it is taken from any stream
    /// that used it before.
    private func take(_ mids: Mids, for subscription: Subscription) {
        for stream in clients[subscription.client]?.subscribed ?? [] where stream != subscription.publication.stream {
            publications[stream]?.subscriptions[subscription.client]?.release(mids)
        }
        for slot in egress.subscriber(subscription.client)?.tracks ?? []
        where (slot.mid == mids.audio || slot.mid == mids.video) && slot.subscription !== subscription {
            slot.subscription = nil
            egress.attach(slot, to: nil)
        }
    }

    func unsubscribe(_ stream: Key, client: Key) {
        guard let subscription = publications[stream]?.subscriptions.removeValue(forKey: client) else { return }
        detach(subscription)
        clients[client]?.subscribed.remove(stream)
        forgetIfEmpty(client)
    }

    // MARK: Recordings

    /// Starts to record a stream. A stream that is not published has ended.
    func record(_ stream: Key, _ recording: RecordedStream) {
        guard let publication = publications[stream] else { return recording.end() }
        publication.recordings.updateValue(recording, forKey: recording.id)?.end()
        recording.attach(publication, feeds)
    }

    func stopRecording(_ stream: Key, _ id: UInt32) {
        publications[stream]?.recordings.removeValue(forKey: id)?.end()
    }

    func recording(_ stream: Key, _ id: UInt32) -> RecordedStream? { publications[stream]?.recordings[id] }

    /// Ends all streams and subscriptions of a client.
    func leave(_ client: Key) {
        guard let entry = clients[client] else { return }
        for stream in entry.published { unpublish(stream) }
        for stream in entry.subscribed { unsubscribe(stream, client: client) }
        clients[client] = nil
    }

    private func forgetIfEmpty(_ client: Key) {
        if let entry = clients[client], entry.published.isEmpty, entry.subscribed.isEmpty { clients[client] = nil }
    }

    // MARK: Links between transceivers

    /// Connects the tracks of all the client's streams again, after a negotiation.
    func relinkAll(_ client: Key, _ side: Side) {
        guard let entry = clients[client] else { return }
        switch side {
        case .send: for stream in entry.published { rebind(publications[stream]) }
        case .receive:
            for stream in entry.subscribed {
                if let subscription = publications[stream]?.subscriptions[client] { rebind(subscription) }
            }
        }
    }

    private func rebind(_ publication: Publication?) {
        guard let publication else { return }
        crowds.audioChanged()
        for track in feeds.tracks(of: publication.client) {
            if track.mid == publication.mids.audio || track.mid == publication.mids.video {
                track.publication = publication
            } else if track.publication === publication {
                track.publication = nil
            }
        }
        // Attach all subscribers before layers are selected: a selection looks at all of them.
        for subscription in publication.subscriptions.values {
            attach(subscription, .audio)
            attach(subscription, .video)
        }
        for recording in publication.recordings.values { recording.attach(publication, feeds) }
        for track in feeds.tracks(of: publication.client)
        where track.publication === publication && track.needsSelection {
            track.select()
        }
    }

    private func rebind(_ subscription: Subscription) {
        for kind in [MediaKind.audio, .video] {
            if let source = attach(subscription, kind), source.needsSelection { source.select() }
        }
    }

    /// Updates one transceiver to match the publication, the subscription and their settings. The operation is
    /// idempotent.
    /// - Returns: the track that the transceiver receives; nil if it receives none.
    @discardableResult
    private func attach(_ subscription: Subscription, _ kind: MediaKind) -> FeedTrack? {
        let publication = subscription.publication
        guard let mid = subscription.mid(kind), let slot = egress.subscriber(subscription.client)?.track(mid),
            slot.kind == kind
        else { return nil }
        // No other subscription of this client uses the slot, because `take` has released it.
        slot.subscription = subscription
        let source = publication.mid(kind).flatMap { feeds.track($0, of: publication.client) }
        let isOn = publication.forwards(kind) && subscription.wants(kind) && source?.kind == kind && slot.isWanted
        egress.attach(slot, to: isOn ? source : nil)
        slot.preference = subscription.preference
        return isOn ? source : nil
    }

    private func detach(_ subscription: Subscription) {
        for slot in egress.subscriber(subscription.client)?.tracks ?? [] where slot.subscription === subscription {
            slot.subscription = nil
            egress.attach(slot, to: nil)
        }
    }
}

import RTC

/// A client of another node whose streams arrive over a relay. It keeps a `Publisher`, which receives the client's packets as it would
/// receive those of a client of this node, and sends the other node what this node's subscribers demand.
final class RemotePublisher {
    let client: Key
    /// The publisher's place in the order in which the demands over the relay began.
    let ordinal: Int
    let publisher: Publisher
    private unowned let receiver: RelayReceiver
    private var tracks: [RemoteTrack] = []
    /// What is demanded of the tracks; nil at the end.
    private var demand: NumberedState<[RelayDemand.Track]?>
    /// The parts of a list that have arrived so far.
    private var parts: (number: UInt32, tracks: [RemoteTrackState?])?
    /// The number of the newest list that was applied.
    private var applied: UInt32 = 0
    /// Channels that are released when the demand with this number, or a later one, is acknowledged.
    private var releasing: [(channel: UInt16, number: UInt32)] = []
    /// Channels that the next demand does not contain any more.
    private var dropped: [UInt16] = []

    /// When the demand was last computed.
    private var updatedAt: MediaTime?

    /// The time between two computations of a demand that has not changed, which may be repeated, or end after a delay.
    private static let updateInterval = MediaInterval.milliseconds(50)

    /// A track that the client's node has listed.
    private struct RemoteTrack {
        let id: UInt32
        let incoming: IncomingTrack
        var state: RemoteTrackState
        var held = HeldDemand()
        /// For each encoding, its channel; nil if it is not demanded.
        var channels = [UInt16?](repeating: nil, count: RelayMessage.maxEncodings)
        /// One bit for each encoding that waits for a channel, because all were in use.
        var waiting: UInt8 = 0

        /// Returns whether this is the track that the node lists. If an id stands for something else now, it is another track.
        func matches(_ state: RemoteTrackState) -> Bool {
            id == state.id && self.state.mid == state.mid && self.state.isVideo == state.isVideo
        }
    }

    /// - Parameter former: the number of the latest demand that was sent over the relay.
    init(
        _ client: Key, at ordinal: Int, over link: PeerLink, ingress: Ingress, receiver: RelayReceiver,
        after former: UInt32
    ) {
        (self.client, self.ordinal, self.receiver) = (client, ordinal, receiver)
        publisher = Publisher(link: PeerLink(client: client, over: link), ingress: ingress, isRemote: true)
        demand = NumberedState([], after: former)
        publisher.onDemandChange = { [weak self] in
            if let self { self.receiver.demandChanged(self) }
        }
    }

    /// The number of the latest demand.
    var number: UInt32 { demand.number }
    /// Whether nothing is demanded any more, and the other node knows it.
    var isOver: Bool { demand.value == nil && demand.isAcknowledged }

    // MARK: Lists

    /// - Returns: the number to acknowledge; nil if the list is not complete, or older than the present one.
    func receive(_ part: RelayListingPart, now: MediaTime) -> UInt32? {
        guard demand.value != nil, part.number >= applied else { return nil }
        guard part.number > applied else { return applied }
        if let parts, parts.number > part.number { return nil }
        if parts?.number != part.number {
            parts = (part.number, [RemoteTrackState?](repeating: nil, count: Int(part.count)))
        }
        guard parts?.tracks.count == Int(part.count) else { return nil }
        if let track = part.track { parts?.tracks[Int(part.index)] = track }
        guard let states = parts?.tracks, states.allSatisfy({ $0 != nil }) else { return nil }
        (applied, parts) = (part.number, nil)
        apply(states.compactMap { $0 }, now: now)
        return applied
    }

    private func apply(_ states: [RemoteTrackState], now: MediaTime) {
        var isChanged = false
        for index in tracks.indices.reversed() where !states.contains(where: { tracks[index].matches($0) }) {
            for encoding in tracks[index].channels.indices { release(encoding, of: index) }
            publisher.removeRemoteTrack(tracks[index].incoming)
            tracks.remove(at: index)
            isChanged = true
        }
        for state in states {
            let index = tracks.firstIndex { $0.matches(state) } ?? add(state)
            if update(index, state, now: now) { isChanged = true }
        }
        // Subscribers are attached to the tracks, and map their codecs.
        if isChanged { receiver.enter(publisher) }
        for track in tracks where track.incoming.feedTrack.needsSelection { track.incoming.feedTrack.select() }
        publisher.isDemandChanged = true
    }

    private func add(_ state: RemoteTrackState) -> Int {
        let incoming = publisher.addRemoteTrack(mid: state.mid, kind: state.isVideo ? .video : .audio)
        // The codecs and encodings follow.
        var empty = state
        (empty.codecs, empty.encodings) = ([], [])
        tracks.append(RemoteTrack(id: state.id, incoming: incoming, state: empty))
        return tracks.count - 1
    }

    /// - Returns: whether subscribers must be attached again.
    private func update(_ index: Int, _ state: RemoteTrackState, now: MediaTime) -> Bool {
        let (incoming, former) = (tracks[index].incoming, tracks[index].state)
        let feedTrack = incoming.feedTrack
        var isChanged = incoming.updateRemote(codecs: state.codecs, extensions: state.extensions)
        if former.encodings.isEmpty { isChanged = true }
        for (number, encoding) in state.encodings.enumerated() {
            if number == incoming.encodings.count, incoming.addEncoding(rid: encoding.rid) == nil { break }
            let before = former.encodings.indices.contains(number) ? former.encodings[number] : nil
            if let before, before.generation != encoding.generation { release(number, of: index) }
            feedTrack.layers[number].take(encoding, now: now)
            // While packets arrive, they show the codec.
            if tracks[index].channels[number] == nil, let codec = encoding.codec,
                feedTrack.codecs.indices.contains(Int(codec)), feedTrack.feeds[number].note(codec: Int(codec))
            {
                feedTrack.needsSelection = true
            }
            if before.map({ encoding.needsSelection(after: $0) }) ?? true { feedTrack.needsSelection = true }
        }
        tracks[index].state = state
        return isChanged
    }

    // MARK: Demand

    /// Computes what this node's subscribers and the choice of the active speaker demand, and sends it if it has changed, or if it was not
    /// acknowledged in time.
    func updateDemand(now: MediaTime) {
        publisher.isDemandChanged = false
        updatedAt = now
        guard demand.value != nil else { return send(now: now) }
        var demanded: [RelayDemand.Track] = []
        for index in tracks.indices {
            let feedTrack = tracks[index].incoming.feedTrack
            var track = RelayDemand.Track(
                id: tracks[index].id, wanted: feedTrack.demand.wanted, refused: feedTrack.demand.refused)
            let decoders = feedTrack.codecs.indices.map { UInt8(clamping: feedTrack.decoders(of: $0)) }
            if decoders.contains(where: { $0 > 0 }) { track.decoders = decoders }
            var needed: UInt8 = 0
            let isHeard = feedTrack.isAlwaysHeard
            for feed in feedTrack.feeds where isHeard || feed.isWatched { needed |= 1 << UInt8(feed.index) }
            let held = tracks[index].held.update(needed, now: now)
            for (number, encoding) in tracks[index].state.encodings.enumerated() {
                guard number < feedTrack.feeds.count, held >> UInt8(number) & 1 == 1 else {
                    release(number, of: index)
                    continue
                }
                guard let channel = channel(number, of: index, now: now) else { continue }
                track.encodings.append(
                    RelayDemand.Encoding(index: UInt8(number), generation: encoding.generation, channel: channel))
            }
            // A list may have fewer encodings than the one before.
            for number in tracks[index].channels.indices.dropFirst(tracks[index].state.encodings.count) {
                release(number, of: index)
            }
            demanded.append(track)
        }
        demand.set(demanded)
        settle()
        send(now: now)
    }

    /// Returns the channel of an encoding, which is assigned if it has none. Nil if all channels are in use.
    private func channel(_ number: Int, of index: Int, now: MediaTime) -> UInt16? {
        if let channel = tracks[index].channels[number] { return channel }
        let bit = UInt8(1) << UInt8(number)
        guard let channel = receiver.takeChannel(for: self, now: now) else {
            if tracks[index].waiting & bit == 0 { receiver.noteWait() }
            tracks[index].waiting |= bit
            return nil
        }
        tracks[index].waiting &= ~bit
        tracks[index].channels[number] = channel
        publisher.bind(tracks[index].incoming.encodings[number], to: RelayChannels.ssrc(of: channel))
        return channel
    }

    private func release(_ number: Int, of index: Int) {
        tracks[index].waiting &= ~(UInt8(1) << UInt8(number))
        guard let channel = tracks[index].channels[number] else { return }
        tracks[index].channels[number] = nil
        publisher.unbind(tracks[index].incoming.encodings[number])
        receiver.drop(channel)
        dropped.append(channel)
    }

    /// The present demand is the first one without the channels that were dropped.
    private func settle() {
        for channel in dropped { releasing.append((channel, demand.number)) }
        dropped = []
    }

    private func send(now: MediaTime) {
        guard demand.takeDue(now: now) else { return }
        guard let tracks = demand.value else { return receiver.send(.end(client: client, number: demand.number)) }
        receiver.send(.demand(RelayDemand(client: client, number: demand.number, tracks: tracks)))
    }

    func acknowledged(_ number: UInt32, now: MediaTime) {
        guard number <= demand.number else { return }
        demand.acknowledge(number)
        for entry in releasing where entry.number <= number { receiver.release(entry.channel, now: now) }
        releasing.removeAll { $0.number <= number }
    }

    // MARK: Life

    func tick(now: MediaTime) {
        let isDue = updatedAt.map { now - $0 >= Self.updateInterval } ?? true
        if publisher.isDemandChanged || isDue { updateDemand(now: now) }
        if demand.value != nil { publisher.tick(now: now) }
    }

    /// No packets follow for a while.
    func pause() { for track in tracks { track.incoming.feedTrack.pause() } }

    /// Packets follow again.
    func resume() { publisher.pathChanged() }

    /// Ends the client's tracks, and the demand of them.
    func end(now: MediaTime) {
        for index in tracks.indices { for number in tracks[index].channels.indices { release(number, of: index) } }
        tracks = []
        publisher.end()
        demand.set(nil)
        settle()
        send(now: now)
    }
}

extension Layer {
    /// How long a layer counts as missing after the publisher's node has said that it is.
    private static let absence = MediaInterval.seconds(10)

    /// Takes over what the publisher's node has measured.
    fileprivate mutating func take(_ encoding: RemoteTrackState.Encoding, now: MediaTime) {
        (size, isAlive) = (encoding.size ?? size, encoding.isAlive)
        isMissingUntil = encoding.isMissing ? now + Self.absence : nil
        rates = FrameRates(
            hasTemporalLayers: encoding.hasTemporalLayers, framesPer10s: encoding.framesPer10s,
            bytesPerSecond: encoding.bytesPerSecond)
    }
}

extension RemoteTrackState.Encoding {
    /// Whether layers must be selected again when this state replaces the former one.
    fileprivate func needsSelection(after former: Self) -> Bool {
        codec != former.codec || size != former.size || isAlive != former.isAlive || isMissing != former.isMissing
            || framesPer10s != former.framesPer10s
    }
}

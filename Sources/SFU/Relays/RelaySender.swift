import RTC

/// The streams that this node sends over a relay: those of its own publishers that the other node demands.
final class RelaySender {
    private let connection: RelayConnection
    private let feeds: FeedTable
    /// Whether this is the relay that carries what the clients of this media loop publish. If the other node has more loops, this one
    /// has several relays to it.
    private let carriesPublishers: Bool
    /// The clients that the other node has demanded, in the order in which that began, and by their keys.
    private var listings: [RelayListing] = []
    private var byClient: [Key: RelayListing] = [:]
    /// The channels that were ever used, by number.
    private var channels = [RelayChannel?](repeating: nil, count: RelayChannels.count)
    /// The channels with packets that were not sent yet.
    private var unflushed: [RelayChannel] = []
    private var lastID: UInt32 = 0
    /// The highest number of a list that was sent.
    private var lastListing: UInt32 = 0
    /// While nothing arrives from the other node, nothing but heartbeats is sent to it.
    private var isPaused = false
    /// Which layers are not offered, because the relay loses too many packets.
    private(set) var thinning = RelayThinning()

    /// The time between two updates of lists because of measured bitrates. What affects the choice of layers is sent at once.
    private static let updateInterval = MediaInterval.milliseconds(100)

    init(_ connection: RelayConnection, feeds: FeedTable, carriesPublishers: Bool) {
        (self.connection, self.feeds, self.carriesPublishers) = (connection, feeds, carriesPublishers)
    }

    private var output: RouterOutput { connection.output }

    // MARK: Demand

    func receive(_ demand: RelayDemand, now: MediaTime) {
        guard let listing = listing(of: demand.client, now: now) else { return }
        if demand.number > listing.demanded {
            listing.demanded = demand.number
            for reader in listing.readers {
                let track = demand.tracks.first { $0.id == reader.id }
                reader.apply(track ?? RelayDemand.Track(id: reader.id), now: now)
            }
        }
        connection.send(.acknowledgement(RelayAcknowledgement(.demand, of: demand.client, demand.number)))
    }

    /// Returns the list of a client's tracks. Creates and sends it if the client was not demanded before. Returns nil if the limit of
    /// clients is reached. This can happen if a demand arrives before the message that ends an earlier one (the demand is then sent again),
    /// or if the other node ignores the limit.
    private func listing(of client: Key, now: MediaTime) -> RelayListing? {
        if let known = byClient[client] { return known }
        guard listings.count < RelayMessage.maxClients else {
            connection.reached(.demands)
            return nil
        }
        let listing = RelayListing(client, after: lastListing)
        byClient[client] = listing
        listings.append(listing)
        update(listing, now: now)
        return listing
    }

    /// Nothing of a client is demanded any more.
    func end(_ client: Key, number: UInt32) {
        if let listing = byClient[client], number > listing.demanded {
            for reader in listing.readers { detach(reader) }
            byClient[client] = nil
            listings.removeAll { $0 === listing }
        }
        connection.send(.acknowledgement(RelayAcknowledgement(.demand, of: client, number)))
    }

    func acknowledged(_ client: Key, _ number: UInt32) { byClient[client]?.state.acknowledge(number) }

    /// Stops sending for good.
    func end() {
        for listing in listings { for reader in listing.readers { detach(reader) } }
        (listings, byClient) = ([], [:])
    }

    private func detach(_ reader: RelayReader) {
        reader.stop()
        reader.track.remove(reader)
    }

    // MARK: Lists

    func tick(now: MediaTime) {
        let isChanged = thinning.update(now: now) { level in
            listings.contains { $0.readers.contains { $0.drops(at: level) } }
        }
        if isChanged { for listing in listings { listing.needsUpdate = true } }
        for listing in listings { update(listing, now: now) }
    }

    /// Sends the list of a client's tracks if it has changed, or if it was not acknowledged in time.
    private func update(_ listing: RelayListing, now: MediaTime) {
        // One hop: tracks of other nodes are not sent. Tracks of other loops have relays of their own.
        let tracks = feeds.tracks(of: listing.client).filter { track in
            carriesPublishers && track.loop == nil && !track.isRemote && !track.isEnded
                && (track.kind == .audio || track.kind == .video)
        }.prefix(RelayMessage.maxTracks)
        for reader in listing.readers where !tracks.contains(where: { $0 === reader.track }) {
            detach(reader)
            listing.remove(reader)
        }
        for track in tracks where !listing.readers.contains(where: { $0.track === track }) {
            lastID &+= 1
            let reader = RelayReader(track, id: lastID, sender: self, listing: listing)
            listing.add(reader)
            track.add(reader)
        }
        if listing.needsUpdate || now - listing.updatedAt >= Self.updateInterval {
            (listing.needsUpdate, listing.updatedAt) = (false, now)
            listing.state.set(listing.readers.map { $0.state(level: thinning.level, now: now) })
        }
        guard !isPaused, listing.state.takeDue(now: now) else { return }
        lastListing = max(lastListing, listing.state.number)
        for part in listing.parts { connection.send(.listing(part)) }
    }

    // MARK: Packets

    func pause() { isPaused = true }

    /// Continues where the feeds are now. The other node cannot request what was not sent meanwhile, so videos need keyframes.
    func resume(now: MediaTime) {
        isPaused = false
        for case let channel? in channels {
            channel.resume()
            guard let feed = channel.feed, feed.track.kind == .video else { continue }
            feed.keyframes.subscriberElsewhere(.start, now: now)
            feed.track.requestKeyframeSoon()
        }
    }

    /// Assigns a channel to an encoding.
    /// - Returns: nil if the channel does not exist, or if the other node has demanded another encoding in it too.
    func begin(_ feed: Feed, of reader: RelayReader, in number: UInt16) -> RelayChannel? {
        guard number < RelayChannels.count else { return nil }
        let channel = channels[Int(number)] ?? RelayChannel(number)
        channels[Int(number)] = channel
        return channel.begin(feed) ? channel : nil
    }

    func send(_ report: SourceReport, on channel: RelayChannel) {
        if !isPaused { connection.send(report, ssrc: channel.ssrc) }
    }

    /// Adds a packet to the next flush. Its memory is valid until then. A channel holds only packets that arrived since the previous flush.
    func add(_ packet: FeedPacket, to channel: RelayChannel) {
        guard !isPaused else { return }
        if channel.pending.isEmpty { unflushed.append(channel) }
        channel.pending.append(packet)
    }

    /// Sends the packets that have arrived since the previous flush. The kernel takes consecutive packets of equal size to one
    /// destination in one message, which costs much less. So all packets of a relay are sent together, and audio, whose packets are
    /// shorter, comes last.
    func flush() {
        guard !unflushed.isEmpty else { return }
        flush(.video)
        flush(.audio)
        unflushed.removeAll(keepingCapacity: true)
    }

    private func flush(_ kind: MediaKind) {
        for channel in unflushed where channel.feed?.track.kind == kind { flush(channel) }
    }

    /// Begins a pause, in which no packets of the channel arrive. Sends the waiting packets first, because they precede the pause.
    func beginPause(of channel: RelayChannel) {
        flush(channel)
        channel.numbers.begin()
    }

    private func flush(_ channel: RelayChannel) {
        if channel.feed?.track.kind == .video { channel.pending.equalize() }
        for packet in channel.pending { send(packet, on: channel) }
        channel.pending.removeAll(keepingCapacity: true)
    }

    /// Sends a packet. One that arrived late is sent as a retransmission, so that no subscriber starts with it.
    private func send(_ packet: FeedPacket, on channel: RelayChannel) {
        guard !isPaused else { return }
        if packet.isRecovered {
            guard let number = channel.numbers.known(packet.sequence) else { return }
            _ = repair(packet.packet, packet.bytes, number: number, on: channel)
            return
        }
        guard let path = connection.transport.selectedPath, let number = channel.numbers.number(packet.sequence) else {
            return
        }
        let memory = output.sink.prepare(packet.bytes.count + RouterOutput.maxGrowth)
        let headerLength = writeHeader(
            of: packet.packet, packet.bytes, payloadType: packet.packet.payloadType, number: number, ssrc: channel.ssrc,
            channel, into: memory)
        let (payload, padding) = (packet.payload, Int(packet.padding))
        if padding > 0 { memory[0] |= 0x20 }
        guard headerLength > 0,
            let length = connection.transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(start: nil, count: 0),
                payload: UnsafeRawBufferPointer(start: payload.baseAddress, count: payload.count + padding))
        else {
            output.counters.packetsDropped &+= 1
            return
        }
        output.sink.send(length, on: path)
        output.counters.packetsRelayed &+= 1
        channel.noteSent()
        channel.budget.earn(length)
    }

    /// Writes a packet's header with the extensions that are forwarded, whose ids do not change.
    private func writeHeader(
        of packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, payloadType: UInt8, number: UInt16, ssrc: UInt32,
        _ channel: RelayChannel, into memory: UnsafeMutableRawBufferPointer
    ) -> Int {
        var header = RTPHeaderWriter(
            into: memory, payloadType: payloadType, marker: packet.marker, sequenceNumber: number,
            timestamp: packet.timestamp, ssrc: ssrc, twoByteExtensions: packet.extensionProfile & 0xfff0 == 0x1000)
        if let track = channel.feed?.track, track.forwardsExtensions {
            packet.forEachHeaderExtension(in: bytes) { id, range in
                guard track.forwardsExtension(id) else { return }
                header.addExtension(id: id, bytes: UnsafeRawBufferPointer(rebasing: bytes[range]))
            }
        }
        return header.finish()
    }

    // MARK: Feedback of the other node

    /// Handles the other node's receiver reports about the channels.
    func receive(_ report: RTCP.ReceiverReport, now: MediaTime) {
        for block in report.blocks {
            guard let channel = channel(block.ssrc), channel.ssrc == block.ssrc, let news = channel.measure(block)
            else { continue }
            thinning.add(sent: news.sent, lost: news.lost, now: now)
        }
    }

    /// The other node needs a keyframe of one of its channels.
    func requestKeyframe(_ ssrc: UInt32, _ need: KeyframeRequests.Need, now: MediaTime) {
        guard let feed = channel(ssrc)?.feed else { return }
        feed.keyframes.subscriberElsewhere(need, now: now)
        feed.track.requestKeyframeSoon()
    }

    func retransmit(_ nack: RTCP.NACK, now: MediaTime) {
        guard !isPaused, let channel = channel(nack.media), let feed = channel.feed, feed.track.kind == .video else {
            return
        }
        for number in nack.lost {
            output.counters.nacksReceived &+= 1
            retransmit(number, of: feed, on: channel, now: now)
        }
    }

    private func retransmit(_ number: UInt16, of feed: Feed, on channel: RelayChannel, now: MediaTime) {
        guard let sequence = channel.numbers.sequence(of: number) else { return }
        guard let (bytes, packet) = feed.history?.packet(sequence, now: now) else {
            // As for a subscriber: a packet that has not arrived from the publisher may still arrive.
            if feed.history?.isPast(sequence) ?? false { feed.keyframes.packetTooOld(now: now) }
            return
        }
        guard channel.mayRepeat(sequence, now: now) else { return }
        guard channel.budget.spend(bytes.count + Self.repairGrowth) else {
            return feed.keyframes.tooManyRetransmissions(now: now)
        }
        if repair(packet, bytes, number: number, on: channel) { output.counters.packetsRetransmitted &+= 1 }
    }

    /// Sends a packet in the stream of retransmissions (RFC 4588 §4).
    /// - Returns: whether it was sent.
    private func repair(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, number: UInt16, on channel: RelayChannel)
        -> Bool
    {
        guard let path = connection.transport.selectedPath,
            let payloadType = channel.repairPayloadType(of: packet.payloadType)
        else { return false }
        let memory = output.sink.prepare(bytes.count + RouterOutput.maxGrowth)
        channel.repairNumber &+= 1
        let headerLength = writeHeader(
            of: packet, bytes, payloadType: payloadType, number: channel.repairNumber, ssrc: channel.ssrc + 1, channel,
            into: memory)
        let payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        let length = withUnsafeTemporaryAllocation(byteCount: 2, alignment: 2) { prefix -> Int? in
            prefix.storeBytes(of: number.bigEndian, as: UInt16.self)
            guard headerLength > 0 else { return nil }
            return connection.transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(prefix), payload: payload)
        }
        guard let length else { return false }
        output.sink.send(length, on: path)
        return true
    }

    /// The number of bytes that a retransmission adds: the original sequence number and the longest SRTP tag.
    private static let repairGrowth = 2 + 16

    private func channel(_ ssrc: UInt32) -> RelayChannel? {
        RelayChannels.channel(of: ssrc).flatMap { channels[Int($0)] }
    }
}

/// The tracks of a client whose streams the other node demands.
final class RelayListing {
    let client: Key
    private(set) var readers: [RelayReader] = []
    var state: NumberedState<[RemoteTrackState]>
    /// The number of the newest demand.
    var demanded: UInt32 = 0
    /// Whether anything but measured rates may have changed.
    var needsUpdate = true
    var updatedAt = MediaTime(nanoseconds: 0)

    init(_ client: Key, after former: UInt32) {
        self.client = client
        state = NumberedState([], after: former)
    }

    func add(_ reader: RelayReader) {
        readers.append(reader)
        needsUpdate = true
    }

    func remove(_ reader: RelayReader) {
        readers.removeAll { $0 === reader }
        needsUpdate = true
    }

    /// The messages that contain the list.
    var parts: [RelayListingPart] {
        let tracks = state.value
        guard !tracks.isEmpty else {
            return [RelayListingPart(client: client, number: state.number, index: 0, count: 0, track: nil)]
        }
        return tracks.enumerated().map { index, track in
            RelayListingPart(
                client: client, number: state.number, index: UInt8(index), count: UInt8(tracks.count), track: track)
        }
    }
}

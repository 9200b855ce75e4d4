import RTC

/// The streams that this node receives over a relay: those of the other node's publishers that this node demands.
final class RelayReceiver {
    private let connection: RelayConnection
    private let ingress: Ingress
    private let streams: Streams
    /// The clients that are demanded, in the order in which that began, and by their keys.
    private var publishers: [RemotePublisher] = []
    private var byClient: [Key: RemotePublisher] = [:]
    /// The number of clients demanded so far.
    private var begun = 0
    /// The publishers whose demand may have changed since the last flush, in any order.
    private var changed: [RemotePublisher] = []
    /// Clients that are no longer demanded, until the other node has acknowledged this.
    private var ending: [RemotePublisher] = []
    /// Clients that are demanded when there is room for them.
    private var waiting = ClientOrder()
    private var channels = RelayChannels()
    /// For each channel that is in use, whose packets it carries.
    private var owners = [RemotePublisher?](repeating: nil, count: RelayChannels.count)
    /// The highest number of a demand.
    private var lastDemand: UInt32 = 0

    init(_ connection: RelayConnection, ingress: Ingress, streams: Streams) {
        (self.connection, self.ingress, self.streams) = (connection, ingress, streams)
    }

    // MARK: Demand

    /// Demands a client's streams, or lets the client wait until there is room.
    func pull(_ client: Key, now: MediaTime) {
        guard byClient[client] == nil else { return }
        guard waiting.isEmpty, room > 0 else {
            if waiting.insert(client) { connection.reached(.clients) }
            return
        }
        begin(client, now: now)
    }

    /// The number of additional clients that can be demanded. Clients whose end is not acknowledged still count, because the other node
    /// keeps them until then.
    private var room: Int { RelayMessage.maxClients - publishers.count - ending.count }

    private func begin(_ client: Key, now: MediaTime) {
        begun += 1
        let publisher = RemotePublisher(
            client, at: begun, over: connection.link, ingress: ingress, receiver: self, after: lastDemand)
        byClient[client] = publisher
        publishers.append(publisher)
        publisher.updateDemand(now: now)
        note(publisher)
    }

    /// Ends a client's streams.
    func stopPulling(_ client: Key, now: MediaTime) {
        waiting.remove(client)
        guard let publisher = byClient.removeValue(forKey: client) else { return }
        publishers.removeAll { $0 === publisher }
        publisher.end(now: now)
        streams.relinkAll(client, .send)
        ending.append(publisher)
        note(publisher)
    }

    private func note(_ publisher: RemotePublisher) { lastDemand = max(lastDemand, publisher.number) }

    /// Sends what has changed, before the ingress requests keyframes of encodings that are demanded only now. Called in each iteration
    /// of the loop, so it looks only at publishers that have something to send.
    func flush(now: MediaTime) {
        guard !changed.isEmpty else { return }
        let due = changed.sorted { $0.ordinal < $1.ordinal }
        changed = []
        // Skip publishers whose demand a tick has already sent, or whose streams have ended.
        for publisher in due where publisher.publisher.isDemandChanged && byClient[publisher.client] === publisher {
            publisher.updateDemand(now: now)
            note(publisher)
        }
    }

    func tick(now: MediaTime) {
        for publisher in publishers {
            publisher.tick(now: now)
            note(publisher)
        }
        ending.removeAll { $0.isOver }
        for publisher in ending { publisher.tick(now: now) }
        for client in waiting.takeFirst(room) { begin(client, now: now) }
    }

    func receive(_ part: RelayListingPart, now: MediaTime) {
        guard let publisher = byClient[part.client] else {
            // A demand arrived after its end. The other node must stop sending.
            guard !ending.contains(where: { $0.client == part.client }) else { return }
            lastDemand &+= 1
            return connection.send(.end(client: part.client, number: lastDemand))
        }
        guard let number = publisher.receive(part, now: now) else { return }
        connection.send(.acknowledgement(RelayAcknowledgement(.listing, of: part.client, number)))
    }

    func acknowledged(_ client: Key, _ number: UInt32, now: MediaTime) {
        byClient[client]?.acknowledged(number, now: now)
        for publisher in ending where publisher.client == client { publisher.acknowledged(number, now: now) }
    }

    // MARK: For remote publishers

    func send(_ message: RelayMessage) { connection.send(message) }

    /// The demand of a publisher's tracks may have changed.
    func demandChanged(_ publisher: RemotePublisher) { changed.append(publisher) }

    /// An encoding waits for a channel.
    func noteWait() { connection.reached(.encodings) }

    /// Lets subscribers find the tracks of a publisher.
    func enter(_ publisher: Publisher) {
        publisher.enter()
        streams.relinkAll(publisher.link.client, .send)
    }

    func takeChannel(for publisher: RemotePublisher, now: MediaTime) -> UInt16? {
        guard let channel = channels.take(now: now) else { return nil }
        owners[Int(channel)] = publisher
        return channel
    }

    /// Drops the packets of a channel that is not demanded any more.
    func drop(_ channel: UInt16) { owners[Int(channel)] = nil }

    /// Lets another encoding use a channel.
    func release(_ channel: UInt16, now: MediaTime) { channels.release(channel, now: now) }

    // MARK: Packets

    /// - Parameter spare: how many bytes after the packet may be overwritten.
    func receive(_ bytes: UnsafeRawBufferPointer, spare: Int, now: MediaTime, arrivedAt: MediaTime) {
        guard bytes.count >= RTPPacket.fixedHeaderLength, let publisher = owner(bytes.bigEndian32(at: 8)) else {
            ingress.output.counters.packetsDropped &+= 1
            return
        }
        publisher.publisher.receiveMedia(bytes, spare: spare, now: now, arrivedAt: arrivedAt)
    }

    func receive(_ report: RTCP.SenderReport, now: MediaTime) {
        owner(report.info.ssrc)?.publisher.receiveControl(.senderReport(report), now: now)
    }

    private func owner(_ ssrc: UInt32) -> RemotePublisher? {
        RelayChannels.channel(of: ssrc).flatMap { owners[Int($0)] }
    }

    // MARK: Life

    func pause() { for publisher in publishers { publisher.pause() } }

    func resume() { for publisher in publishers { publisher.resume() } }

    /// Ends all streams, because the connection is lost.
    func end(now: MediaTime) {
        waiting = ClientOrder()
        for publisher in publishers { stopPulling(publisher.client, now: now) }
        ending = []
    }
}

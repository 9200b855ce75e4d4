import RTC

/// Determines which encodings of a track are being received.
extension IncomingTrack {
    /// How long an encoding may send nothing, while another encoding of the same track continues, before it is considered dead.
    /// If all stop together, because of the network or a still screen, none is considered dead.
    static let lifetime = MediaInterval.milliseconds(500)

    private var newestPacketAt: MediaTime? {
        var newest: MediaTime?
        for encoding in encodings {
            if let at = encoding.lastPacketAt { newest = newest.map { max($0, at) } ?? at }
        }
        return newest
    }

    private func isAlive(_ encoding: IncomingEncoding, _ newest: MediaTime?) -> Bool {
        guard let newest, let at = encoding.lastPacketAt else { return false }
        return newest - at <= Self.lifetime
    }

    func updateLiveness() {
        // The publisher's node says which layers are alive. This node receives only those that it demands.
        guard !publisher.isRemote else { return }
        let newest = newestPacketAt
        for encoding in encodings { feedTrack.layers[encoding.feed.index].isAlive = isAlive(encoding, newest) }
    }

    /// How long a needed layer may take to arrive before it is considered missing, and for how long it is then
    /// considered missing.
    private static let (arrivalTimeout, absence) = (MediaInterval.seconds(3), MediaInterval.seconds(10))

    /// Marks layers that the publisher does not send although subscribers need them, for example because its connection
    /// is slow. The allocation must not reserve bitrate for these.
    func noteMissingLayers(now: MediaTime) {
        guard encodings.count > 1 else { return }
        for index in feedTrack.layers.indices {
            let isWanted = feedTrack.demand.wanted >> UInt8(index) & 1 == 1
            feedTrack.layers[index].wantedSince = isWanted ? feedTrack.layers[index].wantedSince ?? now : nil
            if feedTrack.layers[index].isAlive { feedTrack.layers[index].isMissingUntil = nil }
            guard !feedTrack.layers[index].isAlive, let since = feedTrack.layers[index].wantedSince,
                now - since > Self.arrivalTimeout
            else {
                continue
            }
            feedTrack.layers[index].isMissingUntil = now + Self.absence
            feedTrack.layers[index].wantedSince = now
        }
    }

    /// Whether an encoding that was being received has stopped while another one continues.
    var hasFallenSilent: Bool {
        guard encodings.count > 1 else { return false }
        let newest = newestPacketAt
        return encodings.contains { feedTrack.layers[$0.feed.index].isAlive && !isAlive($0, newest) }
    }
}

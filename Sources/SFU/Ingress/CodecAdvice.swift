import RTC

/// Decides which codec a publisher should send if some of its subscribers cannot decode the one that it chose.
///
/// The advice is the offered codec that the most subscribers can decode, usually all. It stays in effect after the
/// publisher has followed it, because otherwise the publisher would return to its own codec, the one that it sends
/// without advice, and be refused again. The advice ends once no other codec has suited more subscribers than the
/// publisher's own for `releaseDelay`, or without that delay if the publisher's own codec suits more subscribers than
/// the advised one.
struct CodecAdvice: Sendable {
    /// How long the publisher's own codec must suit the subscribers before the advice ends. People hide and show videos, and
    /// each change costs a keyframe.
    static let releaseDelay = MediaInterval.seconds(10)
    /// How long a publisher may take to return to its own codec after the advice has ended. Afterwards, the codec that
    /// it still sends counts as its own.
    static let returnTime = MediaInterval.seconds(5)
    /// The minimum time between two changes after the first, because each causes a negotiation and a keyframe.
    static let changeInterval = MediaInterval.seconds(2)

    /// The payload type of the codec to send; nil if the publisher's own codec is fine.
    private(set) var payloadType: UInt8?
    /// The payload type of the publisher's own codec: the one that it sends without advice.
    private var own: UInt8?
    private var suitsSince: MediaTime?
    /// The payload type of the advice that has ended; nil once the publisher has returned to its own codec.
    private var ended: UInt8?
    /// When the advice ended; nil once the publisher has returned to its own codec.
    private var endedAt: MediaTime?
    private var changedAt: MediaTime?
    /// Whether a change is delayed because the previous one was too recent.
    private var isHeld = false

    /// Whether the advice may change just because time passes.
    var isEnding: Bool { suitsSince != nil || ended != nil || isHeld }

    /// Updates the advice from the current codecs and subscribers.
    /// - Parameters:
    ///   - sent: the payload type currently received.
    ///   - codecs: the codecs that the publisher offers, the preferred one first.
    ///   - decoders: returns how many subscribers can decode the codec with this index.
    mutating func update(sent: UInt8, of codecs: [Codec], now: MediaTime, decoders: (Int) -> Int) {
        if payloadType == nil, sent != ended || endedAt.map({ now - $0 >= Self.returnTime }) ?? true {
            (own, ended) = (sent, nil)
        }
        isHeld = false
        guard let ownIndex = codecs.firstIndex(where: { $0.payloadType == own }) else {
            // The offer no longer contains the publisher's codec, so start over.
            self = CodecAdvice()
            return
        }
        let ownDecoders = decoders(ownIndex)
        // If several codecs suit equally many subscribers, prefer the publisher's own kind of codec, such as another
        // profile of H.264.
        var best = (index: ownIndex, decoders: ownDecoders)
        for prefersOwnKind in [true, false] {
            for index in codecs.indices where codecs[index].isRelated(to: codecs[ownIndex]) == prefersOwnKind {
                let count = decoders(index)
                if count > best.decoders { best = (index, count) }
            }
        }
        let present = codecs.firstIndex { $0.payloadType == payloadType }.map(decoders) ?? 0
        guard best.decoders > ownDecoders else { return end(now: now, isUrgent: present < ownDecoders) }
        suitsSince = nil
        guard best.decoders > present, mayChange(now: now) else { return }
        (payloadType, ended, endedAt) = (codecs[best.index].payloadType, nil, nil)
    }

    private mutating func mayChange(now: MediaTime) -> Bool {
        isHeld = changedAt.map { now - $0 < Self.changeInterval } ?? false
        if !isHeld { changedAt = now }
        return !isHeld
    }

    /// Ends the advice once the publisher's own codec has suited the subscribers for `releaseDelay`, or without that
    /// delay if `isUrgent`. In both cases, at least `changeInterval` must have passed since the previous change.
    /// - Parameter isUrgent: whether fewer subscribers can decode the advised codec than the publisher's own.
    private mutating func end(now: MediaTime, isUrgent: Bool) {
        guard payloadType != nil else { return }
        let since = suitsSince ?? now
        suitsSince = since
        guard isUrgent || now - since >= Self.releaseDelay, mayChange(now: now) else { return }
        (ended, endedAt) = (payloadType, now)
        (payloadType, suitsSince) = (nil, nil)
    }
}

extension Codec {
    /// Returns whether `other` is the same codec, possibly with different parameters.
    fileprivate func isRelated(to other: Codec) -> Bool {
        switch (kind, other.kind) {
        case (.h264, .h264), (.vp9, .vp9), (.av1, .av1): true
        default: kind == other.kind
        }
    }
}

extension MediaTime {
    fileprivate static let distantPast = MediaTime(nanoseconds: .min)
}

extension IncomingTrack {
    /// Updates the advice for the codec that the publisher sends now. Does nothing if that codec is not known yet.
    func updateAdvice(now: MediaTime) {
        needsAdvice = false
        let newest = encodings.filter { $0.feed.codec != nil }.max { one, other in
            (one.lastPacketAt ?? .distantPast) < (other.lastPacketAt ?? .distantPast)
        }
        guard let sent = newest?.feed.codec, feedTrack.codecs.indices.contains(sent) else { return }
        advice.update(sent: feedTrack.codecs[sent].payloadType, of: feedTrack.codecs, now: now) {
            feedTrack.decoders(of: $0)
        }
    }
}

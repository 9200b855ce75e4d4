/// Compares the times between groups of packets at the sender and at the receiver (draft-ietf-rmcat-gcc-02 §5.2, §5.3).
///
/// Packets that were sent within a few milliseconds form a group, because a frame is sent in a burst whose internal
/// timing reveals nothing about the path. As in libwebrtc's `InterArrivalDelta`, packets that the network held back and
/// delivered together also form one group.
struct PacketGroups: Sendable {
    /// The maximum time between the first and the last packet of a group, at the sender.
    private static let span = MediaInterval.milliseconds(5)
    /// Packets that arrive closer together than this, after having been sent further apart, were held back by the network.
    private static let burst = MediaInterval.milliseconds(5)
    private static let longestBurst = MediaInterval.milliseconds(100)

    /// The send and arrival times of the packets of one group.
    private struct Group {
        var firstSent: MediaTime
        var lastSent: MediaTime
        var firstArrival: MediaInterval
        var lastArrival: MediaInterval
    }

    private var current: Group?
    private var previous: Group?

    /// The differences between two successive groups.
    struct Difference: Equatable {
        /// How much later the second group was sent than the first.
        var sent: MediaInterval
        /// How much later the second group arrived than the first.
        var arrived: MediaInterval
        /// When the second group arrived, by the receiver's clock.
        var arrival: MediaInterval
    }

    /// Adds a packet, in the order of sending.
    /// - Returns: the difference between the two previous groups, if the packet starts a new group; otherwise nil.
    ///   Also nil until there are two previous groups.
    @inline(__always)
    mutating func add(sentAt: MediaTime, arrival: MediaInterval) -> Difference? {
        guard let group = current else {
            current = Group(firstSent: sentAt, lastSent: sentAt, firstArrival: arrival, lastArrival: arrival)
            return nil
        }
        // Ignore packets of a finished group. A report that arrives late contains such packets.
        guard sentAt >= group.firstSent else { return nil }
        if belongs(sentAt, arrival, to: group) {
            current?.lastSent = max(group.lastSent, sentAt)
            current?.lastArrival = max(group.lastArrival, arrival)
            return nil
        }
        let difference = previous.map {
            Difference(
                sent: group.lastSent - $0.lastSent, arrived: group.lastArrival - $0.lastArrival,
                arrival: group.lastArrival)
        }
        previous = group
        current = Group(firstSent: sentAt, lastSent: sentAt, firstArrival: arrival, lastArrival: arrival)
        return difference
    }

    private func belongs(_ sentAt: MediaTime, _ arrival: MediaInterval, to group: Group) -> Bool {
        if sentAt - group.firstSent <= Self.span { return true }
        let apart = arrival - group.lastArrival
        return apart <= Self.burst && apart < sentAt - group.lastSent
            && arrival - group.firstArrival < Self.longestBurst
    }
}

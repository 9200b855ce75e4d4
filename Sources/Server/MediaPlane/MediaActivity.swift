import Signaling
import Synchronization

/// What a media loop is doing. The loop's thread writes it, and any thread may read it.
///
/// It is one atomic word without a time. The loop writes it a few times per wake-up, never once per packet.
final class MediaActivity: Sendable {
    /// What a loop does in one pass.
    enum Phase: UInt8, CaseIterable, Sendable {
        case starting
        /// Waiting for datagrams, requests or the next tick.
        case waiting
        /// Reading from sockets, and passing what arrived to the router.
        case reading
        /// Carrying out a request.
        case request
        case ticking
        case flushing
        case sending
        /// Passing events to the receiver.
        case reporting
        case ended
    }

    /// The loop's phase at one moment.
    struct Snapshot: Equatable, Sendable {
        var phase = Phase.starting
        /// The request that the loop carries out in the phase `request`.
        var request: MediaRequestKind?
        /// The number of phases that the loop has entered, modulo 2^48. A loop that runs changes it in each pass.
        var moves: UInt64 = 0
    }

    /// From the lowest bit: 8 bits for the phase, 8 for the kind of request (0 is none), 48 for the moves.
    private let word = Atomic<UInt64>(0)

    /// Call on the loop's thread.
    func enter(_ phase: Phase, _ request: MediaRequestKind? = nil) {
        // One thread writes, so this needs no atomic addition.
        let moves = (word.load(ordering: .relaxed) >> 16) &+ 1
        let kind = UInt64(request?.rawValue ?? 0)
        word.store(moves << 16 | kind << 8 | UInt64(phase.rawValue), ordering: .relaxed)
    }

    var snapshot: Snapshot {
        let word = word.load(ordering: .relaxed)
        return Snapshot(
            phase: Phase(rawValue: UInt8(truncatingIfNeeded: word)) ?? .starting,
            request: MediaRequestKind(rawValue: UInt8(truncatingIfNeeded: word >> 8)), moves: word >> 16)
    }
}

/// What a request to a media loop does: a command of the hub, or a request of the media plane.
enum MediaRequestKind: UInt8, CaseIterable, Sendable {
    case offer = 1
    case close, estimate, leave, publish, update, unpublish, subscribe, unsubscribe
    case heartbeat, adopt, finish, record, relay

    init(_ command: MediaCommand) {
        self =
            switch command {
            case .offer: .offer
            case .close: .close
            case .estimate: .estimate
            case .leave: .leave
            case .publish: .publish
            case .update: .update
            case .unpublish: .unpublish
            case .subscribe: .subscribe
            case .unsubscribe: .unsubscribe
            }
    }
}

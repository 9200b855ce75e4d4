import Cluster
import Wire

/// Another member of the session as seen by a client of PerchRTC's protocol, and the negotiation with that member.
///
/// In each pair, one member makes all offers, because a PerchRTC client does not answer offers on a connection that it
/// started. If the other member is a native client, this client makes them: its connection ID is higher, so the native
/// client waits for its first offer. Of two clients of PerchRTC's protocol, the one that joined the session first
/// makes them, as in PerchRTC itself. The server sends the offering client `peer_connected`, and repeats it until
/// there is an answer.
struct PerchPair: Equatable, Sendable {
    /// How long to give a native client to publish its streams before this client is asked for its first offer.
    private static let settling: Duration = .milliseconds(300)
    /// The pause before `peer_connected` is repeated. Doubled each time, up to `longestPause`.
    private static let shortestPause: Duration = .seconds(5)
    private static let longestPause: Duration = .seconds(40)

    /// The other member's user ID, as sent to this client.
    let user: String
    /// Whether the other member also uses PerchRTC's protocol.
    let isPerch: Bool
    /// Whether this client makes the offers.
    let offers: Bool
    /// The native client's streams that this client can show, oldest first. This client subscribes only to the first.
    var streams: [StreamID] = []
    /// The stream that this client subscribes to; nil if there is none.
    var subscribed: StreamID?
    /// The id of the current peer connection, chosen by the offering client; nil if there is no peer connection.
    private(set) var connection: String?
    /// The number of the latest offer on this peer connection.
    private(set) var offerNumber = 0
    /// When to send or repeat `peer_connected`; nil if neither is necessary.
    private(set) var dueAt: Timestamp?
    /// When `peer_connected` was last sent; nil if it was not sent yet.
    private var announcedAt: Timestamp?
    private var announcements = 0

    init(user: String, isPerch: Bool, offers: Bool) { (self.user, self.isPerch, self.offers) = (user, isPerch, offers) }

    /// Whether `peer_connected` was sent. If so, the client may already have a peer connection.
    var isAnnounced: Bool { announcements > 0 }

    /// If this client makes the offers, schedules the first `peer_connected`, unless that was already scheduled or
    /// sent. Called when a native client has something to send or receive, or when another client of this protocol
    /// joined.
    mutating func begin(now: Timestamp) {
        guard offers, !isAnnounced, dueAt == nil else { return }
        dueAt = now + (isPerch ? .zero : Self.settling)
    }

    /// Schedules another `peer_connected`, for example because a native client has published more streams. Does
    /// nothing if this client does not make the offers, or if the negotiation has not started or is still in progress.
    mutating func beginAgain(now: Timestamp) {
        guard offers, isAnnounced, dueAt == nil else { return }
        let earliest = (announcedAt ?? now) + Self.shortestPause
        dueAt = max(now, earliest)
    }

    /// Records that `peer_connected` was sent.
    mutating func announced(now: Timestamp) {
        announcements += 1
        announcedAt = now
        connection = nil
        dueAt = now + pause
    }

    private var pause: Duration {
        min(Self.longestPause, Self.shortestPause * (1 << min(max(announcements - 1, 0), 3)))
    }

    /// Records an offer. An offer with a new id starts a new peer connection, which replaces the previous one. Offers
    /// are counted separately for each peer connection.
    mutating func offered(_ connection: String, now: Timestamp) {
        if connection != self.connection { offerNumber = 0 }
        self.connection = connection
        offerNumber = min(offerNumber + 1, Limits.offerNumber)
        if offers { dueAt = now + pause }
    }

    /// Records that the offer was answered. `peer_connected` is then not repeated, and later pauses are short again.
    mutating func answered() {
        dueAt = nil
        announcements = min(announcements, 1)
    }

    /// Records that one of the two members closed or refused the peer connection. If this client makes the offers,
    /// schedules another `peer_connected`.
    mutating func closed(now: Timestamp) {
        connection = nil
        if offers { dueAt = now + pause }
    }
}

extension ConnectionID {
    /// Returns an id for a client of PerchRTC's protocol. It is higher than those of native clients, so that native clients are the polite
    /// peer and wait for its offer (protocol §4).
    ///
    /// - Parameters:
    ///   - node: the client's node; nil without a cluster. Its tag is at the beginning of the id's lower half. This leaves only 24 bits. If
    ///     they were random, a client could soon get the id of one that has just left, and with it messages that are still in transit.
    ///   - number: the number of the client on its node. After 2^24 clients, ids repeat, so the caller must check that the id is unused.
    static func perch(
        at node: NodeTag?, number: UInt64, using generator: inout some RandomNumberGenerator
    ) -> ConnectionID {
        guard let node else { return ConnectionID(high: .max, low: generator.next()) }
        return ConnectionID(high: .max, low: node.rawValue << 24 | number & 0xFF_FFFF)
    }

    /// Whether this ID belongs to a client of PerchRTC's protocol. A random ID matches by chance only once in 2^64.
    var isPerch: Bool { high == .max }
}

/// The user IDs of the other members, for one client.
///
/// A client uses its device's name as its own user ID, and ignores other users with the same ID. IDs are therefore
/// chosen per client: the client's own ID is its name, and other members with that name get a number.
struct PerchUsers: Equatable, Sendable {
    private let own: String
    private var ids: [ConnectionID: String] = [:]

    init(own: String) { self.own = own }

    subscript(member: ConnectionID) -> String? { ids[member] }

    func member(_ user: String) -> ConnectionID? { ids.first { $0.value == user }?.key }

    /// Returns the member's user ID. If the member has none yet, chooses one that neither this client nor another
    /// member currently has.
    mutating func add(_ member: ConnectionID, named name: String) -> String {
        if let id = ids[member] { return id }
        let base = Self.cleaned(name)
        var (id, number) = (base, 1)
        while id == own || ids.values.contains(id) {
            number += 1
            id = "\(base)~\(number)"
        }
        ids[member] = id
        return id
    }

    mutating func remove(_ member: ConnectionID) { ids[member] = nil }

    /// Replaces `/` with `-`, because messages in the layered form (`PerchEnvelope.layered`) contain the room and the
    /// user ID joined by `/`. An empty name becomes `guest`.
    private static func cleaned(_ name: String) -> String {
        let text = String(name.map { $0 == "/" ? "-" : $0 })
        return text.isEmpty ? "guest" : text
    }
}

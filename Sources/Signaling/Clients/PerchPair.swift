import Wire

/// Another member of the session, as a client of PerchRTC's protocol knows it, and the negotiation with it.
///
/// Of each pair, exactly one end makes all offers. Towards a native client it is always this one, because PerchRTC's clients do not
/// answer offers on a connection that they began. Of two clients of PerchRTC's protocol, it is the one that was in the session
/// first, as in the original. A client that offers is told to begin with `peer_connected`, and told again until it has an answer.
struct PerchPair: Equatable, Sendable {
    /// How long the streams of a native client may take to be published before the first offer.
    private static let settling: Duration = .milliseconds(300)
    /// The pause before a client is told to begin again. Doubled each time, up to `longestPause`.
    private static let shortestPause: Duration = .seconds(5)
    private static let longestPause: Duration = .seconds(40)

    /// The user id of the other member, for this client.
    let user: String
    /// Whether the other member uses PerchRTC's protocol too.
    let isPerch: Bool
    /// Whether this client makes the offers.
    let offers: Bool
    /// The streams of a native client that this one can show, oldest first. It gets the first.
    var streams: [StreamID] = []
    var subscribed: StreamID?
    /// The current peer connection, as the client that offers named it.
    private(set) var connection: String?
    /// The number of its last offer.
    private(set) var offerNumber = 0
    /// When to tell the client to begin, or to begin again; nil if nothing is missing.
    private(set) var dueAt: Timestamp?
    /// When the client was last told to begin.
    private var toldAt: Timestamp?
    private var timesTold = 0

    init(user: String, isPerch: Bool, offers: Bool) { (self.user, self.isPerch, self.offers) = (user, isPerch, offers) }

    /// Whether the client was told to begin, so that it may have a peer connection.
    var wasTold: Bool { timesTold > 0 }

    /// Another native client has something to send or to receive, or another client of this protocol is there.
    mutating func begin(now: Timestamp) {
        guard offers, !wasTold, dueAt == nil else { return }
        dueAt = now + (isPerch ? .zero : Self.settling)
    }

    /// The negotiation has to begin again, for example because a native client has more streams than before.
    mutating func beginAgain(now: Timestamp) {
        guard offers, wasTold, dueAt == nil else { return }
        let earliest = (toldAt ?? now) + Self.shortestPause
        dueAt = max(now, earliest)
    }

    /// The client is told to begin now.
    mutating func told(now: Timestamp) {
        timesTold += 1
        toldAt = now
        connection = nil
        dueAt = now + pause
    }

    private var pause: Duration {
        min(Self.longestPause, Self.shortestPause * (1 << min(max(timesTold - 1, 0), 3)))
    }

    /// An offer was made. If it begins another peer connection, everything about the previous one is outdated.
    mutating func offered(_ connection: String, now: Timestamp) {
        if connection != self.connection { offerNumber = 0 }
        self.connection = connection
        offerNumber = min(offerNumber + 1, Limits.offerNumber)
        if offers { dueAt = now + pause }
    }

    /// The offer was answered.
    mutating func answered() {
        dueAt = nil
        timesTold = min(timesTold, 1)
    }

    /// One of the ends closed or refused the peer connection.
    mutating func closed(now: Timestamp) {
        connection = nil
        if offers { dueAt = now + pause }
    }
}

extension ConnectionID {
    /// Returns a random id for a client of PerchRTC's protocol. It is higher than those of native clients, so that native clients
    /// are polite towards it and wait for its offer (protocol §4).
    static func perch(using generator: inout some RandomNumberGenerator) -> ConnectionID {
        ConnectionID(high: .max, low: generator.next())
    }

    /// Whether this is such an id. A random id begins like one only once in 2^64.
    var isPerch: Bool { high == .max }
}

/// The user ids of the other members, for one client.
///
/// A client believes that its own id is the name of its device, and ignores a user with the same id. So the ids are chosen for each
/// client: its own is its name, and others of that name have a number.
struct PerchUsers: Equatable, Sendable {
    private let own: String
    private var ids: [ConnectionID: String] = [:]

    init(own: String) { self.own = own }

    subscript(member: ConnectionID) -> String? { ids[member] }

    func member(_ user: String) -> ConnectionID? { ids.first { $0.value == user }?.key }

    /// Chooses an id that no other member has at present.
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

    /// The layered form joins user ids with `/`.
    private static func cleaned(_ name: String) -> String {
        let text = String(name.map { $0 == "/" ? "-" : $0 })
        return text.isEmpty ? "guest" : text
    }
}

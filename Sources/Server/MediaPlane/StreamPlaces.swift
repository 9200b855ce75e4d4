import CSockets
import Foundation
import RTC
import Synchronization

/// The TCP connections for media of all loops, and their limits.
///
/// The loop that accepts connections takes a place for each one, and the place stays taken when the connection is
/// handed over to another loop. So the limits hold over all loops together. A lock is fast enough, because a place
/// changes only when a connection opens, closes, or passes its first connectivity check.
final class StreamPlaces: Sendable {
    /// Maximum number of TCP connections, if enough file descriptors are available. Each takes at least 16 KiB. One
    /// address (an IPv6 /56 counts as one) may have at most half of them.
    static let maxConnections = 2000
    /// Limits for unverified TCP connections, which have not passed an ICE connectivity check yet, per address and in
    /// total. An IPv6 /64 counts as one address, and a /56 may have four times as many connections as an address.
    static let maxUnverifiedPerAddress = 16
    static let maxUnverified = 1000

    /// A connection that has a place.
    private struct Place {
        let remote: TransportAddress
        var isVerified = false
    }

    /// What the lock protects.
    private struct State {
        var places: [UInt64: Place] = [:]
        var next: UInt64 = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: the maximum number of connections.
    init(limit: Int = maxConnections) { self.limit = limit }

    /// The number of connections.
    var count: Int { state.withLock { $0.places.count } }

    /// Takes a place for a new connection, which is unverified. Returns its number; nil if this address may not have
    /// one more connection.
    fileprivate func take(for remote: TransportAddress) -> UInt64? {
        state.withLock { state in
            guard hasRoom(for: remote, in: state.places) else { return nil }
            state.next += 1
            state.places[state.next] = Place(remote: remote)
            return state.next
        }
    }

    fileprivate func setVerified(_ number: UInt64, _ isVerified: Bool) {
        state.withLock { $0.places[number]?.isVerified = isVerified }
    }

    fileprivate func release(_ number: UInt64) { state.withLock { $0.places[number] = nil } }

    /// Returns whether one more unverified connection from this address is allowed.
    private func hasRoom(for remote: TransportAddress, in places: [UInt64: Place]) -> Bool {
        var (ofAll, ofBlock, ofWideBlock, verified) = (0, 0, 0, 0)
        for place in places.values {
            let nearness = place.remote.nearness(to: remote)
            if place.isVerified {
                if nearness >= .wideBlock { verified += 1 }
                continue
            }
            ofAll += 1
            if nearness >= .wideBlock { ofWideBlock += 1 }
            if nearness >= .block { ofBlock += 1 }
        }
        return places.count < limit && ofBlock < Self.maxUnverifiedPerAddress
            && ofWideBlock < IPAddress.wideFactor * Self.maxUnverifiedPerAddress
            && ofAll < min(Self.maxUnverified, limit / 2) && verified + ofWideBlock < limit / 2
    }
}

/// An accepted TCP connection for media: its descriptor and its place in `StreamPlaces`.
///
/// When the object is released, the connection is closed and its place is freed. This happens exactly once, even if the
/// connection is handed over to a loop that has ended.
final class StreamSocket: Sendable {
    let descriptor: Int32
    let remote: TransportAddress
    private let places: StreamPlaces
    private let number: UInt64

    /// Takes over a descriptor. Closes it and returns nil if its address may not have one more connection.
    init?(accepted descriptor: Int32, from remote: TransportAddress, in places: StreamPlaces) {
        guard let number = places.take(for: remote) else {
            close(descriptor)
            return nil
        }
        (self.descriptor, self.remote, self.places, self.number) = (descriptor, remote, places, number)
    }

    deinit {
        close(descriptor)
        places.release(number)
    }

    /// Records whether the connection belongs to a peer connection.
    func setVerified(_ isVerified: Bool) { places.setVerified(number, isVerified) }
}

extension TransportAddress {
    /// The smallest block that contains two addresses. The cases are in order from no block to the smallest one.
    enum Nearness: Int, Comparable {
        case other
        /// Both are in the same IPv6 /56.
        case wideBlock
        /// Both are the same IPv4 address, or are in the same IPv6 /64.
        case block

        static func < (left: Nearness, right: Nearness) -> Bool { left.rawValue < right.rawValue }
    }

    /// Returns the smallest block that contains both addresses: `limitingBlock` or `wideBlock` of `IPAddress`, if any.
    func nearness(to other: TransportAddress) -> Nearness {
        guard isIPv4 == other.isIPv4 else { return .other }
        if isIPv4 { return high == other.high && low == other.low ? .block : .other }
        if high == other.high { return .block }
        return high >> 8 == other.high >> 8 ? .wideBlock : .other
    }
}

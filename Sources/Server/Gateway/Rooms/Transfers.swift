import Datagrams
import NIOCore
import Signaling
import Wire

/// The uploads and downloads of room files in progress.
///
/// The client determines how long a transfer holds its connection. The number of transfers per address is therefore
/// limited, and each must reach a minimum rate. When all places are taken, the address with the most transfers loses
/// its oldest. The gateway closes the connections of the transfers that this type returns.
struct Transfers {
    /// The minimum rate of a transfer in bytes per second: its time limit is `graceTime` plus the time that it takes
    /// at this rate. A call uses ten times as much bandwidth.
    static let minRate = 16 * 1024
    /// Additional time for each transfer, for connections that stall for a while.
    static let graceTime = Duration.seconds(60)

    typealias Place = AddressPlaces.Place

    private var places: AddressPlaces
    private var deadlines: [Place: Timestamp] = [:]

    init(perAddress: Int, total: Int) { places = AddressPlaces(perAddress: perAddress, total: total) }

    /// Maximum number of transfers per limiting block of addresses. Lowering it does not end any transfers.
    var perAddress: Int {
        get { places.perAddress }
        set { places.perAddress = newValue }
    }

    var count: Int { places.count }

    /// Begins a transfer of `size` bytes.
    ///
    /// - Returns: the new transfer, and the one that must end to make room for it, if any.
    mutating func begin(
        _ address: IPAddress, size: Int, now: Timestamp
    ) throws(AddressPlaces.Refusal) -> (place: Place, dropped: Place?) {
        let (place, dropped) = try places.take(address)
        deadlines[place] = now + Self.graceTime + .milliseconds(Int64(size) * 1000 / Int64(Self.minRate))
        if let dropped { deadlines[dropped] = nil }
        return (place, dropped)
    }

    /// Ends a transfer. Does nothing if it has ended.
    mutating func end(_ place: Place) {
        guard deadlines.removeValue(forKey: place) != nil else { return }
        places.release(place)
    }

    /// Ends and returns the transfers that were too slow.
    mutating func takeSlow(now: Timestamp) -> [Place] {
        let slow = deadlines.filter { $0.value <= now }.map(\.key)
        for place in slow { end(place) }
        return slow
    }
}

/// Enforces the limits of uploads and downloads: `Transfers` counts, and this part of the gateway ends connections.
extension Gateway {
    /// Maximum size of the kernel's send buffer for a transfer. A larger one would take megabytes of memory for each
    /// client that does not read, and copying so much data would delay other clients.
    private static let kernelBuffer = 128 * 1024

    /// Begins a transfer of `size` bytes over this connection. Throws if the address or the server has too many
    /// transfers.
    ///
    /// - Returns: an object that ends the transfer when it is released.
    func beginTransfer(
        from address: IPAddress, size: Int, over channel: any Channel
    ) throws(WireError) -> TransferHold {
        do throws(AddressPlaces.Refusal) {
            let (place, dropped) = try transfers.begin(address, size: size, now: runner.now)
            transferChannels[place] = channel
            if let dropped { cutTransfer(dropped) }
            let unsentLimit = NIOBSDSocket.Option(rawValue: SocketOptions.unsentLimit)
            try? channel.syncOptions?.setOption(.tcpOption(unsentLimit), value: .init(Self.kernelBuffer))
            return TransferHold(place, of: NIOLoopBound(self, eventLoop: eventLoop))
        } catch {
            metrics.overBudget(.transfers)
            throw error == .address ? .tooManyTransfersOfAddress : .tooManyTransfers
        }
    }

    func endTransfer(_ place: Transfers.Place) {
        transfers.end(place)
        transferChannels[place] = nil
    }

    /// Closes the connections of transfers that are too slow. Called several times per ping interval.
    func endSlowTransfers() {
        for place in transfers.takeSlow(now: runner.now) { cutTransfer(place) }
    }

    private func cutTransfer(_ place: Transfers.Place) {
        guard let channel = transferChannels.removeValue(forKey: place) else { return }
        metrics.overBudget(.transfers)
        cut(channel)
    }
}

/// Ends a transfer when this object is released, so that a response that is never sent (to `HEAD`, or to a client that
/// is gone) holds no place.
final class TransferHold: Sendable {
    private let place: Transfers.Place
    private let gateway: NIOLoopBound<Gateway>

    init(_ place: Transfers.Place, of gateway: NIOLoopBound<Gateway>) { (self.place, self.gateway) = (place, gateway) }

    deinit {
        let (place, gateway) = (place, gateway)
        gateway.eventLoop.execute { gateway.value.endTransfer(place) }
    }
}

extension WireError {
    fileprivate static let tooManyTransfersOfAddress = WireError(
        .rateLimited, "Too many file transfers from your network. Try again in a moment.",
        retryable: true, retryAfter: .seconds(5))
    fileprivate static let tooManyTransfers = WireError(
        .rateLimited, "Too many file transfers on this server. Try again in a moment.", retryable: true,
        retryAfter: .seconds(5))
}

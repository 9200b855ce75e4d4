import Datagrams
import NIOCore
import Signaling
import Wire

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

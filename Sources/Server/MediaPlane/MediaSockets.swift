import Datagrams
import Foundation
import RTC

/// The sockets for media, opened: one for UDP and one for TCP at each address, all with one port.
struct MediaSockets {
    private(set) var sockets = MediaLoop.Sockets()
    private(set) var candidates: [Candidate] = []
    private(set) var port = 0
    private(set) var notes: [String] = []

    /// The configuration's default: when it is taken, any other will do.
    private static let defaultPort = ConfabConfiguration.Media().port

    init(_ addresses: MediaAddresses, port: Int) throws(MediaPlaneError) {
        do throws(MediaPlaneError) {
            try open(addresses, port: port)
        } catch {
            closeAll()
            guard port == Self.defaultPort else { throw error }
            try open(addresses, port: 0)
            notes.append(
                "Port \(port) is taken, so media uses \(self.port) this time. Set media.port to one that is free, and open it in "
                    + "the firewall."
            )
        }
        candidates = Self.candidates(addresses.advertised, port: self.port)
    }

    private mutating func open(_ addresses: MediaAddresses, port wanted: Int) throws(MediaPlaneError) {
        // A free UDP port may be taken for TCP: then another is tried.
        var attempts = wanted == 0 ? 16 : 1
        while true {
            attempts -= 1
            do throws(MediaPlaneError) {
                port = wanted
                for address in addresses.bound { try open(address) }
                return
            } catch {
                closeAll()
                if attempts == 0 { throw error }
            }
        }
    }

    private mutating func open(_ address: IPAddress) throws(MediaPlaneError) {
        do throws(SocketError) {
            let datagram = try SocketOptions.datagram(address.transportAddress(port: UInt16(clamping: port)))
            sockets.datagram.append((datagram, !address.isIPv4))
            if port == 0 { port = SocketOptions.port(of: datagram).map(Int.init) ?? 0 }
            let listener = try SocketOptions.listener(address.transportAddress(port: UInt16(clamping: port)))
            sockets.listeners.append(listener)
        } catch {
            throw MediaPlaneError("\(error.description)")
        }
    }

    private mutating func closeAll() {
        for socket in sockets.datagram { close(socket.descriptor) }
        for socket in sockets.listeners { close(socket) }
        sockets = MediaLoop.Sockets()
    }

    /// UDP before TCP, the first address before the others (RFC 8445 §5.1.2.1).
    private static func candidates(_ addresses: [IPAddress], port: Int) -> [Candidate] {
        addresses.enumerated().flatMap { index, address in
            [Candidate.Transport.udp, .tcpPassive].map { transport in
                let preference = UInt32(65535 - index) - (transport == .udp ? 0 : 8192)
                return Candidate(
                    foundation: "\(index + 1)\(transport == .udp ? "" : "t")", component: 1, transport: transport,
                    priority: 126 << 24 | preference << 8 | 255,
                    address: address.transportAddress(port: UInt16(clamping: port)), kind: .host
                )
            }
        }
    }
}

import Datagrams
import Foundation
import RTC

/// The open sockets for media, all on the same port: one UDP socket and one TCP listener per address in
/// `MediaAddresses.bound`, and one UDP socket per address in `answering`.
struct MediaSockets {
    private(set) var sockets = MediaLoop.Sockets()
    private(set) var candidates: [Candidate] = []
    private(set) var port = 0
    private(set) var notes: [String] = []

    /// The default port. If it is configured but in use, any free port is used instead.
    private static let defaultPort = ConfabConfiguration.Media().port

    init(_ addresses: MediaAddresses, port: Int) throws(MediaPlaneError) {
        do throws(MediaPlaneError) {
            try open(addresses, port: port)
        } catch {
            closeAll()
            guard port == Self.defaultPort else { throw error }
            try open(addresses, port: 0)
            notes.append(
                "Port \(port) is in use, so media uses port \(self.port) until the next restart. Set media.port to a "
                    + "free port, and open that port in the firewall."
            )
        }
        candidates = Self.candidates(addresses.advertised, port: self.port)
        let smallest = sockets.datagram.map { SocketOptions.smallestBuffer(of: $0.descriptor) }.min()
        if let smallest, let note = Self.note(onBuffer: smallest) { notes.append(note) }
    }

    /// Returns a warning if the system granted a smaller buffer than requested; otherwise nil. `size` is in bytes.
    static func note(onBuffer size: Int) -> String? {
        let wanted = Int(SocketOptions.datagramBuffer)
        guard size < wanted else { return nil }
        #if os(Linux)
        let remedy = "Set net.core.rmem_max and net.core.wmem_max to \(wanted) (deploy/sysctl.conf.sample)."
        #else
        let remedy = "Set kern.ipc.maxsockbuf to at least \(2 * wanted)."
        #endif
        return "The system limits the buffers of media sockets to \(size >> 10) KiB. With many subscribers, this loses "
            + "packets. \(remedy)"
    }

    private mutating func open(_ addresses: MediaAddresses, port wanted: Int) throws(MediaPlaneError) {
        // If the system chooses the port, retry with another one: a port that is free for UDP may be in use for TCP.
        var attempts = wanted == 0 ? 16 : 1
        while true {
            attempts -= 1
            do throws(MediaPlaneError) {
                port = wanted
                for address in addresses.bound { try open(address) }
                openAnswering(addresses)
                for socket in sockets.datagram { SocketOptions.stampArrivals(socket.descriptor) }
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

    /// Opens the sockets that share the port of the wildcard socket, and skips addresses for which this fails. Each
    /// datagram goes to the socket of its destination address. The wildcard socket receives datagrams for all other
    /// addresses, and sends for an address that has just disappeared.
    private mutating func openAnswering(_ addresses: MediaAddresses) {
        // Allow sharing of the port only now, and only for these sockets: it must be an error if another program uses
        // the port.
        let wildcards = sockets.datagram
        for socket in wildcards { SocketOptions.setShared(socket.descriptor, true) }
        for address in addresses.answering {
            let whole = address.transportAddress(port: UInt16(clamping: port))
            guard let socket = try? SocketOptions.datagram(whole, isShared: true) else { continue }
            sockets.datagram.append((socket, !address.isIPv4))
        }
        for socket in sockets.datagram { SocketOptions.setShared(socket.descriptor, false) }
    }

    private mutating func closeAll() {
        for socket in sockets.datagram { close(socket.descriptor) }
        for socket in sockets.listeners { close(socket) }
        sockets = MediaLoop.Sockets()
    }

    /// Returns one host candidate for each address on each transport. Priorities prefer UDP, then earlier addresses
    /// (RFC 8445 §5.1.2.1).
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

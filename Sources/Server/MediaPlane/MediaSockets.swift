import Datagrams
import Foundation
import RTC

/// The ports for media: each loop has a UDP port, and the first loop accepts TCP connections for all loops.
struct MediaPorts: Equatable, Sendable, CustomStringConvertible {
    var first: Int
    var loops: Int

    var last: Int { first + loops - 1 }

    var description: String {
        loops == 1 ? "UDP and TCP port \(first)" : "UDP ports \(first) to \(last) and TCP port \(first)"
    }
}

/// The open sockets for media. Each loop has a UDP port: one UDP socket per address in `MediaAddresses.bound`, and one per
/// address in `answering`. The first loop has the TCP listeners too, on its port: one per address in `bound`. All
/// candidates name this TCP port.
struct MediaSockets {
    /// What one loop gets.
    struct Loop {
        fileprivate(set) var sockets = MediaLoop.Sockets()
        /// The UDP port.
        fileprivate(set) var port = 0
        fileprivate(set) var candidates: [Candidate] = []
    }

    private(set) var loops: [Loop] = []
    private(set) var notes: [String] = []

    /// What the first loop gets. Its port is the TCP port of all loops.
    var sockets: MediaLoop.Sockets { loops[0].sockets }
    var candidates: [Candidate] { loops[0].candidates }
    var port: Int { loops[0].port }

    /// The default port. If it is configured but in use, any free port is used instead.
    private static let defaultPort = ConfabConfiguration.Media().port

    /// Opens the sockets of all loops, on this port and those after it.
    /// - Parameter port: the TCP port and first UDP port. If it is 0, the system chooses each port.
    init(_ addresses: MediaAddresses, port: Int, loops count: Int = 1) throws(MediaPlaneError) {
        let ports = MediaPorts(first: port, loops: count)
        guard port == 0 || ports.last <= Int(UInt16.max) else {
            throw MediaPlaneError(
                "media.port is \(port), but \(count) media loops need the ports up to \(ports.last). Set media.port to a "
                    + "lower port, or media.loops to a lower number.")
        }
        do throws(MediaPlaneError) {
            try openAll(addresses, ports)
        } catch {
            guard port == Self.defaultPort else { throw error }
            try openAll(addresses, MediaPorts(first: 0, loops: count))
            notes.append(note(onUsed: ports))
        }
        for index in loops.indices {
            loops[index].candidates = Self.candidates(addresses.advertised, udp: loops[index].port, tcp: self.port)
        }
        let descriptors = loops.flatMap { $0.sockets.datagram.map(\.descriptor) }
        let smallest = descriptors.map { SocketOptions.smallestBuffer(of: $0) }.min()
        if let smallest, let note = Self.note(onBuffer: smallest) { notes.append(note) }
    }

    /// Returns a warning that the sockets are on other ports, because one of these is in use.
    private func note(onUsed ports: MediaPorts) -> String {
        guard loops.count > 1 else {
            return
                "Port \(ports.first) is in use, so media uses port \(port) until the next restart. Set media.port to a "
                + "free port, and open that port in the firewall."
        }
        let chosen = loops.map { "\($0.port)" }.joined(separator: ", ")
        return
            "One of the ports \(ports.first) to \(ports.last) is in use, so media uses the UDP ports \(chosen) and TCP "
            + "port \(port) until the next restart. Set media.port to the first of \(loops.count) free ports, and open them "
            + "in the firewall."
    }

    private mutating func openAll(_ addresses: MediaAddresses, _ ports: MediaPorts) throws(MediaPlaneError) {
        do throws(MediaPlaneError) {
            for index in 0..<ports.loops {
                loops.append(
                    try Self.open(addresses, port: ports.first == 0 ? 0 : ports.first + index, listens: index == 0))
            }
        } catch {
            for index in loops.indices { loops[index].close() }
            loops = []
            throw error
        }
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

    /// Opens the sockets of one loop.
    /// - Parameter listens: whether to open the TCP listeners too.
    private static func open(
        _ addresses: MediaAddresses, port: Int, listens: Bool
    ) throws(MediaPlaneError) -> Loop {
        // If the system chooses the port, retry with another one: a port that is free on one address or for UDP may be in
        // use on another or for TCP.
        var attempts = port == 0 ? 16 : 1
        while true {
            attempts -= 1
            var loop = Loop(port: port)
            do throws(MediaPlaneError) {
                for address in addresses.bound { try loop.open(address, listens: listens) }
                loop.openAnswering(addresses)
                for socket in loop.sockets.datagram { SocketOptions.stampArrivals(socket.descriptor) }
                return loop
            } catch {
                loop.close()
                if attempts == 0 { throw error }
            }
        }
    }

    /// Returns one host candidate for each address on each transport. Priorities prefer UDP, then earlier addresses
    /// (RFC 8445 §5.1.2.1).
    private static func candidates(_ addresses: [IPAddress], udp: Int, tcp: Int) -> [Candidate] {
        addresses.enumerated().flatMap { index, address in
            [Candidate.Transport.udp, .tcpPassive].map { transport in
                let preference = UInt32(65535 - index) - (transport == .udp ? 0 : 8192)
                return Candidate(
                    foundation: "\(index + 1)\(transport == .udp ? "" : "t")", component: 1, transport: transport,
                    priority: 126 << 24 | preference << 8 | 255,
                    address: address.transportAddress(port: UInt16(clamping: transport == .udp ? udp : tcp)),
                    kind: .host
                )
            }
        }
    }
}

extension MediaSockets.Loop {
    fileprivate mutating func open(_ address: IPAddress, listens: Bool) throws(MediaPlaneError) {
        do throws(SocketError) {
            let datagram = try SocketOptions.datagram(address.transportAddress(port: UInt16(clamping: port)))
            sockets.datagram.append((datagram, !address.isIPv4))
            if port == 0 { port = SocketOptions.port(of: datagram).map(Int.init) ?? 0 }
            guard listens else { return }
            let listener = try SocketOptions.listener(address.transportAddress(port: UInt16(clamping: port)))
            sockets.listeners.append(listener)
        } catch {
            throw MediaPlaneError("\(error.description)")
        }
    }

    /// Opens the sockets that share the port of the wildcard socket, and skips addresses for which this fails. Each
    /// datagram goes to the socket of its destination address. The wildcard socket receives datagrams for all other
    /// addresses, and sends for an address that has just disappeared.
    fileprivate mutating func openAnswering(_ addresses: MediaAddresses) {
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

    fileprivate mutating func close() {
        for socket in sockets.datagram { Foundation.close(socket.descriptor) }
        for socket in sockets.listeners { Foundation.close(socket) }
        sockets = MediaLoop.Sockets()
    }
}

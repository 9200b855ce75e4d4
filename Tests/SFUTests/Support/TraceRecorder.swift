import RTC
import SFU

/// Records everything that leaves a router as lines of text, which are the same in every run with the same seed.
///
/// Certificates, keys and transaction ids are random, so packets are recorded after decryption, and connectivity checks
/// only by their lengths. Handshakes are not recorded, but the states of the clients' transports are. Packets are summed
/// up in one line per interval and receiver. Such a line follows the events of its interval.
final class TraceRecorder {
    /// The packets that one connection received in an interval.
    private struct Group {
        var streams: [(name: String, count: Int, first: UInt16, last: UInt16)] = []
        var reports = 0
        var bytes = 0
        var hash = FNVHash()
    }

    private(set) var lines: [String] = []
    /// A line for each packet, if `keepsPackets`.
    private(set) var packets: [String] = []
    private let keepsPackets: Bool
    private let interval: MediaInterval
    private var endsAt: MediaTime
    private var groups: [String: Group] = [:]
    private var states: [String: String] = [:]
    private var sent = (datagrams: 0, bytes: 0, checks: 0)
    private var checks = FNVHash()

    /// - Parameter keepsPackets: whether to store a line for each packet, too.
    init(interval: MediaInterval, from now: MediaTime, keepsPackets: Bool) {
        (self.interval, self.keepsPackets) = (interval, keepsPackets)
        endsAt = now + interval
    }

    // MARK: Lines

    func note(_ text: String, at now: MediaTime) {
        advance(to: now)
        lines.append("\(Self.text(now)) \(text)")
    }

    /// Writes the lines of the current interval.
    func finish() { closeInterval() }

    private static func text(_ time: MediaTime) -> String {
        let milliseconds = time.nanoseconds / 1_000_000
        return "\(milliseconds / 1000).\(String(milliseconds % 1000 + 1000).dropFirst())"
    }

    private func advance(to now: MediaTime) {
        guard endsAt <= now else { return }
        closeInterval()
        while endsAt <= now { endsAt = endsAt + interval }
    }

    private func closeInterval() {
        let time = Self.text(MediaTime(nanoseconds: endsAt.nanoseconds - interval.nanoseconds))
        if sent.datagrams > 0 || sent.checks > 0 {
            let checked = sent.checks > 0 ? ", \(sent.checks) checks \(checks)" : ""
            lines.append("\(time) sent \(sent.datagrams) datagrams, \(sent.bytes) B\(checked)")
        }
        for (receiver, group) in groups.sorted(by: { ($0.key.count, $0.key) < ($1.key.count, $1.key) }) {
            let streams = group.streams.map { " \($0.name) \($0.count):\($0.first)-\($0.last)" }.joined()
            let reports = group.reports > 0 ? " rtcp \(group.reports)" : ""
            lines.append("\(time) \(receiver) \(group.hash) \(group.bytes) B\(streams)\(reports)")
        }
        groups.removeAll()
        (sent, checks) = ((0, 0, 0), FNVHash())
    }

    // MARK: Packets

    /// Records a decrypted RTP packet. `stream` names its SSRC.
    func record(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, in stream: String, to receiver: String, at now: MediaTime
    ) {
        advance(to: now)
        let number = packet.sequenceNumber
        let streams = groups[receiver, default: Group()].streams
        if let index = streams.firstIndex(where: { $0.name == stream }) {
            groups[receiver]?.streams[index].count += 1
            groups[receiver]?.streams[index].last = number
        } else {
            groups[receiver, default: Group()].streams.append((stream, 1, number, number))
        }
        add(bytes, to: receiver, at: now)
        guard keepsPackets else { return }
        let header = "\(packet.payloadType)\(packet.marker ? "m" : "") \(number) \(packet.timestamp)"
        packets.append("\(now.nanoseconds) \(receiver) \(stream) \(header) \(Self.hexadecimal(bytes))")
    }

    /// Records a decrypted RTCP packet.
    func record(control bytes: UnsafeRawBufferPointer, to receiver: String, at now: MediaTime) {
        advance(to: now)
        groups[receiver, default: Group()].reports += 1
        let normalized = Self.withoutMediaSource(bytes)
        normalized.withUnsafeBytes {
            add($0, to: receiver, at: now)
            if keepsPackets { packets.append("\(now.nanoseconds) \(receiver) rtcp \(Self.hexadecimal($0))") }
        }
    }

    private func add(_ bytes: UnsafeRawBufferPointer, to receiver: String, at now: MediaTime) {
        groups[receiver]?.bytes += bytes.count
        groups[receiver]?.hash.add(UInt64(bitPattern: now.nanoseconds))
        groups[receiver]?.hash.add(UInt64(bytes.count))
        groups[receiver]?.hash.add(bytes)
    }

    /// Returns the RTCP packets with 0 as the media SSRC of transport-wide feedback. The feedback is about all streams
    /// of the transport, so any SSRC of the client is correct there, and the router uses any.
    private static func withoutMediaSource(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var copy = Array(bytes)
        var start = 0
        while start + 12 <= copy.count {
            if copy[start] & 0x1f == 15, copy[start + 1] == 205 {
                copy.replaceSubrange(start + 8..<start + 12, with: [0, 0, 0, 0])
            }
            start += (Int(copy[start + 2]) << 8 | Int(copy[start + 3])) * 4 + 4
        }
        return copy
    }

    private static func hexadecimal(_ bytes: UnsafeRawBufferPointer) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Records a datagram before the network can lose it.
    func record(sent datagram: UnsafeRawBufferPointer, on path: Path, at now: MediaTime) {
        advance(to: now)
        // RFC 7983 §7: the first byte identifies the protocol.
        switch datagram[0] {
        case 128...191:
            sent.datagrams += 1
            sent.bytes += datagram.count
        case 0...3:
            sent.checks += 1
            checks.add(UInt64(bitPattern: now.nanoseconds))
            for value in [path.remote.high, path.remote.low, UInt64(path.remote.port), UInt64(datagram.count)] {
                checks.add(value)
            }
        default: break
        }
    }

    // MARK: Everything else

    /// Records an answer, without the fingerprint of the certificate.
    func record(answer: String, to receiver: String, at now: MediaTime) {
        let lines = answer.split(separator: "\r\n").filter { !$0.hasPrefix("a=fingerprint") }
        var hash = FNVHash()
        for line in lines { Array(line.utf8).withUnsafeBytes { hash.add($0) } }
        note("answer \(receiver) \(hash) \(lines.count) lines", at: now)
    }

    /// Records the state of a client's transport if it has changed.
    func record(_ state: TransportState, of receiver: String, at now: MediaTime) {
        let name =
            switch state {
            case .new: "new"
            case .connecting: "connecting"
            case .connected: "connected"
            case .disconnected: "disconnected"
            case .failed: "failed"
            case .closed: "closed"
            }
        guard states.updateValue(name, forKey: receiver) != name else { return }
        note("\(receiver) is \(name)", at: now)
    }

    /// Records the events of a tick. The router examines the sessions in any order, so events about whole sessions are
    /// recorded in the order of their text, after the others.
    func record(_ events: [RouterEvent], at now: MediaTime) {
        let isOfSession = events.map { event in
            switch event {
            case .full, .speaking: true
            default: false
            }
        }
        let texts = zip(events.map(text), isOfSession)
        let ofSessions = texts.filter(\.1).map(\.0).sorted()
        for text in texts.filter({ !$0.1 }).map(\.0) + ofSessions { note("event \(text)", at: now) }
    }

    private func text(_ event: RouterEvent) -> String {
        switch event {
        case .failed(let client, let side, let failure): "failed \(name(client, side)) \(failure)"
        case .connected(let client, let side, let isConnected): "connected \(name(client, side)) \(isConnected)"
        case .subscriptionChanged(let change): "subscriptionChanged \(text(change))"
        case .streamQuality(let stream, let session, let level, let trouble):
            "streamQuality \(session) \(name(stream)) \(level.rawValue) \(trouble?.rawValue ?? "-")"
        case .layersWanted(let wanted): "layersWanted \(text(wanted))"
        case .full(let session, let isFull): "full \(session) \(isFull)"
        case .speaking(let session, let stream): "speaking \(session) \(stream.map(name) ?? "-")"
        }
    }

    private func name(_ key: Key) -> String { "\(key.high).\(key.low)" }
    private func name(_ client: Key, _ side: Side) -> String { name(client) + (side == .send ? " send" : " receive") }

    private func text(_ change: SubscriptionChange) -> String {
        let state = change.isPaused ? "paused" : "layer \(change.rid ?? "-")/\(text(change.temporalLayer))"
        let flags = "warning \(text(change.warning)) limited \(text(change.isLimited))"
        let subject = "\(change.session) \(name(change.stream)) for \(name(change.client))"
        return "\(subject) \(change.reason.rawValue) \(state) \(flags)"
    }

    private func text(_ wanted: LayersWanted) -> String {
        let subject = "\(wanted.session) \(name(wanted.stream)) of \(name(wanted.client))"
        let needs = "video \(text(wanted.isVideoWanted)) codec \(text(wanted.payloadType))"
        return "\(subject) \(wanted.rids) \(needs)"
    }

    private func text(_ value: (some Any)?) -> String { value.map { "\($0)" } ?? "-" }
}

/// The 64-bit FNV-1a hash (Fowler, Noll and Vo). Unlike Swift's own hash, it is the same in all processes.
private struct FNVHash: CustomStringConvertible {
    private var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var value = value
        for byte in bytes { value = (value ^ UInt64(byte)) &* 0x0100_0000_01b3 }
        self.value = value
    }

    mutating func add(_ number: UInt64) { withUnsafeBytes(of: number.bigEndian) { add($0) } }

    var description: String { String(repeating: "0", count: value.leadingZeroBitCount / 4) + String(value, radix: 16) }
}

import Foundation
import RTC
import Testing
import Wire

/// A client with routed media. It joins a session, negotiates two connections, publishes and subscribes. It works only
/// during calls of `run`. It has no lock, because only one thread at a time uses it.
final class MediaRobot: @unchecked Sendable {
    let person: Person
    let session: SessionID
    let connection: ConnectionID
    /// All streams that existed when the robot joined.
    let streams: [StreamInfo]
    private(set) var lines: [MediaSide: MediaLine] = [:]
    private(set) var source: MediaSource?
    private(set) var published: StreamID?
    /// What the robot receives, by mid.
    private(set) var receptions: [String: MediaReception] = [:]
    private var midsBySSRC: [UInt32: String] = [:]
    /// The number of packets of streams that were not announced.
    private(set) var strayPackets = 0
    /// The connections that the server has ended, and why, such as "send dtls_failed".
    private(set) var endings: [String] = []
    /// Called with every message that the server sends while the robot runs.
    var onMessage: (ServerMessage) throws -> Void = { _ in }
    private let origin: String?
    private let usesTCP: Bool
    private var random: Random

    /// - Parameters:
    ///   - tcp: whether media uses TCP instead of UDP.
    ///   - origin: the local address.
    init(_ place: MediaPlace, role: String = "moderator", tcp: Bool = false, from origin: String? = nil) throws {
        person = try Person.arrive(port: place.port, from: origin)
        let joined = try person.join(Admission(session: place.session, token: place.token(role)))
        (session, connection, streams) = (place.session, joined.connection.id, joined.streams)
        guard joined.mediaMode == .routed else { throw TimedOut("the session is \(joined.mediaMode)") }
        (self.origin, usesTCP) = (origin, tcp)
        random = Random(seed: .random(in: .min ... .max))
    }

    // MARK: Connections

    /// The certificate that all robots of this process share. The server uses only one certificate too.
    static let certificate = DTLSCertificate.make()

    /// Negotiates one side's connection, which is then established while the robot runs.
    @discardableResult
    func open(_ side: MediaSide, _ sections: [OfferedMedia], _ change: (inout MediaOffering) -> Void = { _ in }) throws
        -> MediaLine
    {
        let (offering, answer) = try offer(side, sections, change)
        guard let certificate = Self.certificate else { throw TimedOut("OpenSSL makes no certificate") }
        let transport = PeerTransport(client: offering.credentials, certificate: certificate, random: random)
        transport.setRemote(answer.credentials, fingerprint: answer.fingerprint)
        guard let candidate = answer.candidates.first(where: { ($0.transport == .tcpPassive) == usesTCP }) else {
            throw TimedOut("the server has no candidate for a robot")
        }
        let line = MediaLine(transport, try carrier(to: candidate.address), server: candidate.address)
        transport.add(line.path, priority: candidate.priority)
        lines[side] = line
        if side == .receive { for media in answer.media { expect(media) } }
        line.handleTimeout(now: MediaWaiting.now)
        return line
    }

    /// Sends an offer for one side and returns the answer.
    func offer(
        _ side: MediaSide, _ sections: [OfferedMedia], _ change: (inout MediaOffering) -> Void = { _ in }
    ) throws -> (MediaOffering, MediaOffering.Answer) {
        guard let certificate = Self.certificate else { throw TimedOut("OpenSSL makes no certificate") }
        var offering = MediaOffering(sections, certificate.fingerprint, using: &random)
        change(&offering)
        let text = try ask(.media(.offer(.init(side: side, sdp: offering.text)))) { seq, message in
            if case .media(.answer(let answer)) = message, answer.re == seq { answer.sdp } else { nil }
        }
        return (offering, try offering.accept(text))
    }

    private func carrier(to address: TransportAddress) throws -> MediaLine.Carrier {
        usesTCP
            ? .tcp(try RawSocket(port: Int(address.port), host: address.host, from: origin))
            : .udp(try MediaDatagrams(from: origin))
    }

    private func expect(_ media: NegotiatedMedia) {
        guard let source = media.remoteSources.first, receptions[media.mid]?.ssrc != source.ssrc else { return }
        receptions[media.mid] = MediaReception(media.kind, source)
        midsBySSRC[source.ssrc] = media.mid
        if let repair = source.rtxSSRC { midsBySSRC[repair] = media.mid }
    }

    /// Runs until both negotiated connections are connected.
    func connect(within limit: Duration = .seconds(20)) throws {
        let deadline = ContinuousClock.now + limit
        while !lines.values.allSatisfy(\.isConnected) {
            guard ContinuousClock.now < deadline, person.closeCode == nil else {
                throw TimedOut("not connected: \(lines.mapValues(\.transport.state)), \(endings)")
            }
            try run(for: .milliseconds(10))
        }
    }

    /// Negotiates a connection to send and one to receive this many streams, and waits until both are connected.
    func openBoth(slots: Int = 1) throws {
        let source = MediaSource(using: &random, now: MediaWaiting.now)
        self.source = source
        try open(.send, source.sections)
        try open(.receive, MediaOffering.slots(slots))
        try connect()
    }

    // MARK: Streams

    /// Sends a request and waits for its answer while media continues.
    @discardableResult
    func ask<T>(_ message: ClientMessage, _ pick: @escaping (UInt64, ServerMessage) throws -> T?) throws -> T {
        var answer: T?
        let former = onMessage
        defer { onMessage = former }
        let seq = try person.say(message)
        onMessage = { message in
            try former(message)
            if case .error(let error) = message, error.re == seq { throw TimedOut("\(error.error)") }
            if let picked = try pick(seq, message) { answer = picked }
        }
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            if let answer { return answer }
            guard ContinuousClock.now < deadline, person.closeCode == nil else {
                throw TimedOut("no answer to \(message.type): closed with \(person.closeCode ?? 0)")
            }
            try run(for: .milliseconds(5))
        }
    }

    func ask(_ message: ClientMessage) throws {
        try ask(message) { seq, answer in if case .ok(let ok) = answer, ok.re == seq { true } else { nil } }
    }

    func publish(mids: MediaMids = MediaMids(audio: "a", video: "v")) throws {
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, mids)
        published = try ask(.session(.publish(publish))) { seq, answer in
            if case .session(.published(let own)) = answer, own.re == seq { own.stream.id } else { nil }
        }
    }

    func unpublish() throws {
        guard let stream = published else { return }
        published = nil
        try ask(.session(.unpublish(.init(session: session, stream: stream))))
    }

    /// Subscribes to a stream, to receive it in the slot with this number.
    func watch(_ stream: StreamID, slot: Int = 0, from mark: UInt64? = nil) throws {
        let mids = MediaMids(audio: "a\(slot)", video: "v\(slot)")
        for mid in [mids.audio, mids.video] { receptions[mid ?? ""]?.expected = mark }
        try ask(.session(.subscribe(.init(session: session, stream: stream, mids: mids))))
    }

    // MARK: Running

    /// Sends the packets that are due and receives packets, for this long.
    func run(for duration: Duration) throws {
        let deadline = ContinuousClock.now + duration
        repeat {
            let now = MediaWaiting.now
            step(now)
            try takeMessages()
            var due = [source?.nextDue].compactMap { $0 } + lines.values.compactMap(\.transport.nextTimeout)
            due.append(now + .milliseconds(10))
            let wait = (due.min() ?? now) - now
            let next = ContinuousClock.now + .nanoseconds(max(0, min(wait.nanoseconds, 10_000_000)))
            let open = lines.values.filter { !$0.isClosed }.map(\.descriptor)
            _ = MediaWaiting.isAnyReadable(open + [person.line.socket.descriptor], until: min(next, deadline))
        } while ContinuousClock.now < deadline
    }

    private func step(_ now: MediaTime) {
        for (side, line) in lines {
            line.handleTimeout(now: now)
            line.receive(now: now) { isControl, packet in
                switch (side, isControl) {
                case (.send, true): source?.take(control: packet, over: line)
                case (.receive, false): take(packet, now: now)
                default: break
                }
            }
        }
        if let line = lines[.send], published != nil { source?.sendDue(over: line, now: now) }
        guard let line = lines[.receive], line.isConnected else { return }
        for mid in receptions.keys { receptions[mid]?.complain(over: line, now: now) }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, now: MediaTime) {
        guard let packet = RTPPacket(bytes), let mid = midsBySSRC[packet.ssrc] else {
            strayPackets += 1
            return
        }
        receptions[mid]?.take(packet, bytes, now: now)
    }

    private func takeMessages() throws {
        while person.closeCode == nil, person.line.socket.isReadable(until: .now) {
            guard let message = try person.nextUnlessPing() else { continue }
            person.forget()
            if case .media(.closed(let closed)) = message {
                endings.append("\(closed.side.rawValue) \(closed.code.rawValue)")
            }
            if person.received % 32 == 0 { try person.say(.ack) }
            try onMessage(message)
        }
    }

    /// Resets the measurements for a new phase.
    func beginMeasure() { for mid in receptions.keys { receptions[mid]?.longestGap = .zero } }

    /// Stops sending new media. The server may still request retransmissions.
    func hush() { published = nil }
}

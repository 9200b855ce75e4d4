import Cluster
import Datagrams
import Foundation
import Logging
import NIOConcurrencyHelpers
import RTC
import SFU
import Signaling
import Synchronization
import Wire

/// Routed media: carries out the hub's media commands on its own threads and reports events back.
///
/// It owns the sockets and the threads. Each media loop is a thread with a router, its own sockets and its own UDP port.
/// `LoopPlacement` decides which loop serves a client, and the routers pass packets to each other through `PipeRings`.
/// Commands for a loop run in order and never wait for the network. Invariant: once all threads have handled `stop`,
/// they send no packets and report no events.
final class MediaPlane: Sendable {
    /// One inbox for each loop.
    private let inboxes: [MediaInbox]
    /// One ring for each loop, in which it writes the streams that are recorded. Created with the first recording.
    private let recording = Mutex<[RecordingRing]>([])
    private let placement: Mutex<LoopPlacement>
    private let watchdog: MediaWatchdogThread
    /// The TCP port for media, and the UDP port of the first loop.
    let port: Int
    /// The UDP port of each loop.
    let udpPorts: [Int]
    let addresses: [IPAddress]
    /// The addresses at which other nodes reach the loops.
    let relayAddresses: [IPAddress]
    /// The fingerprint of the certificate of all loops.
    let fingerprint: Fingerprint
    /// For each loop, the families of its UDP sockets, in the order of their numbers.
    let socketFamilies: [[SocketFamily]]
    let notes: [String]
    private let onEvent: @Sendable (MediaEvent) -> Void
    private let relayReceiver: NIOLockedValueBox<RelayEventReceiver?>

    /// Receives the events of relays, on any thread.
    typealias RelayEventReceiver = @Sendable (RelayEvent) -> Void

    /// The family of a socket's addresses.
    struct SocketFamily: Sendable {
        var isIPv4: Bool
    }

    /// The settings from the configuration, and this machine's addresses.
    struct Settings: Sendable {
        var port: Int
        /// The number of loops.
        var loops = 1
        var address: IPAddress?
        /// The life of this node; nil without a cluster.
        var tag: NodeTag?
        /// The address for other nodes; nil for the advertised ones.
        var relayAddress: IPAddress?
        var publicHost: String?
        /// This machine's addresses, the most likely reachable first.
        var local: [IPAddress] = []
        /// Whether to choose the layers for subscribers according to the available bandwidth of their connections.
        var controlsCongestion = false
        /// The maximum number of publishers of a session whose audio is forwarded; nil for all.
        var loudestStreams: Int?
        /// The maximum bitrate sent for one session, in bits per second; nil for no limit.
        var sessionBitrate: Int?
        /// The maximum bitrate sent for all sessions, in bits per second; nil for no limit.
        var totalBitrate: Int?
        /// Maximum number of TCP connections.
        var maxConnections = StreamPlaces.maxConnections
        /// True to use poll(2) and sendto(2) instead of epoll and Linux's batched calls.
        var isPortable = false
    }

    /// Opens the sockets and starts the loops, and the watchdog that ends the process if a loop hangs.
    /// - Parameters:
    ///   - watchdogPeriod: the time between two looks of the watchdog. Tests pass a shorter one.
    ///   - onEvent: Called on any thread.
    /// - Throws: `MediaPlaneError`, whose description is a message for the operator.
    init(
        _ settings: Settings, logger: Logger, watchdogPeriod: Duration = MediaWatchdog.period,
        onEvent: @escaping @Sendable (MediaEvent) -> Void
    ) throws {
        var addresses = try MediaAddresses(
            configured: settings.address, local: settings.local, publicHost: settings.publicHost, port: settings.port,
            loops: settings.loops)
        if let relay = settings.relayAddress { try addresses.add(relay: relay, local: settings.local) }
        let certificate = try Self.certificate()
        fingerprint = certificate.fingerprint
        let relayReceiver = NIOLockedValueBox<RelayEventReceiver?>(nil)
        self.relayReceiver = relayReceiver
        let inboxes = try (0..<settings.loops).map { _ in
            try MediaInbox(
                onEvents: { events in for event in events { onEvent(MediaEvent(event)) } },
                onRelayEvents: { events in
                    let receiver = relayReceiver.withLockedValue { $0 }
                    for event in events { receiver?(event) }
                })
        }
        let opened = try MediaSockets(addresses, port: settings.port, loops: settings.loops)
        (port, udpPorts) = (opened.port, opened.loops.map(\.port))
        socketFamilies = opened.loops.map { loop in
            loop.sockets.datagram.map { SocketFamily(isIPv4: !$0.isIPv6) }
        }
        self.addresses = addresses.advertised
        relayAddresses = settings.relayAddress.map { [$0] } ?? addresses.advertised
        notes = addresses.notes + opened.notes
        self.onEvent = onEvent
        self.inboxes = inboxes
        placement = Mutex(LoopPlacement(loops: settings.loops, tag: settings.tag))
        let wait = MediaWait()
        let places = StreamPlaces(limit: settings.maxConnections)
        let isAlone = inboxes.count == 1
        let pipes = isAlone ? nil : PipeRings(bells: inboxes.map { inbox in { inbox.wake() } })
        for (index, loop) in opened.loops.enumerated() {
            var router = RouterSettings(settings, candidates: loop.candidates)
            router.owner = isAlone ? nil : index
            let group = MediaLoop.Group(inboxes: isAlone ? [] : inboxes, index: index, places: places)
            let (inbox, sockets, isPortable) = (inboxes[index], loop.sockets, settings.isPortable)
            let name = isAlone ? "confab-media" : "confab-media-\(index)"
            let thread = Thread { [router] in
                setNameOfCurrentThread(name)
                let loop = MediaLoop(inbox: inbox, sockets: sockets, portable: isPortable, wait: wait, group: group)
                loop.run { sink in
                    Router(
                        settings: router, certificate: certificate, sink: sink,
                        generator: SystemRandomNumberGenerator(),
                        pipes: pipes, loop: index)
                }
            }
            thread.start()
        }
        watchdog = MediaWatchdogThread(inboxes, period: watchdogPeriod, logger: logger)
    }

    /// Creates the DTLS certificate for all connections. Clients verify it by its fingerprint in the session
    /// description, so no certificate authority has to sign it.
    private static func certificate() throws(MediaPlaneError) -> DTLSCertificate {
        guard let certificate = DTLSCertificate.make() else {
            throw MediaPlaneError(
                "OpenSSL could not create a certificate for media. Check that its version is 3.0 or newer.")
        }
        return certificate
    }

    /// OpenSSL's version, for `/health` and the metrics.
    static var openSSLVersion: String { OpenSSLVersion.text }

    /// The library that encrypts media with AES-GCM, for the log, `/health` and the metrics.
    static var srtpImplementation: String { SRTPImplementation.text }

    func stop() {
        watchdog.stop()
        for inbox in inboxes { inbox.finish() }
    }

    /// The counters of each loop.
    var loopCounters: [MediaCounters] { inboxes.map(\.counters) }

    /// The counters of all loops together.
    var counters: MediaCounters { loopCounters.reduce(into: MediaCounters()) { $0 += $1 } }

    /// False if a loop has not answered a heartbeat request for too long.
    var isResponsive: Bool { inboxes.allSatisfy(\.isResponsive) }

    /// Passes a command to the loops that it concerns. May be called on any thread.
    func perform(_ command: MediaCommand) {
        // Pass the command on within the lock, so that all loops get the commands of several threads in the same order.
        placement.withLock { placement in
            switch placement.place(command) {
            case .loop(let index): perform(command, on: inboxes[index])
            case .all: for inbox in inboxes { perform(command, on: inbox) }
            }
        }
    }

    /// Runs a request on a loop's thread, in order with the commands.
    func perform(_ kind: MediaRequestKind, onLoop index: Int, _ body: @escaping @Sendable (Router) -> Void) {
        inboxes[index].perform(kind, body)
    }

    /// Sets the receiver of the events of relays. Call it before the first relay is opened.
    func deliverRelayEvents(to receiver: @escaping RelayEventReceiver) {
        relayReceiver.withLockedValue { $0 = receiver }
    }

    private func perform(_ command: MediaCommand, on inbox: MediaInbox) {
        let onEvent = onEvent
        inbox.perform(MediaRequestKind(command)) { router in router.perform(command, onEvent) }
    }
}

extension MediaPlane: RecordingSource {
    var recordingRings: [RecordingRing] {
        recording.withLock { rings in
            if rings.isEmpty { rings = inboxes.map { _ in RecordingRing() } }
            return rings
        }
    }

    func record(_ stream: StreamID, as number: UInt32, _ request: RecordingRequest) {
        for (inbox, ring) in zip(inboxes, recordingRings) {
            inbox.perform(.record) { $0.record(Key(stream), as: number, request, into: ring) }
        }
    }

    func stopRecording(_ stream: StreamID, _ number: UInt32) {
        for inbox in inboxes { inbox.perform(.record) { $0.stopRecording(Key(stream), number) } }
    }

    func requestKeyframe(of stream: StreamID, for number: UInt32) {
        for inbox in inboxes { inbox.perform(.record) { $0.requestKeyframe(of: Key(stream), for: number) } }
    }
}

/// A running media plane whose event receiver is set after it starts.
final class RunningMedia: Sendable {
    typealias Receiver = @Sendable (MediaEvent) -> Void

    let plane: MediaPlane
    private let receiver: NIOLockedValueBox<Receiver?>

    init(_ settings: MediaPlane.Settings, logger: Logger) throws {
        let receiver = NIOLockedValueBox<Receiver?>(nil)
        self.receiver = receiver
        // No events are lost: the first command is sent after the receiver is set, and there are no events before the
        // first command.
        plane = try MediaPlane(settings, logger: logger) { event in receiver.withLockedValue { $0 }?(event) }
    }

    /// Sets the receiver of events, which is called on any thread.
    func deliver(to receiver: @escaping Receiver) { self.receiver.withLockedValue { $0 = receiver } }
}

extension MediaPlane.Settings {
    init(_ configuration: ConfabConfiguration) throws {
        port = configuration.media.port
        loops = configuration.media.loopCount
        address = configuration.media.address
        relayAddress = configuration.cluster.relays ? configuration.media.relayAddress : nil
        maxConnections = DescriptorBudget(configuration).mediaConnections
        controlsCongestion = configuration.media.congestionControl
        loudestStreams = configuration.media.loudestStreams
        sessionBitrate = configuration.media.sessionBitrate?.bitsPerSecond
        totalBitrate = configuration.media.totalBitrate?.bitsPerSecond
        publicHost = configuration.publicURL.map(WebURLText.host)
        local = try lanAddresses().map(\.address)
    }
}

extension RouterSettings {
    fileprivate init(_ settings: MediaPlane.Settings, candidates: [Candidate]) {
        self.init(candidates: candidates, clockOrigin: .monotonicOrigin)
        controlsCongestion = settings.controlsCongestion
        (sessionBitrate, totalBitrate) = (settings.sessionBitrate, settings.totalBitrate)
        if let loudestStreams = settings.loudestStreams { self.loudestStreams = loudestStreams }
    }
}

extension Router {
    fileprivate func perform(_ command: MediaCommand, _ onEvent: @Sendable (MediaEvent) -> Void) {
        switch command {
        case .offer(let client, _, let re, let side, let sdp): onEvent(answer(client, re: re, side, sdp))
        case .close(let client, let side): close(Key(client), Side(side))
        case .estimate(let client, let re):
            onEvent(.estimated(client, re: re, bitrate: estimate(of: Key(client))))
        case .leave(let client): leave(Key(client))
        case .publish(let stream, let session, let client, let mids, let audio, let video, let alwaysHeard):
            publish(
                Key(stream), session: session.text, client: Key(client), mids: Mids(mids), audio: audio, video: video,
                alwaysHeard: alwaysHeard)
        case .update(let stream, _, let audio, let video): update(Key(stream), audio: audio, video: video)
        case .unpublish(let stream, _): unpublish(Key(stream))
        case .subscribe(let stream, _, let client, let mids, let audio, let video, let preference):
            subscribe(
                Key(stream), client: Key(client), mids: Mids(mids), audio: audio, video: video,
                preferring: SFU.VideoPreference(preference))
        case .unsubscribe(let stream, let client): unsubscribe(Key(stream), client: Key(client))
        }
    }

    private func answer(_ client: ConnectionID, re: UInt64, _ side: MediaSide, _ sdp: String) -> MediaEvent {
        guard !isFull || hasConnection(Key(client), Side(side)) else {
            let message = "The server has reached its bandwidth limit. Try again later."
            let error = WireError(.bandwidthExceeded, message, retryable: true, retryAfter: .seconds(10))
            return .refused(client, re: re, error)
        }
        do throws(SDPError) {
            let answer = try offer(Key(client), Side(side), sdp: sdp, now: .monotonic)
            return .answered(client, re: re, side, sdp: answer)
        } catch {
            return .refused(client, re: re, WireError(.descriptionInvalid, "\(error)"))
        }
    }
}

// MARK: Conversions between the hub's types and the router's

extension Key {
    init(_ id: some Identifier128) { self.init(high: id.high, low: id.low) }
}

extension Side {
    init(_ side: MediaSide) { self = side == .send ? .send : .receive }
}

extension MediaSide {
    init(_ side: Side) { self = side == .send ? .send : .receive }
}

extension Mids {
    init(_ mids: MediaMids) { self.init(audio: mids.audio, video: mids.video) }
}

extension SFU.VideoPreference {
    init(_ preference: Wire.VideoPreference) {
        self.init(
            width: preference.width, height: preference.height, frameRate: preference.frameRate,
            priority: preference.priority ?? 0)
    }
}

extension MediaEvent {
    init(_ event: RouterEvent) {
        switch event {
        case .failed(let client, let side, let failure):
            self = .closed(ConnectionID(client), MediaSide(side), WireError(failure))
        case .connected(let client, let side, let isConnected):
            self = .connected(ConnectionID(client), MediaSide(side), isConnected)
        case .subscriptionChanged(let change):
            var news = SessionNotice.SubscriptionChanged(
                session: SessionID(change.session) ?? .unset, stream: StreamID(change.stream),
                videoPaused: change.isPaused,
                reason: Wire.SubscriptionReason(rawValue: change.reason.rawValue) ?? .slow)
            (news.rid, news.temporalLayer) = (change.rid, change.temporalLayer)
            (news.warning, news.limited) = (change.warning, change.isLimited)
            self = .subscriptionChanged(news, subscriber: ConnectionID(change.client))
        case .streamQuality(let stream, let session, let level, let trouble):
            self = .streamQuality(
                SessionNotice.StreamQuality(
                    session: SessionID(session) ?? .unset, stream: StreamID(stream),
                    level: QualityLevel(rawValue: level.rawValue) ?? .good,
                    reason: trouble.flatMap { QualityReason(rawValue: $0.rawValue) }))
        case .layersWanted(let wanted):
            self = .layersWanted(
                SessionNotice.LayersWanted(
                    session: SessionID(wanted.session) ?? .unset, stream: StreamID(wanted.stream), rids: wanted.rids,
                    video: wanted.isVideoWanted, codec: wanted.payloadType.map { Int($0) }),
                publisher: ConnectionID(wanted.client))
        case .full(let session, let isFull): self = .full(SessionID(session) ?? .unset, isFull)
        case .speaking(let session, let stream):
            self = .speaking(SessionID(session) ?? .unset, stream.map { StreamID($0) })
        }
    }
}

extension Identifier128 {
    init(_ key: Key) { self.init(high: key.high, low: key.low) }
}

extension WireError {
    init(_ failure: PeerFailure) {
        switch failure {
        case .fingerprint:
            self.init(
                .fingerprintMismatch,
                "The DTLS certificate does not match the fingerprint in the description. Connect again."
            )
        case .handshake:
            self.init(.dtlsFailed, "The DTLS handshake failed. Connect again.", retryable: true)
        }
    }
}

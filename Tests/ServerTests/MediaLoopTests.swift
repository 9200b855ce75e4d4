import CSockets
import Datagrams
import Foundation
import Metrics
import NIOConcurrencyHelpers
import RTC
import SFU
import Testing

@testable import Server

@Suite("The media loop over real sockets")
struct MediaLoopTests {
    private static let ssrc: UInt32 = 77

    @Test("forwards audio between clients, with epoll and with the portable implementation", arguments: [false, true])
    func carries(isPortable: Bool) throws {
        let addresses = try MediaAddresses(
            configured: IPAddress("127.0.0.1"), local: [], publicHost: nil, port: 0)
        let opened = try MediaSockets(addresses, port: 0)
        let certificate = try #require(DTLSCertificate.make())
        let inbox = try MediaInbox { _ in }
        defer { inbox.finish() }
        let (sockets, settings) = (
            opened.sockets, RouterSettings(candidates: opened.candidates, clockOrigin: .monotonicOrigin)
        )
        let prometheus = PrometheusMetrics(help: ConfabServer.metricsHelp, buckets: ConfabServer.metricsBuckets)
        let wait = withMetricsFactory(prometheus) { MediaWait() }
        Thread.detachNewThread {
            MediaLoop(inbox: inbox, sockets: sockets, portable: isPortable, wait: wait).run { sink in
                Router(
                    settings: settings, certificate: certificate, sink: sink, generator: SystemRandomNumberGenerator())
            }
        }
        let server = TransportAddress(v4: 0x7f00_0001, port: UInt16(opened.port))
        let lines = [try MediaLine(certificate), try MediaLine(certificate)]
        let (ann, ben, stream) = (Key(high: 0, low: 1), Key(high: 0, low: 2), Key(high: 0, low: 3))
        try offer(lines[0], ann, .send, inbox, server)
        try offer(lines[1], ben, .receive, inbox, server)
        inbox.perform(.publish) { router in
            router.publish(stream, session: "s", client: ann, mids: Mids(audio: "a"), audio: true, video: false)
            router.subscribe(stream, client: ben, mids: Mids(audio: "a"), audio: true, video: false)
        }
        var sequence: UInt16 = 0
        let end = MediaTime.monotonic + .seconds(60)
        var next = MediaTime.monotonic
        while lines[1].packets < 200, MediaTime.monotonic < end {
            for line in lines { line.turn(server) }
            guard next <= .monotonic else {
                Self.waitForEvent(lines)
                continue
            }
            next = .monotonic + .milliseconds(1)
            sequence &+= 1
            lines[0].speak(sequence, ssrc: Self.ssrc)
        }
        #expect(lines[1].packets >= 200)
        let counters = inbox.counters
        #expect(counters.router.packetsForwarded >= 200)
        let io = counters.sockets
        #expect(io.sent >= 200 && (io.writes...io.sent).contains(io.messages) && io.writes > 0)
        #expect(io.received >= 200 && (1...io.received).contains(io.reads) && counters.wakeups > 0)
        let text = prometheus.exposition()
        let waits = try #require(text.firstMatch(of: /confab_media_wait_seconds_count (\d+)/).flatMap { Int($0.1) })
        // Several packets may have been waiting when the loop woke up.
        #expect((1...Int(sequence)).contains(waits))
        #expect(text.contains("confab_media_wait_seconds_bucket{le=\"0.01\"}"))
        for line in lines { line.transport.close(sink: line) }
    }

    @Test("records what it is doing")
    func activity() async throws {
        let opened = try MediaSockets(
            MediaAddresses(configured: IPAddress("127.0.0.1"), local: [], publicHost: nil, port: 0), port: 0)
        let certificate = try #require(DTLSCertificate.make())
        let inbox = try MediaInbox { _ in }
        #expect(inbox.activity.snapshot.phase == .starting)
        let (sockets, settings) = (
            opened.sockets, RouterSettings(candidates: opened.candidates, clockOrigin: .monotonicOrigin)
        )
        Thread.detachNewThread {
            MediaLoop(inbox: inbox, sockets: sockets, portable: false, wait: MediaWait()).run { sink in
                Router(
                    settings: settings, certificate: certificate, sink: sink, generator: SystemRandomNumberGenerator())
            }
        }
        let seen = NIOLockedValueBox<[MediaActivity.Snapshot]>([])
        for kind in [MediaRequestKind.publish, .update] {
            inbox.perform(kind) { _ in seen.withLockedValue { $0.append(inbox.activity.snapshot) } }
        }
        try await eventually {
            let isDone = seen.withLockedValue { $0.count } == 2 && inbox.activity.snapshot.phase == .waiting
            return isDone ? nil : "the loop does not wait"
        }
        let requests = seen.withLockedValue { $0 }
        #expect(requests.map(\.phase) == [.request, .request] && requests.map(\.request) == [.publish, .update])
        #expect(requests[1].moves > requests[0].moves && inbox.activity.snapshot.moves > requests[1].moves)
        inbox.finish()
        try await eventually { inbox.activity.snapshot.phase == .ended ? nil : "it has not ended" }
    }

    /// Waits until a datagram arrives or the next packet is due.
    private static func waitForEvent(_ lines: [MediaLine]) {
        var entries = lines.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        _ = poll(&entries, nfds_t(entries.count), 1)
    }

    /// Negotiates a connection with one audio section.
    private func offer(
        _ line: MediaLine, _ client: Key, _ side: Side, _ inbox: MediaInbox, _ server: TransportAddress
    ) throws {
        let source = LocalSource(ssrc: Self.ssrc, rtxSSRC: nil, msid: MediaStreamID(stream: "s", track: "t"))
        let section = OfferedMedia.audio(
            mid: "a", side == .send ? .sendonly : .recvonly, source: side == .send ? source : nil)
        let local = LocalParameters(
            ufrag: line.local.ufrag, pwd: line.local.password, fingerprint: line.transport.localFingerprint,
            candidates: [], sessionID: 1, cname: "c"
        )
        let offer = RTC.offer([section], local: local)
        let text = NIOLockedValueBox("")
        let isAnswered = DispatchSemaphore(value: 0)
        inbox.perform(.offer) { router in
            let answer = try? router.offer(client, side, sdp: offer.text, now: .monotonic)
            text.withLockedValue { $0 = answer ?? "" }
            isAnswered.signal()
        }
        #expect(isAnswered.wait(timeout: .now() + 30) == .success)
        let answer = try SessionDescription(parsing: text.withLockedValue { $0 })
        let remote = try RTC.accept(answer, to: offer).remote
        line.transport.setRemote(
            try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd)), fingerprint: remote.fingerprint)
        line.transport.add(Path(socket: 0, remote: server), priority: 1)
    }
}

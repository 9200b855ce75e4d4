import Datagrams
import NIOCore
import SFU
import ServiceLifecycle
import Signaling
import Synchronization
import Wire

/// Keeps the samples for the operator's page.
final class AdminFigureKeeper: Sendable {
    let startedAt: Timestamp
    private let samples = Mutex(AdminHistory())
    private let trouble = Mutex<String?>(nil)

    init(startedAt: Timestamp) { self.startedAt = startedAt }

    var history: AdminHistory { samples.withLock { $0 } }

    /// The time of the newest sample; nil if there is none.
    var newestSample: Timestamp? { samples.withLock { $0.newest } }

    /// Why the server could not get a certificate (ACME), and what to do; nil if it could.
    var certificateTrouble: String? { trouble.withLock { $0 } }

    func note(certificateTrouble: String?) { trouble.withLock { $0 = certificateTrouble } }

    func add(_ figures: AdminFigures, _ totals: AdminTotals, at now: Timestamp, wallNow: Timestamp) {
        samples.withLock { $0.add(figures, totals, at: now, wallNow: wallNow) }
    }
}

/// Takes a sample of the server's figures at regular intervals.
struct AdminSampler: Service {
    let gateway: NIOLoopBound<Gateway>
    let media: MediaPlane?
    let clock: ServerClock
    let keeper: AdminFigureKeeper
    /// The files of the certificate, if it is from an ACME server.
    let certificate: ACMEFiles?

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await sample()
                try? await Task.sleep(for: AdminHistory.interval)
            }
        }
    }

    private func sample() async {
        let gateway = gateway
        keeper.note(certificateTrouble: certificate?.failure().map { "\($0.event) \($0.advice)" })
        let figures = try? await gateway.eventLoop.submit { AdminFigures(gateway.value.runner.hub) }.get()
        guard let figures else { return }
        var totals = AdminTotals()
        if let counters = media?.counters {
            (totals.bytesIn, totals.bytesOut) = (counters.sockets.receivedBytes, counters.sockets.offeredBytes)
            let router = counters.router
            totals.packetsForwarded = router.packetsForwarded
            totals.switches =
                router.changesForSlowness &+ router.changesForCodec &+ router.changesForBandwidth
                &+ router.changesForSize &+ router.changesForPublisher
        }
        #if os(Linux)
        totals.cpuSeconds = ProcessFigures.read()?.cpuSeconds
        #endif
        keeper.add(figures, totals, at: clock.now, wallNow: clock.wallNow)
    }
}

extension AdminFigures {
    fileprivate init(_ hub: Hub) {
        (clients, people, sessions, rooms) = (hub.clientCount, hub.presentCount, hub.sessionCount, hub.roomCount)
        (waiting, matches, activeCalls) = (hub.waitingCount, hub.matchCount, hub.callFigures.active)
        (archives, broadcasts) = (hub.archiveCount, hub.broadcastCount)
    }
}

import Broadcasting
import Signaling
import Synchronization
import Wire

@testable import Server

/// A broadcaster that composes nothing, and notes its commands.
final class TestBroadcaster: SessionBroadcaster {
    private struct State {
        var commands: [BroadcastCommand] = []
        var running: Set<BroadcastID> = []
        var refusal: WireError?
    }

    private let report: @Sendable (BroadcastReport) -> Void
    private let state = Mutex(State())

    init(_ report: @escaping @Sendable (BroadcastReport) -> Void) { self.report = report }

    /// Returns what makes a broadcaster for a server.
    static func maker(_ made: @escaping @Sendable (TestBroadcaster) -> Void = { _ in }) -> TestServerBroadcaster {
        TestServerBroadcaster { report in
            let broadcaster = TestBroadcaster(report)
            made(broadcaster)
            return broadcaster
        }
    }

    var commands: [BroadcastCommand] { state.withLock { $0.commands } }
    func refusal(of request: BroadcastRequest) -> WireError? { state.withLock { $0.refusal } }
    func refuse(_ error: WireError?) { state.withLock { $0.refusal = error } }

    /// Reports that viewers can begin, and that the targets get media.
    func send(_ command: BroadcastCommand) {
        state.withLock { $0.commands.append(command) }
        switch command {
        case .begin(let broadcast):
            _ = state.withLock { $0.running.insert(broadcast.id) }
            if broadcast.hlsStatus != nil { report(.hls(broadcast.id, .ready)) }
            for target in broadcast.request.rtmp.indices { report(.rtmp(broadcast.id, target: target, .live)) }
        case .end(let broadcast): end(broadcast)
        case .add, .remove, .setClasses, .setLayout: break
        }
    }

    /// There is nothing for viewers.
    func origin(of broadcast: BroadcastID, key: BroadcastKey) -> HLSOrigin? { nil }
    var figures: BroadcastFigures { BroadcastFigures(running: state.withLock { $0.running.count }) }

    func stop(waitsForViewers: Bool) async {
        for broadcast in state.withLock({ $0.running }) { end(broadcast) }
    }

    private func end(_ broadcast: BroadcastID) {
        guard state.withLock({ $0.running.remove(broadcast) }) != nil else { return }
        report(.ended(broadcast))
    }
}

import Foundation
import Wire

/// Carries out steps with a media engine, one after the other. Releasing this object closes the connection.
final class PeerRunner: Sendable {
    /// Receives each report with the number of its connection, counted from 1.
    typealias Report = @Sendable (PeerReport, Int) -> Void
    typealias Configure = @Sendable () async throws(ConfabError) -> PeerConfiguration

    private let steps: AsyncStream<PeerStep>.Continuation
    private let task: Task<Void, Never>
    private let peer = LockedValue<(any MediaPeer)?>(nil)

    /// - Parameters:
    ///   - configure: returns the configuration with valid credentials.
    ///   - report: receives the reports. The closure must hold the runner's owner weakly.
    init(engine: any MediaEngine, configure: @escaping Configure, report: @escaping Report) {
        let (stream, steps) = AsyncStream.makeStream(of: PeerStep.self)
        self.steps = steps
        let peer = peer
        task = Task {
            var worker = PeerWorker(engine: engine, configure: configure, report: report, peer: peer)
            for await step in stream { await worker.run(step) }
            worker.finish()
        }
    }

    deinit {
        steps.finish()
        // Cancels a pending request for ICE servers.
        task.cancel()
    }

    func run(_ step: PeerStep) { steps.yield(step) }

    /// Returns the statistics. Entries to which the engine gave no timestamp get the current time. Returns an empty
    /// array if there is no peer connection.
    func statistics() async -> [Statistic] {
        let all = await peer.withLock { $0 }?.statistics() ?? []
        let now = Date()
        return all.map { known in
            var statistic = known
            statistic.timestamp = known.timestamp ?? now
            return statistic
        }
    }
}

/// Carries out the steps of one peer connection, one after the other.
private struct PeerWorker {
    let engine: any MediaEngine
    let configure: PeerRunner.Configure
    let report: PeerRunner.Report
    let peer: LockedValue<(any MediaPeer)?>
    var connection = 0
    var handles: [Int: TransceiverHandle] = [:]
    var events: Task<Void, Never>?

    private var present: (any MediaPeer)? { peer.withLock { $0 } }

    mutating func run(_ step: PeerStep) async {
        switch step {
        case .open(let plans): await open(plans)
        case .close: await close()
        case .add(let plan): await add(plan)
        case .replace(let id, let source):
            if let handle = handles[id] { await replace(handle, source) }
        case .setDirection(let id, let direction):
            if let handle = handles[id] { await present?.setDirection(direction, of: handle) }
        case .activate(let id, let rids): if let handle = handles[id] { await present?.activate(rids, on: handle) }
        case .refreshServers: await refreshServers()
        case .candidate(let candidate): await present?.addCandidate(candidate)
        case .find(let mid):
            if let track = await present?.remote(mid) {
                report(.found(mid: mid, RemoteTrack(media: track)), connection)
            }
        case .expectFrame(let mid): await present?.expectFrame(mid)
        case .offer, .answer, .accept: await negotiate(step)
        }
    }

    private func negotiate(_ step: PeerStep) async {
        guard let present else { return report(.failed(.noPeer), connection) }
        do {
            switch step {
            case .offer(let restartingICE):
                let offer = try await present.offer(restartingICE: restartingICE)
                report(.offered(offer.sdp, mids: await mids(on: present)), connection)
            case .answer(let offer, let isRollingBack):
                if isRollingBack { try await present.rollback() }
                try await present.accept(PeerDescription(.offer, sdp: offer))
                report(.answered(try await present.answer().sdp), connection)
            case .accept(let answer):
                try await present.accept(PeerDescription(.answer, sdp: answer))
                report(.accepted, connection)
            default: break
            }
        } catch {
            report(.failed(error), connection)
        }
    }

    private func mids(on peer: any MediaPeer) async -> [Int: String] {
        var mids: [Int: String] = [:]
        for (id, handle) in handles { mids[id] = await peer.mid(of: handle) }
        return mids
    }

    private mutating func open(_ plans: [TransceiverPlan]) async {
        await close()
        connection += 1
        do {
            let opened = try await engine.makePeer(try await configure())
            peer.withLock { $0 = opened }
            let (events, report, number) = (opened.events, report, connection)
            self.events = Task {
                for await event in events { report(.event(event), number) }
            }
            for plan in plans { await add(plan) }
            report(.opened, connection)
        } catch {
            report(.failed(error), connection)
        }
    }

    private mutating func add(_ plan: TransceiverPlan) async {
        guard let present else { return }
        var setup = TransceiverSetup(plan.kind, plan.direction, source: plan.source?.media)
        (setup.layers, setup.streamID) = (plan.layers, plan.streamID)
        do throws(ConfabError) {
            let handle: TransceiverHandle
            do throws(ConfabError) {
                handle = try await present.add(setup)
            } catch {
                // If the engine rejects only the source, add the transceiver without one. Another source can follow.
                guard let source = plan.source else { throw error }
                setup.source = nil
                handle = try await present.add(setup)
                report(.notReplaced(source, error), connection)
            }
            handles[plan.id] = handle
            if let rids = plan.rids { await present.activate(rids, on: handle) }
        } catch {
            report(.notAdded(plan.id, error), connection)
        }
    }

    private func replace(_ handle: TransceiverHandle, _ source: MediaSource?) async {
        do {
            try await present?.replace(handle, with: source?.media)
        } catch {
            guard let source else { return }
            // Send nothing. Otherwise the previous source would still be sent.
            try? await present?.replace(handle, with: nil)
            report(.notReplaced(source, error), connection)
        }
    }

    private func refreshServers() async {
        // If there are no fresh credentials, keep those in use, which may still be valid.
        guard let present, let fresh = try? await configure() else { return }
        await present.setServers(fresh.servers, relayOnly: fresh.relayOnly)
    }

    private mutating func close() async {
        events?.cancel()
        let closed = peer.withLock { peer in
            defer { peer = nil }
            return peer
        }
        (events, handles) = (nil, [:])
        await closed?.close()
    }

    /// Closes the connection in a separate task, because the runner's task is canceled.
    func finish() {
        events?.cancel()
        let closed = peer.withLock { peer in
            defer { peer = nil }
            return peer
        }
        if let closed { Task { await closed.close() } }
    }
}

extension ConfabError {
    static let noPeer = ConfabError(
        .mediaFailed, "The media engine has closed the peer connection. Publish or subscribe again.", isRetryable: true)
}

import LiveComposing

@testable import Compositor

/// A compositor in simulated time: what a server sends arrives at its time, and each frame is composed when it is due.
struct SimulatedBroadcast {
    let compositor: Compositor
    let configuration: CompositorConfiguration
    /// How long composing a frame takes on this machine, by the encoder's preset. Returns zero on a fast machine.
    var cost: (_ preset: String, _ stride: Int) -> Duration = { _, _ in .zero }
    private(set) var output: [CompositorOutput] = []
    private var now = Duration.zero

    init(_ configuration: CompositorConfiguration) throws {
        self.configuration = configuration
        compositor = try Compositor(configuration, start: .zero, now: .zero)
    }

    /// Sends messages in the order of their times, each `latency` after its time, and composes until the last of them.
    mutating func run(_ inputs: [CompositorInput], until end: Duration, latency: Duration = .zero) throws {
        let ordered = inputs.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
        for (_, input) in ordered {
            try advance(to: input.time + latency)
            compositor.take(input, now: now)
        }
        try advance(to: end)
    }

    /// Composes what was sent before this time.
    mutating func stop(at time: Duration) throws {
        compositor.take(.stop(at: time), now: now)
        while !compositor.isFinished { try compose() }
    }

    private mutating func advance(to time: Duration) throws {
        while compositor.due <= time {
            now = max(now, compositor.due)
            try compose()
        }
        now = max(now, time)
    }

    private mutating func compose() throws {
        try compositor.composeFrame(now: now)
        let step = stats.last.map { ($0.preset, $0.interval / CompositorClock.interval) } ?? ("veryfast", 1)
        let busy = cost(step.0, Int(step.1))
        now += busy
        compositor.addBusy(busy)
        output += compositor.takeOutput()
    }

    /// The composed file.
    var file: [UInt8] {
        output.flatMap { output -> [UInt8] in
            switch output {
            case .initialization(_, let bytes): bytes
            case .fragment(let fragment): fragment.bytes
            default: []
            }
        }
    }

    var fragments: [CompositorFragment] {
        output.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
    }

    var stats: [CompositorStats] {
        output.compactMap { if case .stats(let stats) = $0 { stats } else { nil } }
    }

    var faults: [CompositorFault] {
        output.compactMap { if case .fault(let fault) = $0 { fault } else { nil } }
    }

    /// The streams for which keyframes were requested.
    var requests: [UInt32] {
        output.compactMap { if case .needKeyframe(let stream) = $0 { stream } else { nil } }
    }
}

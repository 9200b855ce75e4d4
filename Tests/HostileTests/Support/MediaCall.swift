import Foundation
import RTC
import Synchronization
import Wire

/// The quality of one phase of a call.
struct CallPhase: Sendable {
    /// Packets received by both members.
    var packets = 0
    /// The longest time without a packet of a stream, for the member for whom it was longer.
    var longestGap = MediaInterval.zero
}

/// The quality of a call between two people during an attack.
struct CallReport: Sendable {
    var before = CallPhase()
    var during = CallPhase()
    var after = CallPhase()
    /// The number of packets that never arrived. `sent` is the number of all packets sent.
    var audioMissing = 0
    var videoMissing = 0
    var sent = 0
    /// The number of retransmissions: those that the server requested from the publishers, and those that the server
    /// sent.
    var repeats = 0
    var keyframesAsked = 0
    /// The number of packets of another publisher in the partner's stream.
    var foreign = 0
    /// The number of packets that could not be decrypted, and of duplicates.
    var forged = 0
    var latencies: [MediaInterval] = []

    var share: Double { Double(audioMissing + videoMissing) / Double(max(1, sent)) }

    var text: String {
        let sorted = latencies.sorted()
        func at(_ part: Int) -> String { sorted.isEmpty ? "-" : milliseconds(sorted[(sorted.count - 1) * part / 100]) }
        return
            "call \(during.packets) packets, missing \(audioMissing) + \(videoMissing) of \(sent), "
            + "longest gap \([before, during, after].map { milliseconds($0.longestGap) }.joined(separator: "/")) ms, "
            + "p50 \(at(50)), p99 \(at(99)) ms, \(repeats) repeated, \(keyframesAsked) keyframes"
    }
}

/// In milliseconds, for display.
func milliseconds(_ interval: MediaInterval) -> String { String(format: "%.1f", Double(interval.nanoseconds) / 1e6) }

/// Two people in a call through the server during an attack, each on a separate thread.
final class UndisturbedCall: Sendable {
    enum Phase: Int, Sendable { case before, during, after, ending }

    private struct Side: Sendable {
        var phases = [CallPhase](repeating: CallPhase(), count: Phase.ending.rawValue + 1)
        var audioSent: UInt32 = 0
        var videoSent: UInt32 = 0
        var receptions: [String: MediaReception] = [:]
        var repeats = 0
        var keyframesAsked = 0
        var forged = 0
    }

    private struct Shared: Sendable {
        var phase = Phase.before
        var quiet = 0
        /// The number of packets that each of the two has received so far.
        var packets = [0, 0]
        var keyframesAsked = [0, 0]
    }

    /// How long to wait for missing packets after sending has stopped.
    private static let settlingTime: Duration = .milliseconds(400)

    private let shared: SharedState
    private let sides: [Background<Side>]

    private final class SharedState: Sendable {
        private let value = Mutex(Shared())
        func with<T: Sendable>(_ body: (inout Shared) -> T) -> T { value.withLock { body(&$0) } }
    }

    private init(_ robots: [MediaRobot]) {
        let shared = SharedState()
        self.shared = shared
        sides = robots.enumerated().map { index, robot in
            Background { try Self.live(robot, index, shared) }
        }
    }

    /// Makes two people join and connect, and starts their threads.
    /// - Parameter tcp: whether the first person's network blocks UDP.
    static func start(_ place: MediaPlace, tcp: Bool = false) throws -> UndisturbedCall {
        let robots = [try MediaRobot(place, tcp: tcp), try MediaRobot(place)]
        for robot in robots {
            try robot.openBoth(slots: 2)
            try robot.publish()
        }
        for (one, other) in [(robots[0], robots[1]), (robots[1], robots[0])] {
            guard let stream = other.published else { throw TimedOut("nothing is published") }
            try one.watch(stream, from: other.source?.mark)
        }
        for (robot, other) in [(robots[0], robots[1]), (robots[1], robots[0])] {
            // Both people also watch the stream of a third member.
            robot.onMessage = { [unowned robot, known = other.connection] message in
                guard case .session(.streamCreated(let created)) = message, created.stream.connection != known else {
                    return
                }
                let mids = MediaMids(audio: "a1", video: "v1")
                try robot.person.say(
                    .session(.subscribe(.init(session: robot.session, stream: created.stream.id, mids: mids))))
            }
        }
        return UndisturbedCall(robots)
    }

    /// Whether both members have received another half second of media, or one of them has ended.
    private func isFlowing(since counts: [Int]) -> Bool {
        !isLively || zip(counts, shared.with { $0.packets }).allSatisfy { $1 >= $0 + 70 }
    }

    var isLively: Bool { !sides.contains(where: \.isFinished) }
    /// The number of keyframes that the server has requested from both members so far.
    var keyframesAsked: Int { shared.with { $0.keyframesAsked.reduce(0, +) } }

    /// Starts another phase of the measurement.
    func enter(_ phase: Phase) { shared.with { $0.phase = phase } }

    /// Waits until both members have received more media.
    func goesOn() throws {
        let counts = shared.with { $0.packets }
        try eventually("the call stands still: \(counts), \(shared.with { $0.packets })") { isFlowing(since: counts) }
    }

    /// Ends the call and returns the report.
    func finish() throws -> CallReport {
        enter(.ending)
        let ends = try sides.map { try $0.join() }
        var report = CallReport()
        for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            for (path, phase) in [(\CallReport.before, Phase.before), (\.during, .during), (\.after, .after)] {
                report[keyPath: path].packets += end.phases[phase.rawValue].packets
                report[keyPath: path].longestGap = max(
                    report[keyPath: path].longestGap, end.phases[phase.rawValue].longestGap)
            }
            guard let audio = end.receptions["a0"], let video = end.receptions["v0"] else { continue }
            report.audioMissing += audio.missing(before: other.audioSent)
            report.videoMissing += video.missing(before: other.videoSent)
            report.sent += Int(other.audioSent) + Int(other.videoSent)
            report.repeats += end.repeats + video.repeats
            report.keyframesAsked += end.keyframesAsked
            report.foreign += audio.foreign + video.foreign + audio.unmarked + video.unmarked
            report.forged += end.forged
            report.latencies += audio.latencies + video.latencies
        }
        return report
    }

    // MARK: One of the two members

    private static func live(_ robot: MediaRobot, _ index: Int, _ shared: SharedState) throws -> Side {
        var side = Side()
        var phase = Phase.before
        var counted = 0
        robot.beginMeasure()
        func close() {
            let (audio, video) = (robot.receptions["a0"], robot.receptions["v0"])
            let packets = (audio?.packets ?? 0) + (video?.packets ?? 0)
            side.phases[phase.rawValue].packets = packets - counted
            counted = packets
            side.phases[phase.rawValue].longestGap = max(
                audio?.longestGap ?? .zero, video?.longestGap ?? .zero, Self.silence(audio), Self.silence(video))
            robot.beginMeasure()
        }
        while phase != .ending {
            try robot.run(for: .milliseconds(20))
            try judge(robot)
            let (packets, asked) = (packets(robot), robot.source?.keyframesAsked ?? 0)
            let next = shared.with {
                ($0.packets[index], $0.keyframesAsked[index]) = (packets, asked)
                return $0.phase
            }
            if next != phase { close() }
            phase = next
        }
        robot.hush()
        shared.with { $0.quiet += 1 }
        while shared.with({ $0.quiet < 2 }) { try robot.run(for: .milliseconds(5)) }
        try robot.run(for: settlingTime)
        try judge(robot)
        (side.audioSent, side.videoSent) = (robot.source?.audioCount ?? 0, robot.source?.videoCount ?? 0)
        side.receptions = robot.receptions
        side.repeats = robot.source?.retransmissionsRequested ?? 0
        side.keyframesAsked = robot.source?.keyframesAsked ?? 0
        let counters = robot.lines[.receive]?.transport.counters
        side.forged = Int((counters?.forged ?? 0) + (counters?.replayed ?? 0)) + robot.strayPackets
        return side
    }

    private static func packets(_ robot: MediaRobot) -> Int {
        robot.receptions.filter { $0.key.hasSuffix("0") }.values.reduce(0) { $0 + $1.packets }
    }

    /// The time since the last packet.
    private static func silence(_ reception: MediaReception?) -> MediaInterval {
        reception?.lastAt.map { MediaWaiting.now - $0 } ?? .zero
    }

    private static func judge(_ robot: MediaRobot) throws {
        guard robot.person.closeCode == nil, robot.endings.isEmpty, robot.lines.values.allSatisfy(\.isConnected) else {
            throw TimedOut(
                "the call was cut off: \(robot.person.closeCode ?? 0), \(robot.endings), "
                    + "\(robot.lines.mapValues(\.transport.state)), \(robot.person.errors)")
        }
    }
}

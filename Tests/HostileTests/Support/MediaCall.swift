import Foundation
import RTC
import Synchronization
import Wire

/// How a while of a call was, at the end that fared worse.
struct CallPhase: Sendable {
    /// Packets that arrived, at both ends together.
    var packets = 0
    /// Without any packet of a stream that flows.
    var longestGap = MediaInterval.zero
}

/// How two people fared who saw each other beside an attack.
struct CallReport: Sendable {
    var before = CallPhase()
    var during = CallPhase()
    var after = CallPhase()
    /// What never arrived, of how much that was sent.
    var audioMissing = 0
    var videoMissing = 0
    var sent = 0
    /// Packets that had to be asked for again, of the publishers and of the server.
    var repeats = 0
    var keyframesAsked = 0
    /// Of somebody else where only the partner can be seen.
    var foreign = 0
    /// Packets that could not be decrypted, or came twice.
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

/// For people.
func milliseconds(_ interval: MediaInterval) -> String { String(format: "%.1f", Double(interval.nanoseconds) / 1e6) }

/// Two people who see and hear each other through the server while somebody attacks it, each on a thread of its own.
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
        /// Seen by the two so far.
        var packets = [0, 0]
        var keyframesAsked = [0, 0]
    }

    /// How long what is missing may still come when nothing more is sent.
    private static let patience: Duration = .milliseconds(400)

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

    /// Lets two people join, and call each other.
    /// - Parameter tcp: whether the first has a network that lets no UDP through.
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
            // Whatever a third one publishes is watched too: it may do its worst.
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

    /// Whether both have seen half a second's worth since then, or one of them is gone.
    private func isFlowing(since counts: [Int]) -> Bool {
        !isLively || zip(counts, shared.with { $0.packets }).allSatisfy { $1 >= $0 + 70 }
    }

    var isLively: Bool { !sides.contains(where: \.isFinished) }
    /// Keyframes that both were asked for so far.
    var keyframesAsked: Int { shared.with { $0.keyframesAsked.reduce(0, +) } }

    /// What comes now is of another phase.
    func enter(_ phase: Phase) { shared.with { $0.phase = phase } }

    /// Waits until both have seen more of each other.
    func goesOn() throws {
        let counts = shared.with { $0.packets }
        try eventually("the call stands still: \(counts), \(shared.with { $0.packets })") { isFlowing(since: counts) }
    }

    /// Lets both finish.
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

    // MARK: One of the two

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
        try robot.run(for: patience)
        try judge(robot)
        (side.audioSent, side.videoSent) = (robot.source?.audioCount ?? 0, robot.source?.videoCount ?? 0)
        side.receptions = robot.receptions
        side.repeats = robot.source?.repeatsAsked ?? 0
        side.keyframesAsked = robot.source?.keyframesAsked ?? 0
        let counters = robot.lines[.receive]?.transport.counters
        side.forged = Int((counters?.forged ?? 0) + (counters?.replayed ?? 0)) + robot.strayPackets
        return side
    }

    private static func packets(_ robot: MediaRobot) -> Int {
        robot.receptions.filter { $0.key.hasSuffix("0") }.values.reduce(0) { $0 + $1.packets }
    }

    /// What has lasted since the last packet.
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

import Foundation
import Robots

extension LoadReport {
    /// The benchmark's results as text.
    var text: String {
        func figure(_ value: Double, _ digits: Int) -> String {
            value.isFinite ? String(format: "%.\(digits)f", value) : "unknown"
        }
        let share = figure(100 * Double(lost) / Double(max(1, expected)), 3)
        let (ours, theirs) = (figure(robotsLoad * 100, 1), figure(serverLoad * 100, 1))
        var lines = [
            "\(target): \(publishers) publishers, \(subscribers) subscribers, \(packets) packets, \(figure(seconds, 1)) s",
            "forwarded      \(received) packets, \(figure(packetsPerSecond, 0)) per second",
            "CPU            \(figure(processorPerPacket, 2)) µs per packet; the server used \(theirs) % of a core, "
                + "the load generator \(ours) %",
            "memory         \(figure(memoryPerSubscriber, 1)) kB per subscriber",
            "delay          median \(figure(delayMedian, 2)) ms, 99th percentile \(figure(delay99, 2)) ms, maximum "
                + "\(figure(delayMost, 2)) ms",
            "lost           \(lost) of \(expected) (\(share) %): \(lostByServer) by the server, \(lostByMachine) by "
                + "this machine, \(unexplained) for unknown reasons",
            "dropped        \(droppedAtServer) datagrams at the server's sockets, \(droppedHere) at the load "
                + "generator's sockets, \(droppedBetween) in the kernel's backlog",
            "not sent       \(unsentByServer) datagrams from the server, \(unsentHere) from the load generator "
                + "(rejected by the kernel)",
        ]
        if visits > 0 {
            let times = "median \(figure(firstFramesMedian, 0)) ms, 95th percentile \(figure(firstFrames95, 0)) ms"
            lines.append("first frames   \(times), from joining to a frame of everyone, of \(visits) visitors")
            lines.append("memory         \(figure(memoryPerClient, 1)) kB per participant")
        }
        for node in nodes ?? [] {
            lines.append(
                "\(node.server): \(figure(node.processorSeconds, 2)) s of CPU, \(node.forwarded) packets to clients, "
                    + "\(node.relayed) to other nodes")
        }
        for path in paths ?? [] {
            lines.append(
                "\(path.from) to \(path.to)         median \(figure(path.delayMedian, 2)) ms, 99th percentile "
                    + "\(figure(path.delay99, 2)) ms, longest gap \(figure(path.longestGap, 0)) ms, \(path.incompleteFrames) of "
                    + "\(path.frames) frames incomplete")
        }
        if pauses > 0 { lines.append("The load generator was late \(pauses) times: this machine is too busy.") }
        if broken > 0 { lines.append("\(broken) connections were lost.") }
        return lines.joined(separator: "\n")
    }
}

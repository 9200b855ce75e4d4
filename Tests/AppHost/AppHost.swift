import AppModel
import ConfabHeadless
import Foundation
import Observation

/// The model of the iOS app with a simulated device, as a program: the tests in browsers call it. It reads commands from the
/// standard input, one per line, and writes its state as a line of JSON whenever it changes. It ends with its input.
///
///     AppHost FILE…      the files are the camera and the microphone: VP8 in IVF, Opus in Ogg
@main enum AppHost {
    static func main() async {
        let files = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
        await Host(publishing: files).run(lines())
    }

    /// The lines of the standard input. Reading blocks, so it has a thread of its own.
    private static func lines() -> AsyncStream<String> {
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let text = readLine() { line.yield(text) }
            line.finish()
        }
        return lines
    }
}

/// The app, its device, and what tests see of them.
@MainActor final class Host {
    private let device = SimulatedDevice(at: DevicePosition(latitude: 51.5074, longitude: -0.1278))
    private let app: ApplicationModel
    private let frames = FrameCounter()
    private var last: Snapshot?

    init(publishing files: [URL]) {
        app = ApplicationModel(
            platform: device.platform, server: ClientServer(media: FileEngine(publishing: files)), hasRoulette: true)
    }

    func run(_ lines: AsyncStream<String>) async {
        watch()
        for await line in lines {
            guard !perform(line) else { continue }
            FileHandle.standardError.write(Data("This is not a command: \(line)\n".utf8))
            exit(2)
        }
    }

    // MARK: Commands

    /// Carries out a command: a word, and what follows it. Returns false if there is no such command.
    private func perform(_ line: String) -> Bool {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1] : ""
        switch parts.first {
        case "server":
            app.welcome.address = rest
            app.welcome.submit()
        case "agree":
            app.aboutYou?.name = rest
            app.aboutYou?.isRulesAgreed = true
            app.aboutYou?.submit()
        case "nearby":
            app.tab = .nearby
            app.nearby.share()
        case "call": call(rest)
        case "press": return press(rest)
        case "system": return system(rest)
        default: return false
        }
        return true
    }

    /// Presses the button beside a person's name.
    private func call(_ name: String) {
        if let row = app.nearby.rows.first(where: { $0.title == name }) { app.nearby.call(row.id, video: true) }
    }

    /// Presses a button of the app during a call.
    private func press(_ button: String) -> Bool {
        switch button {
        case "mute": app.calls.toggleMute()
        case "camera": app.calls.toggleCamera()
        case "hold": app.calls.toggleHold()
        case "end": app.calls.end()
        default: return false
        }
        return true
    }

    /// Uses the system's call screen.
    private func system(_ action: String) -> Bool {
        switch action {
        case "answer": device.calls.answer()
        case "end and answer": device.calls.answer(endingOther: true)
        case "end": device.calls.end()
        case "mute": device.calls.mute(true)
        case "unmute": device.calls.mute(false)
        case "hold": device.calls.hold(true)
        case "resume": device.calls.hold(false)
        default: return false
        }
        return true
    }

    // MARK: State

    /// Writes the state now, and again after each change.
    private func watch() {
        let snapshot = withObservationTracking {
            frames.count(app.calls.partner)
            return Snapshot(
                isOnline: app.calls.coordinator.isOnline, screen: app.lines.map(\.description),
                system: device.calls.calls,
                endings: device.calls.endings.map(\.rawValue), faults: device.calls.faults,
                isSounding: device.audio.isSounding, frames: frames.number)
        } onChange: {
            // It is notified before the change.
            Task { @MainActor [weak self] in self?.watch() }
        }
        guard snapshot != last else { return }
        last = snapshot
        guard let json = try? JSONEncoder().encode(snapshot) else { return }
        FileHandle.standardOutput.write(json + Data("\n".utf8))
    }
}

/// What a test sees of the app.
struct Snapshot: Encodable, Equatable {
    var isOnline: Bool
    /// What the person reads on the app's screen.
    var screen: [String]
    /// What the person sees on the system's call screen.
    var system: [SimulatedCallKit.ShownCall]
    /// How the ends of calls were reported to the system, as CallKit's numbers.
    var endings: [Int]
    /// What the system would not have accepted.
    var faults: [String]
    /// Whether the device plays and records.
    var isSounding: Bool
    /// The frames of the other person's video, in tens.
    var frames: Int
}

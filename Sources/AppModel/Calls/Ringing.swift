import Foundation

/// A ringtone that the app plays where CallKit may not be used.
public enum RingTone: CaseIterable, Sendable {
    case incoming
    /// For a call that arrives during a conversation. The tone must not be louder than the conversation.
    case waiting

    static let sampleRate = 22_050

    /// The notes, each with its frequency in hertz, and its start and end in seconds. The web app uses the same ones.
    private var notes: [(frequency: Double, start: Double, end: Double)] {
        switch self {
        case .incoming: [(660, 0, 0.18), (880, 0.2, 0.38), (660, 0.4, 0.58), (880, 0.6, 0.95)]
        case .waiting: [(520, 0, 0.09), (520, 0.16, 0.25)]
        }
    }

    private var volume: Double {
        switch self {
        case .incoming: 0.8
        case .waiting: 0.3
        }
    }

    /// The time from one start of the tone to the next.
    var interval: Duration {
        switch self {
        case .incoming: .seconds(3)
        case .waiting: .seconds(4)
        }
    }

    /// The tone as a WAV file with 16-bit samples and one channel.
    public var wav: Data {
        let samples = samples
        let size = UInt32(samples.count * 2)
        var file = Data("RIFF".utf8)
        file.append(little: 36 + size)
        file += Data("WAVEfmt ".utf8)
        file.append(little: UInt32(16))
        // Linear PCM, one channel.
        file.append(little: UInt16(1))
        file.append(little: UInt16(1))
        file.append(little: UInt32(Self.sampleRate))
        file.append(little: UInt32(Self.sampleRate * 2))
        file.append(little: UInt16(2))
        file.append(little: UInt16(16))
        file += Data("data".utf8)
        file.append(little: size)
        for sample in samples { file.append(little: UInt16(bitPattern: sample)) }
        return file
    }

    private var samples: [Int16] {
        let length = notes.map(\.end).max() ?? 0
        var samples = [Int16](repeating: 0, count: Int(length * Double(Self.sampleRate)))
        for (frequency, start, end) in notes {
            for index in Int(start * Double(Self.sampleRate))..<Int(end * Double(Self.sampleRate)) {
                let time = Double(index) / Double(Self.sampleRate)
                // A tone that starts at full volume clicks, so it fades in and out.
                let fade = min(1, (time - start) / 0.01, (end - time) / 0.01)
                samples[index] = Int16(sin(2 * .pi * frequency * time) * fade * volume * Double(Int16.max))
            }
        }
        return samples
    }
}

extension Data {
    fileprivate mutating func append(little number: some FixedWidthInteger) {
        for index in 0..<number.bitWidth / 8 { append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }
}

/// Plays ringtones.
@MainActor public protocol RingSpeaker: AnyObject {
    /// Plays a tone once, and vibrates if the system allows it. The silent switch applies.
    func play(_ tone: RingTone)
    /// Stops the tone that is playing.
    func stop()
}

/// Repeats a tone while at least one call rings.
@MainActor final class Ringer {
    private let speaker: any RingSpeaker
    private let clock: any AppClock
    private var ringing: Set<SystemCallID> = []
    private var cancel: (@MainActor () -> Void)?
    /// Whether a conversation is under way that a loud tone would disturb.
    var isQuiet: @MainActor () -> Bool = { false }

    init(_ speaker: any RingSpeaker, clock: any AppClock) { (self.speaker, self.clock) = (speaker, clock) }

    /// Adds a ringing call, and starts the tone unless it is already being repeated.
    func ring(_ call: SystemCallID) {
        ringing.insert(call)
        if cancel == nil { play() }
    }

    func stop(_ call: SystemCallID) {
        guard ringing.remove(call) != nil, ringing.isEmpty else { return }
        cancel?()
        cancel = nil
        speaker.stop()
    }

    private func play() {
        let tone = isQuiet() ? RingTone.waiting : .incoming
        speaker.play(tone)
        cancel = clock.schedule(after: tone.interval) { [weak self] in self?.play() }
    }
}

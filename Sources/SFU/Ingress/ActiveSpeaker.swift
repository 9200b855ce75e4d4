import RTC

/// Detects the active speaker of a session from the audio levels in publishers' packets (RFC 6464).
///
/// Loudness is smoothed, and another stream must be clearly louder to take over, so a cough does not change the active speaker.
struct ActiveSpeaker: Sendable {
    /// The time between decisions about the active speaker. Faster changes would be hard to follow.
    static let interval = MediaInterval.milliseconds(300)
    /// The minimum loudness of a speaker, in decibels above silence (127 minus the level of RFC 6464). Background noise
    /// in a quiet room stays below it.
    static let audible = 60.0
    /// The number of decibels by which another stream must be louder than the current speaker to take over.
    static let margin = 6.0
    /// The weight of each new packet in the moving average, chosen for 50 packets a second.
    private static let weight = 0.05

    /// The loudness of one stream, as a moving average.
    private struct Voice: Sendable {
        var loudness = 0.0
        var lastPacketAt = MediaTime(nanoseconds: 0)
    }

    private var voices: [Key: Voice] = [:]
    private(set) var current: Key?

    /// Records the audio level of one packet, from 0 (loudest) to 127 (silence).
    mutating func record(_ stream: Key, level: UInt8, now: MediaTime) {
        let loudness = Double(127 - min(level, 127))
        guard let index = voices.index(forKey: stream) else {
            voices[stream] = Voice(loudness: loudness * Self.weight, lastPacketAt: now)
            return
        }
        voices.values[index].loudness += (loudness - voices.values[index].loudness) * Self.weight
        voices.values[index].lastPacketAt = now
    }

    /// Records the loudness of a stream that another router receives.
    mutating func record(_ stream: Key, loudness: Double, now: MediaTime) {
        voices[stream] = Voice(loudness: loudness, lastPacketAt: now)
    }

    /// Returns the loudness of a stream; zero if it has sent no audio.
    func loudness(of stream: Key) -> Double { voices[stream]?.loudness ?? 0 }

    mutating func remove(_ stream: Key) { voices[stream] = nil }

    /// Makes the streams quieter that send no packets, because they are muted or use DTX. Must be called every `interval`.
    mutating func fade(now: MediaTime) {
        for (stream, voice) in voices where now - voice.lastPacketAt > Self.interval {
            voices[stream]?.loudness = voice.loudness * 0.5
        }
    }

    /// Updates `current`, the stream of the active speaker. It becomes nil if that stream was removed and no other
    /// stream is loud enough.
    mutating func choose() {
        let loudest = voices.max { ($0.value.loudness, $0.key.low) < ($1.value.loudness, $1.key.low) }
        let floor = current.flatMap { voices[$0]?.loudness }
        if floor == nil { current = nil }
        if let loudest, loudest.value.loudness > Self.audible, loudest.key != current,
            loudest.value.loudness > (floor ?? 0) + (floor == nil ? 0 : Self.margin)
        {
            current = loudest.key
        }
    }

    /// Follows the choice of another router.
    mutating func follow(_ stream: Key?) { current = stream }

    var isEmpty: Bool { voices.isEmpty }
}

/// The active speaker of each session. If a session spans nodes, members see the choice of the session's node. On other nodes, the choice
/// only decides which video has priority.
final class Speakers {
    private let output: RouterOutput
    private(set) var sessions: [String: ActiveSpeaker] = [:]
    /// The sessions whose active speaker this router chooses and reports.
    private var reported: Set<String> = []
    private var updatedAt: MediaTime?

    init(output: RouterOutput) { self.output = output }

    /// Returns the stream of a session's active speaker; nil if nobody speaks.
    func current(_ session: String) -> Key? { sessions[session]?.current }

    /// Whether there is no active speaker whose end this router must still report.
    var isSettled: Bool { reported.isEmpty }

    /// Records the audio level of one packet.
    func hear(_ publication: Publication, level: UInt8, now: MediaTime) {
        sessions[publication.session, default: ActiveSpeaker()].record(publication.stream, level: level, now: now)
    }

    /// Records the loudness of a stream that another router receives.
    func hear(_ publication: Publication, loudness: Double, now: MediaTime) {
        sessions[publication.session, default: ActiveSpeaker()].record(
            publication.stream, loudness: loudness, now: now)
    }

    /// Returns the loudness of a stream.
    func loudness(of publication: Publication) -> Double {
        sessions[publication.session]?.loudness(of: publication.stream) ?? 0
    }

    func remove(_ publication: Publication) { sessions[publication.session]?.remove(publication.stream) }

    /// Updates the active speakers, and reports those that changed. The active speaker of a session is chosen and
    /// reported by the router with the lowest index that has publishers in the session. The others follow, because they
    /// know each other's voices a little later and would choose differently.
    /// - Parameters:
    ///   - streams: where to mark the streams of the active speakers.
    ///   - pipes: where to send them.
    func update(_ streams: Streams, _ pipes: Pipes, now: MediaTime) {
        if let updatedAt, now - updatedAt < ActiveSpeaker.interval { return }
        updatedAt = now
        let loop = pipes.loop
        let reporters = pipes.isConnected ? streams.lowestLoops(own: loop) : nil
        for session in sessions.keys {
            // If the last publisher has left, the router that reported the session before does so once more.
            let isReporter = reporters.map { $0[session].map { $0 == loop } ?? reported.contains(session) } ?? true
            let isNewReporter = isReporter && reported.insert(session).inserted
            sessions[session]?.fade(now: now)
            if isReporter {
                let isChanged = change(session, streams) { $0.choose() }
                let current = current(session)
                if isChanged || isNewReporter && current != nil {
                    output.report(.speaking(session: session, stream: current))
                }
            } else {
                reported.remove(session)
            }
            if sessions[session]?.isEmpty ?? false {
                sessions[session] = nil
                reported.remove(session)
            }
        }
        guard pipes.isConnected, !reported.isEmpty else { return }
        pipes.send(speakers: reported.map { PipedSpeaker(session: $0, stream: current($0)) })
    }

    /// Follows the active speakers that another router has chosen.
    func follow(_ speakers: [PipedSpeaker], _ streams: Streams) {
        for speaker in speakers where !reported.contains(speaker.session) {
            _ = change(speaker.session, streams) { $0.follow(speaker.stream) }
        }
    }

    /// Changes the active speaker of a session, and marks its stream. Returns whether it is another one now.
    private func change(_ session: String, _ streams: Streams, _ body: (inout ActiveSpeaker) -> Void) -> Bool {
        guard var speaker = sessions[session] else { return false }
        let former = speaker.current
        body(&speaker)
        sessions[session] = speaker
        guard speaker.current != former else { return false }
        if let former { streams.publication(former)?.isSpeaking = false }
        if let current = speaker.current { streams.publication(current)?.isSpeaking = true }
        return true
    }
}

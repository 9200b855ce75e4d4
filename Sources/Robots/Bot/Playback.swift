import RTC

/// Where in its programme a bot is: what is due when, round after round, with times that only grow.
///
/// Video and sound of about the same length begin each round together; otherwise each repeats by itself.
struct Playback {
    enum Kind { case video, audio }

    /// What is to be sent now.
    struct Due: Equatable {
        var kind: Kind
        var item: Programme.Item
        /// When it was due: what its timestamp says.
        var at: MediaTime
    }

    /// A keyframe that is asked for is shown early when its own time is no further away; the picture then stands still
    /// until the time has caught up, and stays with its sound.
    static let mostHold = MediaInterval.seconds(2)
    /// From one keyframe to another that is asked for: several who ask at once get one.
    static let keyframeInterval = MediaInterval.milliseconds(300)
    /// Files whose lengths differ by no more belong together, as a film's picture and sound do.
    static let mostDifference = MediaInterval.seconds(1)
    /// Later than this nothing is caught up: the machine slept, or the line was gone.
    static let mostLate = MediaInterval.milliseconds(500)

    private struct Position {
        let track: Programme.Track
        let period: MediaInterval
        /// When the round began.
        var began: MediaTime
        var index = 0

        var next: Programme.Item { track.items[index] }
        var due: MediaTime { began + next.at }

        mutating func put(off interval: MediaInterval) { began = began + interval }

        mutating func advance() {
            index += 1
            guard index >= track.items.count else { return }
            index = 0
            began = began + period
        }
    }

    private var video: Position?
    private var audio: Position?
    private var lastKeyframe: (index: Int, at: MediaTime)?
    /// When one that was asked for is to be shown.
    private var keyframeDue: MediaTime?
    private let isFilm: Bool

    init(_ programme: Programme, beginning now: MediaTime) {
        let lengths = [programme.video?.length, programme.audio?.length].compactMap(\.self)
        let longest = lengths.max() ?? .zero
        let shortest = lengths.min() ?? .zero
        let isFilm = lengths.count == 2 && longest - shortest <= Self.mostDifference
        self.isFilm = isFilm
        func position(_ track: Programme.Track) -> Position {
            Position(track: track, period: isFilm ? longest : track.length, began: now)
        }
        video = programme.video.map(position)
        audio = programme.audio.map(position)
    }

    /// When `next` has something; nil when there is nothing to play.
    var nextDue: MediaTime? {
        [video?.due, audio?.due, keyframeDue].compactMap(\.self).min()
    }

    /// What is due by now, the earliest first; nil when nothing is. Ask until then.
    mutating func next(now: MediaTime) -> Due? {
        if let keyframeDue, keyframeDue <= now { return takeKeyframe(at: now) }
        guard let due = nextDue, due <= now else { return nil }
        if now - due > Self.mostLate {
            video?.put(off: now - due)
            audio?.put(off: now - due)
        }
        if let video, video.due <= (audio?.due ?? video.due) {
            let due = Due(kind: .video, item: video.next, at: video.due)
            if due.item.isKeyframe { (lastKeyframe, keyframeDue) = ((video.index, now), nil) }
            self.video?.advance()
            return due
        }
        guard let audio else { return nil }
        let item = Due(kind: .audio, item: audio.next, at: audio.due)
        self.audio?.advance()
        return item
    }

    /// Somebody needs a keyframe. It comes with `next`: the last one again if nothing followed it yet, otherwise the
    /// next in the file, or its first.
    mutating func showKeyframe(now: MediaTime) {
        guard video != nil, keyframeDue == nil else { return }
        let soonest = lastKeyframe.map { $0.at + Self.keyframeInterval } ?? now
        keyframeDue = max(now, soonest)
    }

    private mutating func takeKeyframe(at now: MediaTime) -> Due? {
        keyframeDue = nil
        guard var position = video else { return nil }
        if let lastKeyframe, (lastKeyframe.index + 1) % position.track.items.count == position.index {
            return show(lastKeyframe.index, of: position, now)
        }
        while !position.next.isKeyframe { position.advance() }
        let ahead = position.due - now
        if ahead > Self.mostHold { seek(&position, by: ahead) }
        let index = position.index
        position.advance()
        video = position
        return show(index, of: position, now)
    }

    private mutating func show(_ index: Int, of position: Position, _ now: MediaTime) -> Due {
        lastKeyframe = (index, now)
        return Due(kind: .video, item: position.track.items[index], at: now)
    }

    /// Skips what lies before the keyframe, in the sound of a film too.
    private mutating func seek(_ position: inout Position, by ahead: MediaInterval) {
        position.began = position.began - ahead
        guard isFilm, var sound = audio else { return }
        let before = sound.due
        sound.began = sound.began - ahead
        // At most one round: the next keyframe is no further away.
        for _ in 0..<sound.track.items.count where sound.due < before { sound.advance() }
        audio = sound
    }
}

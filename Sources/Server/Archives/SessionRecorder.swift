import Signaling
import Wire

/// Records the streams of sessions into files.
///
/// Events are reported as `Input.recording`. Every `begin` is answered with exactly one `ended` or `failed`.
protocol SessionRecorder: Sendable {
    /// Carries out a command, in order with the others. Does not block.
    func send(_ command: RecordingCommand)

    /// Why no archive may be started now, for example because the disk is nearly full; nil if one may.
    var refusal: WireError? { get }

    /// Completes what an earlier run of the server has left, and reports it as `RecordingEvent.recovered`. Does not block.
    ///
    /// - Parameter others: archives that are reported even if they are complete.
    func recover(_ others: [ArchiveID])

    /// What was recorded, for the metrics.
    var counters: RecorderCounters { get }

    /// Ends all archives, and reports them. Blocks until their files are complete.
    func stop()
}

extension Recorder: SessionRecorder {}

/// Composes the recorded streams of an archive into one file. Begins while the archive is recorded, and ends after it has stopped.
///
/// The result is reported as `Input.composed` or `Input.notComposed`, exactly once for each call of `compose`, unless the archive is given up. Until
/// then `Input.composingWaits` reports changes of what composing waits for.
protocol ArchiveComposer: Sendable {
    /// Composes the parts of an archive that can no longer change, while it is being recorded and no other archive waits. Does not block,
    /// and reports nothing.
    func composeAhead(_ archive: ArchiveRecord)

    /// Starts composing, or resumes what an earlier run of the server left unfinished. Does not block.
    func compose(_ archive: ArchiveRecord)

    /// Forgets an archive that waits.
    ///
    /// - Returns: false if it is being composed or tried now. True if it is unknown.
    func giveUp(_ archive: ArchiveID) -> Bool
}

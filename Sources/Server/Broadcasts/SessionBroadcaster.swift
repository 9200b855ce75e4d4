import Broadcasting
import Signaling
import Wire

/// Composes broadcasts of sessions, and offers them to viewers and RTMP targets.
///
/// Events are reported as `Input.broadcast`. Every `begin` is answered with exactly one `ended` or `failed`.
protocol SessionBroadcaster: Sendable {
    /// Carries out a command, in order with the others. Does not block.
    func send(_ command: BroadcastCommand)

    /// Why a broadcast may not be started now; nil if it may. Does not block.
    func refusal(of request: BroadcastRequest) -> WireError?

    /// Ends all broadcasts, and reports them as `ended`. Returns when RTMP targets have got what was composed, and viewers of HLS had
    /// the time to load it (`broadcast.stopTimeout`).
    ///
    /// - Parameter waitsForViewers: false to give viewers no time.
    func stop(waitsForViewers: Bool) async

    /// Returns what answers the viewers of a broadcast; nil if it has none, or if the key is wrong. The broadcast may have ended.
    func origin(of broadcast: BroadcastID, key: BroadcastKey) -> HLSOrigin?

    /// What the broadcasts do now, for the metrics.
    var figures: BroadcastFigures { get }
}

import RTC

/// The tracks of all publishers, by client. Publishers enter their tracks, and subscriptions look them up.
final class FeedTable {
    private var tracks: [Key: [FeedTrack]] = [:]

    /// Returns the tracks that the client publishes.
    func tracks(of client: Key) -> [FeedTrack] { tracks[client] ?? [] }

    func track(_ mid: String, of client: Key) -> FeedTrack? { tracks[client]?.first { $0.mid == mid } }

    /// Replaces the tracks of a client.
    func set(_ tracks: [FeedTrack], of client: Key) { self.tracks[client] = tracks.isEmpty ? nil : tracks }
}

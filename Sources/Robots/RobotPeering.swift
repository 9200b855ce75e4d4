import Peers
import RTC
import Wire

extension RobotClient {
    /// Opens one of the two media connections with the server. Creates the connection on the loop, sends an offer, and applies
    /// the answer. Returns before the connection is established. If the exchange fails, ends this media connection.
    ///
    /// - Parameter prepare: configures the connection on the loop's thread and returns the offer to send.
    public func openMedia(
        _ side: MediaSide, on loop: RobotLoop, _ prepare: @escaping @Sendable (RobotConnection) -> String
    ) async throws -> RobotConnection {
        let (connection, sdp) = try await loop.run {
            let connection = try loop.open()
            return (connection, prepare(connection))
        }
        do {
            let answer = try await offer(side, sdp: sdp)
            try await loop.run { try connection.accept(answer: answer, now: loop.now) }
        } catch {
            loop.perform { loop.end(connection) }
            throw error
        }
        return connection
    }
}

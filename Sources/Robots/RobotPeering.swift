import RTC
import Wire

extension RobotClient {
    /// Opens one of the two connections with the server: makes it on the loop, offers, and takes the answer. It
    /// connects by itself from then on.
    ///
    /// - Parameter prepare: on the loop's thread; sets the connection up and returns its `offer`.
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

    /// Offers again over a connection that there is: other sections, or an ICE restart.
    public func renegotiate(
        _ side: MediaSide, _ connection: RobotConnection, on loop: RobotLoop,
        _ prepare: @escaping @Sendable (RobotConnection) -> String
    ) async throws {
        let sdp = try await loop.run { prepare(connection) }
        let answer = try await offer(side, sdp: sdp)
        try await loop.run { try connection.accept(answer: answer, now: loop.now) }
    }
}

import Server
import Signaling

extension TestServer {
    /// Runs a server whose public URL may have a path.
    static func run<Result: Sendable>(
        publicURL: String, _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await run({ $0.publicURL = publicURL }, body)
    }

    /// Runs a server on which calls ring for a given time.
    static func run<Result: Sendable>(
        ringing: Duration, _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await run({ $0.rules.ringTimeout = ringing }, body)
    }

    /// Runs a server that forgets a lost connection, and ends its calls, after this time.
    static func run<Result: Sendable>(
        resumeGrace: Duration, _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await run({ $0.rules.resumeGrace = resumeGrace }, body)
    }

    /// Runs a server on which both people must join an accepted call within this time.
    static func run<Result: Sendable>(
        joining: Duration, _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await run({ $0.rules.joinTimeout = joining }, body)
    }

    /// Runs a server that updates lists of people nearby this often.
    static func run<Result: Sendable>(
        nearbyInterval: Duration, _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await run({ $0.rules.nearbyInterval = nearbyInterval }, body)
    }
}

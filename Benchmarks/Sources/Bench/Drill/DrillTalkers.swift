import NIOCore
import Signaling
import Wire

/// Two people in one session who store nothing. Each answers the other's signal at once, so that their longest silence shows for
/// how long the server served nobody.
///
/// The class is `@unchecked Sendable` because its state is used only on its loop.
final class DrillTalkers: @unchecked Sendable {
    struct Figures {
        var signals = 0
        var longestGap: Duration = .zero
        /// Why the chat ended; nil if it continues.
        var end: String?
    }

    private static let pause = TimeAmount.milliseconds(10)

    private let loop: any EventLoop
    private let session: SessionID
    private var clients: [LoadClient] = []
    private var last = ContinuousClock.now
    private var figures = Figures()
    private var isOver = false

    /// Connects the two, and starts their chat.
    init(port: Int, project: Project, on loop: any EventLoop) async throws {
        self.loop = loop
        var generator = SplitMix64(state: 17)
        let now = Timestamp(milliseconds: now())
        let session = project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
        self.session = session
        let token = project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now,
            using: &generator)
        for number in 0..<2 {
            let client = try await LoadClient.connect(port: port, number: 500 + number, on: loop).get()
            _ = try await loop.flatSubmit { client.welcome() }.get()
            let join = ClientMessage.session(.join(.init(session: session, token: token)))
            _ = try await loop.flatSubmit { client.request(join) }.get()
            clients.append(client)
        }
        try await loop.submit {
            for (index, client) in self.clients.enumerated() {
                client.onMessage = { self.heard($1, by: index, $0) }
                client.onEnd = { if !self.isOver { self.figures.end = self.figures.end ?? $0 } }
            }
            self.last = .now
            self.say(0)
        }.get()
    }

    private func say(_ speaker: Int) {
        clients[speaker].ask(.session(.signal(.init(session: session, type: "chat", data: "\(speaker)"))))
    }

    private func heard(_ message: ServerMessage, by index: Int, _ client: LoadClient) {
        guard case .session(.signal(let signal)) = message, signal.data == "\(1 - index)", !isOver else { return }
        let now = ContinuousClock.now
        figures.longestGap = max(figures.longestGap, now - last)
        figures.signals += 1
        last = now
        loop.scheduleTask(in: Self.pause) { if !self.isOver { self.say(index) } }
    }

    /// Returns the figures since the last call. A silence that has not ended counts.
    func takeFigures() async throws -> Figures {
        try await loop.submit { [self] in
            if figures.end == nil { figures.longestGap = max(figures.longestGap, ContinuousClock.now - last) }
            defer { figures = Figures(end: figures.end) }
            return figures
        }.get()
    }

    func stop() async throws {
        try await loop.submit { [self] in
            isOver = true
            for client in clients { client.end() }
        }.get()
    }
}

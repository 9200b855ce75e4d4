import Signaling
import Testing
import Wire

/// A WHIP or WHEP client driven by a test. It also takes the place of the media plane.
final class WHIPClient {
    private unowned let stage: Stage
    let socket: SocketID
    let session: SessionID
    let purpose: ResourcePurpose
    let token: String
    private var taken = 0
    private var requests: UInt64 = 0

    init(_ stage: Stage, _ session: SessionID, _ purpose: ResourcePurpose = .publish, token: String? = nil) {
        (self.stage, self.session, self.purpose) = (stage, session, purpose)
        socket = stage.resource()
        self.token = token ?? stage.token(session, purpose == .publish ? .publisher : .subscriber)
    }

    static let mids = MediaMids(audio: "0", video: "1")
    static let credentials = ResourceCredentials(ufrag: "abcd", pwd: "0123456789012345678901")
    static let others = ResourceCredentials(ufrag: "efgh", pwd: "1123456789012345678901")

    static func sdp(_ credentials: ResourceCredentials) -> String {
        "head\r\na=ice-ufrag:\(credentials.ufrag)\r\na=ice-pwd:\(credentials.pwd)\r\ntail"
    }

    /// Sends the POST. The media plane does not answer yet.
    func post(address: String = "192.0.2.1") throws {
        let projects = stage.hub.hubSettings.projects
        let grant = try projects.verifyResourceToken(token, for: session, purpose, now: stage.now)
        let offer = ResourceOffer(head: "head\r\n", tail: "tail", credentials: Self.credentials, mids: Self.mids)
        stage.handle(
            .resourceArrived(
                ResourceArrival(
                    socket: socket, purpose: purpose, grant: grant, token: token, offer: offer, address: address))
        )
    }

    /// The offer that the media plane received, if its most recent command was an offer.
    var offered: (client: ConnectionID, re: UInt64, side: MediaSide, sdp: String)? {
        for case .offer(let client, _, let re, let side, let sdp) in stage.media.reversed() {
            return (client, re, side, sdp)
        }
        return nil
    }

    func answer(_ sdp: String = "answer") {
        guard let offered else {
            Issue.record("the media plane received no offer")
            return
        }
        stage.handle(.media(.answered(offered.client, re: offered.re, offered.side, sdp: sdp)))
    }

    func refuse(_ error: WireError) {
        guard let offered else { return }
        stage.handle(.media(.refused(offered.client, re: offered.re, error)))
    }

    /// Creates a resource.
    /// - Returns: its connection in the session, and its ETag.
    @discardableResult func create() throws -> (connection: ConnectionID, tag: String) {
        try post()
        let client = try #require(offered?.client)
        answer()
        guard case .created(_, let tag, _)? = take() else {
            Issue.record("no resource was created")
            return (client, "")
        }
        return (client, tag)
    }

    /// Returns the next answer.
    func take() -> ResourceReply? {
        let replies = stage.replies[socket] ?? []
        guard taken < replies.count else { return nil }
        defer { taken += 1 }
        return replies[taken]
    }

    func ask(_ action: ResourceRequest.Action, token: String? = nil) -> ResourceReply? {
        requests += 1
        stage.handle(.requested(socket, ResourceRequest(re: requests, token: token ?? self.token, action)))
        return take()
    }

    var isOver: Bool { stage.overResources.contains(socket) }
}

extension ResourceReply {
    var error: WireError.Code? { if case .refused(_, let error) = self { error.code } else { nil } }
}

import Confab
import ConfabHeadless
import Foundation
import OpenTokCompat
import Server
import Signaling
import Testing
import Wire

/// A session of an own server, as an application's server makes it.
struct OpenTokPlace: Sendable {
    let port: Int
    let project: Project
    let session: SessionID

    init(_ server: TestServer, _ mode: MediaMode) throws {
        (port, project) = (server.port, try server.project.project)
        var random = SystemRandomNumberGenerator()
        session = project.makeSessionID(mediaMode: mode, now: Self.now, using: &random)
    }

    /// A session that was created over HTTP.
    init(_ server: TestServer, _ session: SessionID) throws {
        (port, project, self.session) = (server.port, try server.project.project, session)
    }

    private static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    func token(_ role: Role = .publisher, data: String = "", lifetime: Duration = .seconds(600)) -> String {
        var random = SystemRandomNumberGenerator()
        let claims = SessionTokenClaims(session: session, role: role, data: data, lifetime: lifetime)
        return project.makeSessionToken(claims, now: Self.now, using: &random)
    }
}

/// A view controller for OpenTok, without views: it writes down what its delegate methods hear.
@MainActor final class OpenTokCaller {
    private let heard: AsyncStream<String>
    private let write: AsyncStream<String>.Continuation
    private(set) var streams: [OTStream] = []
    private(set) var errors: [OTError] = []
    private(set) var senders: [OTConnection?] = []
    let place: OpenTokPlace
    let session: OTSession
    /// Whether to write down whose media arrives.
    var names = false

    /// - Parameter film: what a publisher publishes; nil for nothing.
    convenience init(_ place: OpenTokPlace, film: URL? = nil) {
        self.init(place, engine: FileEngine(publishing: film))
    }

    init(_ place: OpenTokPlace, engine: any MediaEngine) {
        self.place = place
        (heard, write) = AsyncStream<String>.makeStream()
        let settings = OTSessionSettings()
        settings.client = ConfabClient(
            server: URL(string: "http://127.0.0.1:\(place.port)")!, credential: .anonymous(MemoryIdentity()),
            media: engine)
        settings.frameEngine = engine as? any OTFrameEngine
        session = OTSession(
            apiKey: place.project.apiKey, sessionId: place.session.text, delegate: nil, settings: settings)!
        session.delegate = self
    }

    /// The next call of a delegate method.
    func next() async -> String? {
        var calls = heard.makeAsyncIterator()
        return await calls.next()
    }

    /// The next calls, in any order.
    func next(_ count: Int) async -> Set<String> {
        var calls: Set<String> = []
        for _ in 0..<count { if let call = await next() { calls.insert(call) } }
        return calls
    }

    func note(_ text: String) { write.yield(text) }
    func note(_ error: OTError) {
        errors.append(error)
        note("failed \(error.code)")
    }

    /// Connects with a new token, and waits until the delegate is notified.
    func connect(_ role: Role = .publisher, data: String = "") async {
        await connect(token: place.token(role, data: data))
    }

    /// Connects with the given token, and waits until the delegate is notified.
    func connect(token: String) async {
        var error: OTError?
        session.connect(withToken: token, error: &error)
        #expect(error == nil)
        #expect(await next() == "connected")
    }
}

extension OpenTokCaller: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) { note("connected") }
    func sessionDidDisconnect(_ session: OTSession) { note("disconnected") }
    func session(_ session: OTSession, didFailWithError error: OTError) { note(error) }
    func session(_ session: OTSession, streamCreated stream: OTStream) {
        streams.append(stream)
        note("stream created")
    }
    func session(_ session: OTSession, streamDestroyed stream: OTStream) {
        streams.removeAll { $0 === stream }
        note("stream destroyed")
    }
    func session(_ session: OTSession, connectionCreated connection: OTConnection) {
        note("connection created \(connection.data ?? "")")
    }
    func session(_ session: OTSession, connectionDestroyed connection: OTConnection) {
        note("connection destroyed \(connection.data ?? "")")
    }
    func session(
        _ session: OTSession, receivedSignalType type: String?, from connection: OTConnection?, with string: String?
    ) {
        senders.append(connection)
        note("signal \(type ?? "") \(string ?? "")")
    }
    func sessionDidBeginReconnecting(_ session: OTSession) { note("reconnecting") }
    func session(_ session: OTSession, muteForced info: OTMuteForcedInfo) { note("all muted \(info.active)") }
}

extension OpenTokCaller: OTPublisherDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) { note(error) }
    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {
        note("published \(stream.name ?? "")")
    }
    func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream) { note("unpublished") }
    func muteForced(_ publisher: OTPublisherKit) { note("muted") }
    func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {
        note("own video off \(reason.rawValue)")
    }
    func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {
        note("own video on \(reason.rawValue)")
    }
    func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition) {
        note("camera \(position)")
    }
}

extension OpenTokCaller: OTSubscriberDelegate {
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit) {
        note(names ? "receiving \(subscriber.stream?.name ?? "")" : "receiving")
    }
    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError) { note(error) }
    func subscriberVideoDataReceived(_ subscriber: OTSubscriber) {
        note(names ? "first picture of \(subscriber.stream?.name ?? "")" : "first picture")
    }
    func subscriberVideoDisabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {
        note("video off \(reason.rawValue)")
    }
    func subscriberVideoEnabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {
        note("video on \(reason.rawValue)")
    }
}

extension OpenTokCaller: OTPublisherKitNetworkStatsDelegate, OTSubscriberKitNetworkStatsDelegate {
    func publisher(
        _ publisher: OTPublisherKit, videoNetworkStatsUpdated stats: [OTPublisherKitVideoNetworkStats]
    ) {
        let isSent = stats.allSatisfy {
            $0.videoPacketsSent > 0 && $0.videoBytesSent > 0 && $0.timestamp >= $0.startTime
        }
        note("sent \(stats.count) \(isSent)")
        // Once is enough.
        publisher.networkStatsDelegate = nil
    }
    func subscriber(
        _ subscriber: OTSubscriberKit, videoNetworkStatsUpdated stats: OTSubscriberKitVideoNetworkStats
    ) {
        let isReceived = stats.videoPacketsReceived > 0 && stats.videoBytesReceived > 0 && stats.timestamp > 0
        note("received \(isReceived)")
        subscriber.networkStatsDelegate = nil
    }
}

extension OpenTokCaller: OTPublisherKitRtcStatsReportDelegate, OTSubscriberKitRtcStatsReportDelegate {
    func publisher(_ publisher: OTPublisherKit, rtcStatsReport stats: [OTPublisherRtcStats]) {
        let isOwn = stats.allSatisfy { $0.connectionId == session.connection?.connectionId }
        note("sent report \(isOwn) \(stats.map { Self.types($0.jsonArrayOfReports) })")
    }
    func subscriber(_ subscriber: OTSubscriberKit, rtcStatsReport jsonArrayOfReports: String) {
        note("received report \(Self.types(jsonArrayOfReports))")
    }

    /// The kinds of what was sent or received.
    private static func types(_ json: String) -> [String] {
        let reports = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
        let counted = reports?.filter { ($0["packetsSent"] ?? $0["packetsReceived"]) as? Int ?? 0 > 0 } ?? []
        return counted.map { "\($0["kind"] ?? "") \($0["type"] ?? "")" }
    }
}

import Foundation
import Server
import Signaling
import TestSupport
import Testing
import Wire

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A WHIP and WHEP client with a routed session.
struct WHIPPlace: Sendable {
    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var text: String

        subscript(_ name: String) -> String? {
            headers.first { $0.key.lowercased() == name.lowercased() }?.value
        }

        /// The error code in the response's body.
        var code: String? {
            guard self["Content-Type"] == "application/json",
                let error = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            else { return nil }
            return (error["message"] as? String)?.isEmpty ?? true ? nil : error["code"] as? String
        }
    }

    let base: String
    let project: Project
    let session: SessionID

    init(_ server: TestServer, _ mode: MediaMode = .routed) throws {
        base = "http://127.0.0.1:\(server.port)"
        project = try server.project.project
        var random = SystemRandomNumberGenerator()
        session = project.makeSessionID(mediaMode: mode, now: Self.now, using: &random)
    }

    private static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    func token(_ role: Role = .publisher, lifetime: Duration = .seconds(600)) -> String {
        var random = SystemRandomNumberGenerator()
        return project.makeSessionToken(
            SessionTokenClaims(session: session, role: role, lifetime: lifetime), now: Self.now, using: &random)
    }

    var whip: String { "/whip/\(session.text)" }
    var whep: String { "/whep/\(session.text)" }

    func ask(
        _ method: String, _ path: String, token: String? = nil, _ headers: [String: String] = [:], _ body: String = ""
    ) async throws -> Answer {
        var request = URLRequest(url: try #require(URL(string: path.hasPrefix("/") ? base + path : path)))
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if !body.isEmpty { request.httpBody = Data(body.utf8) }
        let (data, response) = try await Self.client.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        var named: [String: String] = [:]
        for (name, value) in http.allHeaderFields { named["\(name)"] = "\(value)" }
        return Answer(status: http.statusCode, headers: named, text: String(decoding: data, as: UTF8.self))
    }

    private static let client: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 30
        configuration.httpMaximumConnectionsPerHost = 64
        return URLSession(configuration: configuration)
    }()

    func post(_ path: String, token: String? = nil, _ offer: String = SampleOffer.obs) async throws -> Answer {
        try await ask("POST", path, token: token ?? self.token(), ["Content-Type": "application/sdp"], offer)
    }

    func patch(
        _ path: String, token: String? = nil, match: String?, _ fragment: String
    ) async throws -> Answer {
        var headers = ["Content-Type": "application/trickle-ice-sdpfrag"]
        headers["If-Match"] = match
        return try await ask("PATCH", path, token: token ?? self.token(), headers, fragment)
    }
}

enum SampleOffer {
    static let fingerprint = (0..<32).map { _ in "AB" }.joined(separator: ":")

    /// An offer like that of OBS with libdatachannel: no extensions, only H.264, and SSRCs in the description.
    static let obs = """
        v=0
        o=rtc 2767321458 0 IN IP4 127.0.0.1
        s=-
        t=0 0
        a=group:BUNDLE 0 1
        a=group:LS 0 1
        a=msid-semantic:WMS *
        a=setup:actpass
        a=ice-ufrag:TvQu
        a=ice-pwd:Ti8Fm1Wvss8lg2uAWzxYyB
        a=ice-options:ice2,trickle
        a=fingerprint:sha-256 \(fingerprint)
        m=audio 53742 UDP/TLS/RTP/SAVPF 111
        c=IN IP4 192.0.2.7
        a=mid:0
        a=sendonly
        a=ssrc:1299021437 cname:ABCdef012
        a=ssrc:1299021437 msid:stream audio
        a=msid:stream audio
        a=rtcp-mux
        a=rtpmap:111 opus/48000/2
        a=fmtp:111 minptime=10;maxaveragebitrate=96000;stereo=1;sprop-stereo=1;useinbandfec=1
        a=candidate:1 1 UDP 2122317823 192.0.2.7 53742 typ host
        a=end-of-candidates
        m=video 53742 UDP/TLS/RTP/SAVPF 96
        c=IN IP4 192.0.2.7
        a=mid:1
        a=sendonly
        a=ssrc:1299021438 cname:ABCdef012
        a=ssrc:1299021438 msid:stream video
        a=msid:stream video
        a=rtcp-mux
        a=rtpmap:96 H264/90000
        a=rtcp-fb:96 nack
        a=rtcp-fb:96 nack pli
        a=rtcp-fb:96 goog-remb
        a=fmtp:96 profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1

        """.replacingOccurrences(of: "\n", with: "\r\n")

    /// An offer like that of a WHEP player.
    static let player = obs.replacingOccurrences(of: "sendonly", with: "recvonly")
        .components(separatedBy: "\r\n").filter { !$0.hasPrefix("a=ssrc") && !$0.hasPrefix("a=msid") }
        .joined(separator: "\r\n")

    static let candidate = """
        a=ice-ufrag:TvQu
        a=ice-pwd:Ti8Fm1Wvss8lg2uAWzxYyB
        m=audio 9 RTP/AVP 0
        a=mid:0
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag TvQu network-id 1
        a=end-of-candidates

        """.replacingOccurrences(of: "\n", with: "\r\n")

    static func restart(_ ufrag: String = "ysXw", _ pwd: String = "vw5LmwG4y/e6dPP/zAP9Gp5k") -> String {
        "a=ice-ufrag:\(ufrag)\r\na=ice-pwd:\(pwd)\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"
    }
}

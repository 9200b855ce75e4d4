import Foundation
import RTC

/// Offers of real clients, and the local parameters for the answers.
enum SDPSample {
    /// Captured from browsers.
    static let names = ["offer_chromium156", "offer_chromium156_simulcast", "offer_firefox153"]
    /// The captured offers, and offers written after published ones of engines that do not run where the tests do.
    static let publishing =
        names + [
            "offer_safari17", "offer_safari18", "offer_safari18_simulcast", "offer_ios_framework",
            "offer_ios_framework_simulcast", "offer_chrome_android", "offer_android_h264_first", "offer_firefox_h264",
        ]
    static let watching = [
        "offer_safari17_watching", "offer_safari18_watching", "offer_ios_framework_watching",
        "offer_chrome_android_watching", "offer_chrome_watching", "offer_chromium_free_watching",
        "offer_firefox_watching", "offer_firefox_esr_watching",
    ]

    static func bytes(_ name: String) throws -> [UInt8] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Offers")
        return try Array(Data(contentsOf: folder.appending(path: name + ".sdp")))
    }

    static func offer(_ name: String) throws -> SessionDescription { try SessionDescription(parsing: bytes(name)) }

    /// An offer that aiortc created after gathering. It contains candidates, three fingerprints and few codecs.
    static let likeAiortc = lines(
        "v=0", "o=- 3972341234 3972341234 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=group:BUNDLE 0 1",
        "a=msid-semantic:WMS *", "m=audio 50123 UDP/TLS/RTP/SAVPF 96 0 8", "c=IN IP4 192.0.2.7", "a=sendrecv",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid", "a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "a=mid:0", "a=msid:5b1b 91fe", "a=rtcp:9 IN IP4 0.0.0.0", "a=rtcp-mux", "a=ssrc:1001 cname:c0ffee",
        "a=rtpmap:96 opus/48000/2", "a=rtpmap:0 PCMU/8000", "a=rtpmap:8 PCMA/8000",
        "a=candidate:f1 1 udp 2130706431 192.0.2.7 50123 typ host",
        "a=candidate:f2 1 udp 1694498815 203.0.113.5 50123 typ srflx raddr 192.0.2.7 rport 50123",
        "a=candidate:f3 1 udp 2130706175 2001:db8::7 50124 typ host", "a=end-of-candidates",
        "a=ice-ufrag:abcd", "a=ice-pwd:0123456789abcdefghijkl", fingerprint("sha-256", 32),
        fingerprint("sha-384", 48), fingerprint("sha-512", 64), "a=setup:actpass",
        "m=video 50123 UDP/TLS/RTP/SAVPF 97 98 99 100", "c=IN IP4 192.0.2.7", "a=sendrecv",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", "a=mid:1", "a=msid:5b1b 0c3d",
        "a=rtcp:9 IN IP4 0.0.0.0", "a=rtcp-mux", "a=ssrc-group:FID 2001 2002", "a=ssrc:2001 cname:c0ffee",
        "a=ssrc:2002 cname:c0ffee", "a=rtpmap:97 VP8/90000", "a=rtcp-fb:97 nack", "a=rtcp-fb:97 nack pli",
        "a=rtcp-fb:97 goog-remb", "a=rtpmap:98 rtx/90000", "a=fmtp:98 apt=97", "a=rtpmap:99 H264/90000",
        "a=rtcp-fb:99 nack", "a=rtcp-fb:99 nack pli", "a=rtcp-fb:99 goog-remb",
        "a=fmtp:99 packetization-mode=1;level-asymmetry-allowed=1;profile-level-id=42001f",
        "a=rtpmap:100 rtx/90000", "a=fmtp:100 apt=99", "a=candidate:f1 1 udp 2130706431 192.0.2.7 50123 typ host",
        "a=end-of-candidates", "a=ice-ufrag:abcd", "a=ice-pwd:0123456789abcdefghijkl", fingerprint("sha-256", 32),
        "a=setup:actpass")

    /// A valid offer with one Opus section. Tests change it to make invalid ones.
    static let small = lines(
        "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0",
        "a=sendrecv", "a=rtcp-mux", "a=ice-ufrag:abcd", "a=ice-pwd:0123456789abcdefghijkl",
        fingerprint("sha-256", 32), "a=setup:actpass", "a=rtpmap:111 opus/48000/2")

    static func lines(_ lines: String...) -> String { lines.map { $0 + "\r\n" }.joined() }

    static func fingerprint(_ algorithm: String, _ length: Int) -> String {
        "a=fingerprint:\(algorithm) "
            + (0..<length).map { $0 < 16 ? "0\(String($0, radix: 16))" : String($0, radix: 16) }
            .joined(separator: ":")
    }

    static let local = LocalParameters(
        ufrag: "serv", pwd: "ThePasswordOfTheServer24",
        fingerprint: Fingerprint(.sha256, [UInt8](repeating: 0xA5, count: 32)).unsafelyUnwrapped,
        candidates: [
            Candidate(
                foundation: "1", transport: .udp, priority: 2_130_706_431,
                address: TransportAddress(v4: 0xC000_0201, port: 3478)),
            Candidate(
                foundation: "2", transport: .tcpPassive, priority: 1_671_430_143,
                address: TransportAddress(v4: 0xC000_0201, port: 443)),
        ],
        sessionID: 42, cname: "confab")

    static func source(_ mid: String) -> LocalSource? {
        UInt32(mid).map {
            LocalSource(ssrc: 1000 + $0, rtxSSRC: 2000 + $0, msid: MediaStreamID(stream: "s", track: "t\(mid)"))
        }
    }
}

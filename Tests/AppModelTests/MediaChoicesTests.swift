import Confab
import Testing

@testable import AppModel

@Suite("The ways and codecs of the settings") struct MediaChoicesTests {
    private func choices(_ change: (inout DeviceSettings) -> Void) -> MediaChoices {
        var settings = DeviceSettings()
        change(&settings)
        return MediaChoices(settings)
    }

    private static let urls = [
        "stun:a.example.org", "turn:a.example.org", "turn:a.example.org?transport=tcp", "turns:a.example.org:443",
        "turns:a.example.org?transport=udp",
    ]

    private func urls(_ choices: MediaChoices) -> [String] {
        choices.servers([.init(urls: Self.urls, username: "ada", credential: "secret")]).flatMap(\.urls)
    }

    private static let description = [
        "v=0", "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 0", "a=mid:0", "a=rtpmap:63 red/48000/2",
        "a=rtpmap:111 opus/48000/2", "a=candidate:1 1 udp 2130706431 192.0.2.1 4000 typ host",
        "a=candidate:2 1 tcp 2105458943 192.0.2.1 4000 typ host tcptype passive",
        "a=candidate:3 1 udp 1694498815 198.51.100.1 5000 typ srflx raddr 0.0.0.0 rport 0",
        "a=candidate:4 1 udp 16777215 203.0.113.1 6000 typ relay raddr 0.0.0.0 rport 0",
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 104", "a=mid:1", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000",
        "a=rtpmap:102 H264/90000", "a=rtpmap:104 H264/90000", "",
    ].joined(separator: "\r\n")

    /// The foundations of the candidates that are left.
    private func candidates(_ choices: MediaChoices, isRelayed: Bool = false) -> String {
        choices.description(Self.description, isRelayed: isRelayed).split(separator: "\r\n").compactMap {
            $0.hasPrefix("a=candidate:") ? $0.dropFirst(12).first.map(String.init) : nil
        }.joined()
    }

    private func payloadTypes(_ choices: MediaChoices) -> [Substring] {
        choices.codecsFirst(Self.description).split(separator: "\r\n").filter { $0.hasPrefix("m=") }
            .map { $0.split(separator: " ", maxSplits: 3)[3] }
    }

    @Test("the usual settings change nothing")
    func usual() {
        let usual = choices { _ in }
        #expect(usual == MediaChoices())
        #expect(urls(usual) == Self.urls)
        #expect(usual.description(Self.description, isRelayed: false) == Self.description)
        #expect(usual.codecsFirst(Self.description) == Self.description)
        #expect(usual.configuration(PeerConfiguration(relayOnly: true)).relayOnly)
    }

    @Test("direct connections use no server, with STUN no relay, and TURN only relays")
    func connectBy() {
        let local = choices { $0.candidates = .local }
        #expect(urls(local).isEmpty && candidates(local) == "12")
        let stun = choices { $0.candidates = .stun }
        #expect(urls(stun) == ["stun:a.example.org"] && candidates(stun) == "123")
        let turn = choices { $0.candidates = .turn }
        #expect(urls(turn) == Self.urls && candidates(turn) == "1234")
        #expect(turn.configuration(PeerConfiguration()).relayOnly)
        #expect(!local.configuration(PeerConfiguration()).relayOnly)
    }

    @Test("a protocol leaves its candidates and its ways to TURN servers")
    func transport() {
        let udp = choices { $0.transport = .udp }
        #expect(urls(udp) == [Self.urls[0], Self.urls[1], Self.urls[4]])
        #expect(candidates(udp) == "134")
        let tcp = choices { $0.transport = .tcp }
        #expect(urls(tcp) == [Self.urls[0], Self.urls[2], Self.urls[3]])
        #expect(candidates(tcp) == "2")
        // The relay has UDP on its other side.
        #expect(candidates(tcp, isRelayed: true) == "1234")
    }

    @Test("a chosen codec comes first, and the others stay")
    func codecs() {
        let first = choices { ($0.videoCodec, $0.audioCodec) = (.h264, .opusRed) }
        #expect(payloadTypes(first) == ["63 111 0", "102 104 96 97"])
        #expect(
            payloadTypes(choices { ($0.videoCodec, $0.audioCodec) = (.vp8, .opus) }) == ["111 63 0", "96 97 102 104"])
    }

    @Test("texts that are no candidates and no sections stay as they are")
    func malformed() {
        let tcp = choices { ($0.transport, $0.videoCodec) = (.tcp, .h264) }
        for text in [
            "", "m=", "m=video", "m=video 9 X", "m=video 9 X a\r\na=rtpmap:", "a=candidate:\r\nm=video 9 X 1 2",
        ] {
            #expect(tcp.codecsFirst(tcp.description(text, isRelayed: false)) == text)
        }
        #expect(tcp.allows(candidate: "", isRelayed: false))
    }
}

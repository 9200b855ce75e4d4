import Confab
import Foundation

/// The ICE candidates, transports and codecs chosen in this device's settings. Its functions are pure: they rewrite
/// configurations, descriptions and candidates like the browser SDK (`ice.js`, `codecs.js`).
struct MediaChoices: Equatable, Sendable {
    var candidates = CandidateChoice.any
    var transport = ProtocolChoice.any
    var videoCodec = VideoCodecChoice.any
    var audioCodec = AudioCodecChoice.any

    init() {}

    init(_ settings: DeviceSettings) {
        (candidates, transport) = (settings.candidates, settings.transport)
        (videoCodec, audioCodec) = (settings.videoCodec, settings.audioCodec)
    }

    // MARK: ICE

    func configuration(_ given: PeerConfiguration) -> PeerConfiguration {
        PeerConfiguration(servers: servers(given.servers), relayOnly: given.relayOnly || candidates == .turn)
    }

    func servers(_ given: [PeerConfiguration.Server]) -> [PeerConfiguration.Server] {
        guard candidates != .local else { return [] }
        return given.compactMap { server in
            var chosen = server
            chosen.urls = server.urls.filter(allows(server:))
            return chosen.urls.isEmpty ? nil : chosen
        }
    }

    private func allows(server url: String) -> Bool {
        let url = url.lowercased()
        guard url.hasPrefix("turn:") || url.hasPrefix("turns:") else { return true }
        // TURN over TLS uses TCP, unless the URL says otherwise (RFC 7065 §3.1).
        let isTCP =
            url.contains("transport=tcp") || (url.hasPrefix("turns:") && !url.contains("transport=udp"))
        return candidates != .stun && (transport == .any || isTCP == (transport == .tcp))
    }

    /// Returns whether a local or remote candidate may be used. Allows a candidate that cannot be parsed.
    ///
    /// - Parameter isRelayed: whether this device uses only TURN. If so, the transport choice applies to the
    ///   connection to the TURN server, not to the candidates.
    func allows(candidate: String, isRelayed: Bool) -> Bool {
        let parts = candidate.split(separator: " ")
        // RFC 8839 §5.1: foundation, component, transport, priority, address, port, "typ", type.
        guard parts.count >= 8, parts[6] == "typ" else { return true }
        switch candidates {
        case .local: if parts[7] != "host" { return false }
        case .stun: if parts[7] == "relay" { return false }
        case .turn, .any: break
        }
        return transport == .any || isRelayed || parts[2].lowercased() == transport.rawValue
    }

    /// Removes the candidates that are not allowed from a description.
    func description(_ sdp: String, isRelayed: Bool) -> String {
        Self.lines(sdp).filter {
            !$0.hasPrefix("a=candidate:") || allows(candidate: String($0.dropFirst(2)), isRelayed: isRelayed)
        }.joined(separator: "\r\n")
    }

    private static func lines(_ sdp: String) -> [Substring] {
        sdp.split(omittingEmptySubsequences: false) { $0 == "\r\n" || $0 == "\n" }
    }

    // MARK: Codecs

    /// Returns the codec names to put first, in lowercase; empty if the user chose no codec. Redundant audio (RFC
    /// 2198) wraps Opus, so Opus follows it.
    private func preferred(_ kind: Substring) -> [String] {
        switch kind {
        case "video": videoCodec == .any ? [] : [videoCodec.rawValue]
        case "audio":
            switch audioCodec {
            case .any: []
            case .opus: ["opus"]
            case .opusRed: ["red", "opus"]
            }
        default: []
        }
    }

    /// Moves the chosen codecs to the front of a remote description: encoders use the description's first codec that
    /// they support. No codec is removed, so another is used if the other peer lacks the chosen one.
    func codecsFirst(_ sdp: String) -> String {
        var lines = Self.lines(sdp).map(String.init)
        let sections = lines.indices.filter { lines[$0].hasPrefix("m=") }
        for (index, start) in sections.enumerated() {
            let end = index + 1 < sections.count ? sections[index + 1] : lines.endIndex
            lines[start] = ordered(lines[start], Self.names(in: lines[start..<end]))
        }
        return lines.joined(separator: "\r\n")
    }

    /// Returns the codec names of one media section, keyed by payload type.
    private static func names(in section: ArraySlice<String>) -> [Substring: String] {
        var names: [Substring: String] = [:]
        for line in section where line.hasPrefix("a=rtpmap:") {
            let parts = line.dropFirst(9).split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { continue }
            names[parts[0]] = parts[1].prefix { $0 != "/" }.lowercased()
        }
        return names
    }

    private func ordered(_ line: String, _ names: [Substring: String]) -> String {
        let parts = line.split(separator: " ")
        // The payload types follow the media type, the port and the profile. With fewer than two, there is nothing to
        // reorder.
        guard parts.count > 4 else { return line }
        let first = preferred(parts[0].dropFirst(2))
        let (head, types) = (parts[..<3], parts[3...])
        let chosen = first.flatMap { name in types.filter { names[$0] == name } }
        let others = types.filter { names[$0].map { !first.contains($0) } ?? true }
        return (head + chosen + others).joined(separator: " ")
    }
}

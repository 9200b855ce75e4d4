import Confab

/// The renderer that shows videos.
public enum RendererChoice: String, Codable, CaseIterable, Sendable {
    case sampleBuffer, metal

    public var text: String { self == .metal ? "Metal" : "Standard" }

    /// Returns the renderer for one surface. Metal cannot render in the background, where the small window is shown.
    public func forSurface(inBackground: Bool) -> RendererChoice { inBackground ? .sampleBuffer : self }
}

/// The video codec to prefer.
public enum VideoCodecChoice: String, Codable, CaseIterable, Sendable {
    case any, vp8, h264

    public var text: String {
        switch self {
        case .any: "Any"
        case .vp8: "VP8"
        case .h264: "H.264"
        }
    }
}

/// The audio codec to prefer.
public enum AudioCodecChoice: String, Codable, CaseIterable, Sendable {
    case any, opus, opusRed

    public var text: String {
        switch self {
        case .any: "Any"
        case .opus: "Opus"
        case .opusRed: "Opus with redundancy"
        }
    }
}

/// The ICE candidates to use, with the same choices as the web page.
public enum CandidateChoice: String, Codable, CaseIterable, Sendable {
    case local, stun, turn, any

    public var text: String {
        switch self {
        case .local: "Direct, without STUN"
        case .stun: "Direct, with STUN"
        case .turn: "Relayed (TURN) only"
        case .any: "Automatic"
        }
    }
}

/// The transport protocol that ICE may use.
public enum ProtocolChoice: String, Codable, CaseIterable, Sendable {
    case udp, tcp, any

    public var text: String {
        switch self {
        case .udp: "UDP"
        case .tcp: "TCP"
        case .any: "UDP or TCP"
        }
    }
}

extension PictureSize {
    public var text: String { "\(width) × \(height)" }
}

extension Nearby.Unit {
    public var text: String { self == .miles ? "miles" : "kilometers" }
}

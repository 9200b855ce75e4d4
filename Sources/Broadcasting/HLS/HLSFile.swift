/// A file that a playlist names. Names are short, and only these names exist, so no request can name another file.
public enum HLSFile: Hashable, Sendable {
    /// An initialization section. The first has the number 1, and each start of the encoder adds one.
    case initialization(Int)
    /// A segment, with its media sequence number.
    case segment(Int)
    /// A part. Parts are numbered through all segments, because the name of the next part must be known before it is known whether
    /// it starts a segment.
    case part(Int)

    /// The name of the multivariant playlist, with which players begin.
    public static let index = "index.m3u8"
    /// The name of the playlist of segments.
    public static let playlist = "live.m3u8"

    /// The name in playlists and requests.
    public var name: String {
        switch self {
        case .initialization(let number): "init-\(number).mp4"
        case .segment(let number): "seg-\(Self.padded(number, to: 6)).m4s"
        case .part(let number): "part-\(Self.padded(number, to: 6)).m4s"
        }
    }

    /// Parses a name exactly as `name` writes it.
    public init?(name: some StringProtocol) {
        guard name.utf8.count <= 32, let dash = name.firstIndex(of: "-"), let dot = name.firstIndex(of: "."),
            dash < dot, let number = Int(name[name.index(after: dash)..<dot]), number >= 0
        else { return nil }
        switch name[..<dash] {
        case "init": self = .initialization(number)
        case "seg": self = .segment(number)
        case "part": self = .part(number)
        default: return nil
        }
        guard self.name == name else { return nil }
    }

    static func padded(_ number: Int, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

/// A place in a stream, as `_HLS_msn` and `_HLS_part` name it.
public struct HLSPosition: Hashable, Comparable, Sendable {
    /// The media sequence number of a segment.
    public var segment: Int
    /// The number of a part within its segment.
    public var part: Int

    public init(segment: Int, part: Int) { (self.segment, self.part) = (segment, part) }

    public static func < (left: HLSPosition, right: HLSPosition) -> Bool {
        (left.segment, left.part) < (right.segment, right.part)
    }
}

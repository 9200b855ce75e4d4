/// Reads the stream names in the session descriptions of PerchRTC's clients, or adds a name if there is none.
/// PerchRTC's clients choose the names freely. Clients of `confab.v1` need stream IDs, so the caller maps the names to
/// IDs.
public enum PerchDescription {
    /// Maximum number of streams in one description. PerchRTC sends one.
    public static let maxStreams = 8
    private static let maxName = 256

    /// Returns the names of the streams in a description (`msid`, RFC 8830), each once, in order, at most
    /// `maxStreams`.
    public static func streams(in sdp: String) -> [String] {
        var names: [String] = []
        for line in lines(of: sdp) where names.count < maxStreams {
            guard let name = streamName(line), !names.contains(name) else { continue }
            names.append(name)
        }
        return names
    }

    /// Returns the description `sdp`, which has no stream names, with the name `stream` added: each audio and video
    /// section gets an `a=msid` line.
    public static func named(_ stream: String, _ sdp: String) -> String {
        var result: [String] = []
        var kind: String?
        for line in lines(of: sdp) {
            if line.hasPrefix("m=") {
                if let kind { result.append("a=msid:\(stream) \(kind)") }
                kind = ["audio", "video"].first { line.hasPrefix("m=\($0) ") }
            }
            result.append(line)
        }
        if let kind { result.append("a=msid:\(stream) \(kind)") }
        return result.map { $0 + "\r\n" }.joined()
    }

    /// Splits the text into lines as bytes, because "\r\n" is a single `Character`.
    private static func lines(of sdp: String) -> [String] {
        sdp.utf8.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return text.isEmpty ? nil : String(Substring(text))
        }
    }

    /// Returns the stream in `a=msid:<stream> <track>` or `a=ssrc:<number> msid:<stream> <track>`; nil for any other
    /// line, and if the name is empty, `-` or too long.
    private static func streamName(_ line: String) -> String? {
        var rest = Substring(line)
        if line.hasPrefix("a=ssrc:") {
            guard let space = line.firstIndex(of: " ") else { return nil }
            rest = line[line.index(after: space)...]
            guard rest.hasPrefix("msid:") else { return nil }
        } else {
            guard line.hasPrefix("a=msid:") else { return nil }
            rest = rest.dropFirst(2)
        }
        let name = rest.dropFirst(5).prefix { $0 != " " }
        guard !name.isEmpty, name != "-", name.utf8.count <= maxName else { return nil }
        return String(name)
    }
}

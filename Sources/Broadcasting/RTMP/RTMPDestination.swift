import Wire

/// Where a broadcast is sent over RTMP: a checked URL, whose last part is the stream name.
///
/// The stream name is a secret of its owner, and the server URL may contain one (`?token=…`). They are in no description.
public struct RTMPDestination: Hashable, Sendable, CustomStringConvertible {
    /// Why a URL or a stream name is refused, with a stable name as its raw value.
    public enum Fault: String, Error, Sendable, CustomStringConvertible {
        case tooLong = "rtmp_url_too_long"
        case badCharacter = "rtmp_bad_character"
        case badScheme = "rtmp_bad_scheme"
        case badHost = "rtmp_bad_host"
        case badPort = "rtmp_bad_port"
        case noApplication = "rtmp_no_application"
        case noStreamName = "rtmp_no_stream_name"

        public var description: String {
            switch self {
            case .tooLong:
                "serverUrl and streamName together may have at most \(RTMPDestination.maxLength) characters."
            case .badCharacter:
                "serverUrl and streamName may contain printable ASCII characters, without spaces, quotes, # and \\."
            case .badScheme: "serverUrl must begin with rtmp:// or rtmps://."
            case .badHost: "serverUrl must have a host name or an address, without a user name."
            case .badPort: "The port in serverUrl must be a number from 1 to 65535."
            case .noApplication: "serverUrl must have a path, such as rtmp://example.com/live."
            case .noStreamName: "streamName must not be empty."
            }
        }
    }

    /// The maximum length of the whole URL in bytes.
    public static let maxLength = 2_048

    /// A host name or an address, without brackets.
    public let host: String
    public let port: Int
    /// Whether the connection is encrypted (rtmps).
    public let isEncrypted: Bool
    /// `serverUrl` as it was given. May contain a secret.
    public let serverURL: String
    /// `streamName` as it was given. A secret.
    public let streamName: String

    /// The URL for ffmpeg. It contains the secret.
    public var url: String { serverURL + (serverURL.hasSuffix("/") ? "" : "/") + streamName }

    public var description: String { "\(isEncrypted ? "rtmps" : "rtmp")://\(URLAuthority(host: host, port: port))" }

    /// Checks the two parts of a target of a broadcast.
    ///
    /// - Throws: ``Fault``.
    public init(serverURL: String, streamName: String) throws(Fault) {
        guard serverURL.utf8.count + streamName.utf8.count < Self.maxLength else { throw .tooLong }
        guard !streamName.isEmpty else { throw .noStreamName }
        let refused = Set("\"'`#\\<>".utf8)
        guard (serverURL + streamName).utf8.allSatisfy({ (0x21...0x7e).contains($0) && !refused.contains($0) }) else {
            throw .badCharacter
        }
        let parts = serverURL.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        switch (parts.count == 2 ? parts[0] : "").lowercased() {
        case "rtmp": isEncrypted = false
        case "rtmps": isEncrypted = true
        default: throw .badScheme
        }
        let end = parts[1].firstIndex { "/?".contains($0) } ?? parts[1].endIndex
        (host, port) = try Self.authority(parts[1][..<end], standard: isEncrypted ? 443 : 1_935)
        // The first part of the path is the application. Without it, ffmpeg would take the stream name for it.
        guard parts[1][end...].dropFirst().contains(where: { $0 != "/" }), parts[1][end...].first == "/" else {
            throw .noApplication
        }
        (self.serverURL, self.streamName) = (serverURL, streamName)
    }

    /// Divides host and port. Names have only letters, digits, dots and hyphens, so that ffmpeg reads the same host as the check of its
    /// address.
    private static func authority(
        _ text: Substring, standard: Int
    ) throws(Fault) -> (host: String, port: Int) {
        let host: Substring
        let rest: Substring
        if text.first == "[" {
            guard let close = text.firstIndex(of: "]") else { throw .badHost }
            host = text[text.index(after: text.startIndex)..<close]
            rest = text[text.index(after: close)...]
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else {
                throw .badHost
            }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text[host.endIndex...]
            guard !host.isEmpty, host.utf8.count <= 253, host.first != "-",
                host.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "_" })
            else { throw .badHost }
        }
        guard !rest.isEmpty else { return (String(host), standard) }
        guard rest.first == ":" else { throw .badHost }
        let digits = rest.dropFirst()
        guard digits.utf8.count <= 5, digits.allSatisfy(\.isNumber), let port = Int(digits), (1...65_535).contains(port)
        else { throw .badPort }
        return (String(host), port)
    }

    /// Returns a text, such as a message of ffmpeg, without the secrets.
    public func withoutSecret(_ text: String) -> String {
        var replacements = [(url, description), (serverURL, description)]
        // ffmpeg also prints parts of the URL.
        if let query = serverURL.split(separator: "?", maxSplits: 1).dropFirst().first?.split(separator: "/").first {
            replacements.append((String(query), "(query)"))
        }
        replacements.append((streamName, "(stream name)"))
        return replacements.reduce(text) { text, replacement in
            text.split(separator: replacement.0, omittingEmptySubsequences: false).joined(separator: replacement.1)
        }
    }

    /// The arguments for ffmpeg, which reads fragmented MP4 from its standard input and sends it without encoding it again.
    ///
    /// Each line of its standard output is progress: `out_time_us=` has the microseconds of media that were sent.
    public var ffmpegArguments: [String] {
        let input = [
            "-nostdin", "-hide_banner", "-nostats", "-v", "error", "-progress", "pipe:1", "-stats_period", "0.5",
            // The tracks are described before the first fragment, so there is nothing to look for. The flag `nobuffer` would drop the
            // packets that ffmpeg reads before it connects.
            "-probesize", "65536", "-analyzeduration", "0",
            "-protocol_whitelist", "pipe", "-f", "mp4", "-i", "pipe:0",
        ]
        let output = ["-c", "copy", "-f", "flv", "-flvflags", "no_duration_filesize", url]
        return input + output
    }
}

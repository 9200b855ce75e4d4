import Cluster
import Wire

/// Session ids, which contain the session's properties (`protocol/README.md` §7). Any id with a valid signature is
/// accepted, so creating a session stores nothing and works on any node.
extension Project {
    private static let randomBytes = 9
    private static let codeBytes = 8
    private static let routedFlag: UInt8 = 1
    private static let relayedOnlyFlag: UInt8 = 2
    /// The session is always recorded. The resolution of its archives is in the three bits from `resolutionShift` on.
    private static let automaticFlag: UInt8 = 4
    private static let resolutionShift: UInt8 = 3
    /// The session may never be recorded.
    private static let unrecordedFlag: UInt8 = 64
    /// The first random bytes are replaced by the tag of the node that made the id. The caller must not make two ids of one node with the
    /// same time.
    private static let originFlag: UInt8 = 128
    private static let tagBytes = 5

    /// - Parameters:
    ///   - relayedOnly: whether the session must never fall back to routed media. Ignored for a routed session.
    ///   - isPrivate: whether requests to record the session are always refused.
    ///   - archive: the resolution of the archives into which the session is always recorded; nil to record it only on request.
    ///     Ignored for a relayed and for a private session.
    ///   - origin: the node that makes the id, if the session stays there as long as that life of the node lasts. Otherwise nil.
    public func makeSessionID(
        mediaMode: MediaMode, relayedOnly: Bool = false, isPrivate: Bool = false, archive: CompositionResolution? = nil,
        origin: NodeTag? = nil, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> SessionID {
        var field = (0..<Self.randomBytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        if let tag = origin?.rawValue {
            for index in 0..<Self.tagBytes {
                field[index] = UInt8(truncatingIfNeeded: tag >> UInt64(8 * (Self.tagBytes - 1 - index)))
            }
        }
        let mode = mediaMode == .routed ? Self.routedFlag : relayedOnly ? Self.relayedOnlyFlag : 0
        let recording: UInt8 =
            if isPrivate {
                Self.unrecordedFlag
            } else if mediaMode == .routed, let archive {
                Self.automaticFlag | archive.number << Self.resolutionShift
            } else {
                0
            }
        field.append(mode | recording | (origin == nil ? 0 : Self.originFlag))
        let head = "1~\(apiKey)~~\(now.milliseconds)~"
        field += code(head: head, field: field)
        let plain = head + Base64URL.encode(field) + "~~~"
        let prefix = mediaMode == .routed ? "2_" : "1_"
        return SessionID(prefix + Base64URL.encode(plain.utf8)) ?? .unset
    }

    /// Returns the media mode encoded in the session id, or `nil` if the id was not created with this server's key.
    public func mediaMode(of session: SessionID) -> MediaMode? { traits(of: session)?.mediaMode }

    /// Whether a session of this project may be recorded. Sessions of the roulette and of calls may not.
    func mayBeRecorded(_ session: SessionID) -> Bool { traits(of: session)?.isPrivate == false }

    /// Returns the resolution of the archives into which a session of this project is always recorded; nil if it is recorded only
    /// on request.
    func automaticArchive(of session: SessionID) -> CompositionResolution? { traits(of: session)?.archive }

    /// Returns the life of a node that has a session of this project from the start until that life ends; nil if the session begins on
    /// any node.
    func origin(of session: SessionID) -> NodeTag? { traits(of: session)?.origin }

    /// The properties encoded in a session id.
    struct SessionTraits: Equatable, Sendable {
        var mediaMode: MediaMode
        var isRelayedOnly: Bool
        /// Whether the session may never be recorded.
        var isPrivate: Bool
        /// The resolution of the archives into which the session is always recorded; nil if it is recorded only on request.
        var archive: CompositionResolution?
        /// The life of a node that made the id, if the session is there while that life lasts.
        var origin: NodeTag?

        /// - Parameter field: the random bytes and the flags.
        fileprivate init(_ field: [UInt8]) {
            let flags = field[Project.randomBytes]
            mediaMode = flags & Project.routedFlag == 0 ? .relayed : .routed
            isRelayedOnly = mediaMode == .relayed && flags & Project.relayedOnlyFlag != 0
            isPrivate = flags & Project.unrecordedFlag != 0
            if flags & Project.originFlag != 0 {
                origin = NodeTag(rawValue: field.prefix(Project.tagBytes).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
            }
            guard mediaMode == .routed, !isPrivate, flags & Project.automaticFlag != 0 else { return }
            archive = CompositionResolution(number: flags >> Project.resolutionShift & 7)
        }
    }

    /// Returns the properties encoded in the session id, or `nil` if the id was not created with this server's key.
    func traits(of session: SessionID) -> SessionTraits? {
        let text = session.text.utf8
        guard text.count > 2, let plain = Base64URL.decode(text.dropFirst(2)) else { return nil }
        let parts = plain.split(separator: UInt8(ascii: "~"), omittingEmptySubsequences: false)
        guard parts.count == 8, parts[0].elementsEqual("1".utf8), parts[1].elementsEqual(apiKey.utf8) else {
            return nil
        }
        guard let field = Base64URL.decode(parts[4]), field.count == Self.randomBytes + 1 + Self.codeBytes else {
            return nil
        }
        let head = parts[0...3].joined(separator: [UInt8(ascii: "~")]) + [UInt8(ascii: "~")]
        let open = Array(field.prefix(Self.randomBytes + 1))
        let expected = code(head: String(decoding: head, as: UTF8.self), field: open)
        guard constantTimeEquals(expected, Array(field.suffix(Self.codeBytes))) else { return nil }
        let traits = SessionTraits(open)
        // Require the canonical form of the id, including prefix and trailing fields, so that each session has exactly one id.
        let canonical = head + Array(Base64URL.encode(field).utf8) + Array("~~~".utf8)
        let prefix = traits.mediaMode == .routed ? "2_" : "1_"
        return plain == canonical && session.text.hasPrefix(prefix) ? traits : nil
    }

    /// Returns the API key in a session ID; nil if the ID contains none. The ID is not verified, so it may be forged.
    public static func apiKey(in session: SessionID) -> String? {
        let text = session.text.utf8
        guard text.count > 2, let plain = Base64URL.decode(text.dropFirst(2)) else { return nil }
        let parts = plain.split(separator: UInt8(ascii: "~"), omittingEmptySubsequences: false)
        return parts.count == 8 ? String(validating: parts[1], as: UTF8.self) : nil
    }

    /// Returns the texts with which the IDs of a project's sessions begin. No other ID begins with them.
    public static func sessionPrefixes(apiKey: String) -> [String] {
        let head = "1~\(apiKey)~~".utf8
        // The last character can also depend on the byte after the head.
        let text = Base64URL.encode(head).prefix(head.count * 8 / 6)
        return ["1_", "2_"].map { $0 + text }
    }

    private func code(head: String, field: [UInt8]) -> [UInt8] {
        Array(
            serverKey.authenticationCode(Array("confab session\n".utf8) + Array(head.utf8) + field).prefix(
                Self.codeBytes))
    }
}

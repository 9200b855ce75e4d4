/// Takes secrets out of what is about to be logged: whatever stands under a telling key, whatever looks like a token,
/// and the server's own secrets wherever they turn up. It is the net under the rule that nobody logs a secret, not a
/// replacement for it.
public struct Scrubber: Sendable {
    public static let redacted = "[redacted]"

    /// Shorter ones would redact ordinary words.
    private static let shortestSecret = 8

    private let secrets: [String]

    /// - Parameter secrets: texts to redact wherever they occur; those under 8 bytes are ignored.
    public init(secrets: [SecretText] = []) {
        self.secrets = secrets.map(\.revealed).filter { $0.utf8.count >= Self.shortestSecret }
    }

    /// The secrets of one server.
    public init(configuration: ConfabConfiguration, project: ProjectFile? = nil) {
        self.init(
            secrets: [
                configuration.apiSecret, configuration.ice.turnSecret, configuration.ice.turnPassword,
                project?.apiSecret,
            ].compactMap(\.self))
    }

    /// Whether a value under this key is secret whatever it looks like.
    public func isSecret(key: String) -> Bool {
        let key = key.lowercased()
        return Self.secretWords.contains { key.contains($0) }
    }

    private static let secretWords = ["token", "secret", "authorization", "password", "credential", "cookie"]

    /// The text with tokens, secret query parameters and known secrets replaced by `[redacted]`.
    public func scrubbed(_ text: String) -> String {
        var text = text
        for secret in secrets where text.utf8.count >= secret.utf8.count {
            text = text.split(separator: secret, omittingEmptySubsequences: false).joined(separator: Self.redacted)
        }
        // A token needs one of these in it or before it; most values have none.
        let isSuspicious = text.utf8.contains { "=.\" _".utf8.contains($0) }
        return isSuspicious ? Self.redactingTokens(in: text) : text
    }

    /// Walks over runs of characters that tokens are made of and replaces those that are one, and those that follow a
    /// telling name and `=` or the word Bearer.
    private static func redactingTokens(in text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        var isExpected = false
        while index < bytes.count {
            guard isTokenByte(bytes[index]) else {
                let byte = bytes[index]
                if !"= \":".utf8.contains(byte) { isExpected = false }
                result.append(byte)
                index += 1
                continue
            }
            let end = bytes[index...].firstIndex { !isTokenByte($0) } ?? bytes.count
            let run = bytes[index..<end]
            if isExpected || isJSONWebToken(run) || isOwnSecret(run) || isLegacyToken(run, then: bytes[end...]) {
                result += Array(redacted.utf8)
                isExpected = false
                // base64 goes on with these.
                index = bytes[end...].firstIndex { !isTokenByte($0) && !"=/".utf8.contains($0) } ?? bytes.count
                continue
            }
            let word = String(decoding: run, as: UTF8.self).lowercased()
            let isAssigned = bytes[end...].starts(with: "=".utf8) || bytes[end...].starts(with: "\":".utf8)
            isExpected = word == "bearer" || (isAssigned && secretWords.contains { word.contains($0) })
            result += run
            index = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// base64url, the dots between a token's parts, and base64's `+`.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "+"): true
        default: false
        }
    }

    /// `eyJ` is how base64 spells `{"`, so every JWT's header begins with it.
    private static func isJSONWebToken(_ run: ArraySlice<UInt8>) -> Bool {
        guard let start = run.firstRange(of: Array("eyJ".utf8))?.lowerBound else { return false }
        return run[start...].lazy.filter { $0 == UInt8(ascii: ".") }.count >= 2
    }

    /// Secrets of ours, of identities and for resuming: a letter, `_`, and 32 bytes in base64url.
    private static func isOwnSecret(_ run: ArraySlice<UInt8>) -> Bool {
        run.indices.dropLast(44).contains { start in
            "ar".utf8.contains(run[start]) && run[start + 1] == UInt8(ascii: "_")
                && (start == run.startIndex || !isLetter(run[start - 1]))
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// OpenTok's older tokens: `T1==` and base64.
    private static func isLegacyToken(_ run: ArraySlice<UInt8>, then rest: ArraySlice<UInt8>) -> Bool {
        run.elementsEqual("T1".utf8) && rest.starts(with: Array("==".utf8))
    }
}

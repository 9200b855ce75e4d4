/// Removes secrets from log messages: values under keys such as `password`, anything that looks like a token, and the server's
/// own secrets anywhere in the text. It is a safety net and does not replace the rule that secrets are never logged.
public struct Scrubber: Sendable {
    public static let redacted = "[redacted]"

    /// Minimum length of a secret to redact. A shorter secret could match ordinary words.
    private static let minSecretLength = 8

    private let secrets: [String]

    /// - Parameter secrets: Strings to redact wherever they occur. Strings shorter than 8 bytes are ignored.
    public init(secrets: [SecretText] = []) {
        self.secrets = secrets.map(\.revealed).filter { $0.utf8.count >= Self.minSecretLength }
    }

    /// Redacts the secrets of a server's configuration and projects.
    ///
    /// - Parameter stored: the projects in the database. There may be many, so secrets that are recognized by their form
    ///   are not searched for.
    public init(configuration: ConfabConfiguration, project: ProjectFile? = nil, stored: [StoredProject] = []) {
        let others = stored.flatMap { [$0.secret, $0.previousSecret, $0.webhookSecret] }.filter { secret in
            secret.map { !Self.isGeneratedSecret(Array($0.revealed.utf8)[...]) } ?? false
        }
        self.init(
            secrets: [
                configuration.apiSecret, configuration.ice.turnSecret, configuration.ice.turnPassword,
                project?.apiSecret, project?.previous?.secret, project?.serverKey,
            ].compactMap(\.self) + others.compactMap(\.self)
                + configuration.tracing.headerFields.map { SecretText($0.value) })
    }

    /// True if values under this key are always secret.
    public func isSecret(key: String) -> Bool {
        let key = key.lowercased()
        return Self.secretWords.contains { key.contains($0) }
    }

    private static let secretWords = ["token", "secret", "authorization", "password", "credential", "cookie"]

    /// Returns the text with tokens, secret query parameters and known secrets replaced by `[redacted]`.
    public func scrubbed(_ text: String) -> String {
        var text = text
        for secret in secrets where text.utf8.count >= secret.utf8.count {
            text = text.split(separator: secret, omittingEmptySubsequences: false).joined(separator: Self.redacted)
        }
        // Search for tokens only if the text may contain one. A token contains one of these characters or follows
        // one, except for generated secrets, which are recognized by their length. Most values are short and contain
        // none of these characters.
        let isSuspicious =
            text.utf8.count >= SecretText.generatedLength || text.utf8.contains { "=.\" _".utf8.contains($0) }
        return isSuspicious ? Self.redactingTokens(in: text) : text
    }

    /// Replaces runs of token characters that look like a token, follow `Bearer`, or are assigned to a secret name.
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
            if isExpected || isJSONWebToken(run) || isOwnSecret(run) || isGeneratedSecret(run)
                || isLegacyToken(run, then: bytes[end...])
            {
                result += Array(redacted.utf8)
                isExpected = false
                // Skip the rest of the secret, including `=` and `/`, which base64 may contain.
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

    /// True for characters of base64url, the dot between a token's parts, and base64's `+`.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "+"): true
        default: false
        }
    }

    /// True if the run contains a JWT. Its header starts with `eyJ`, which is `{"` in base64.
    private static func isJSONWebToken(_ run: ArraySlice<UInt8>) -> Bool {
        guard let start = run.firstRange(of: Array("eyJ".utf8))?.lowerBound else { return false }
        return run[start...].lazy.filter { $0 == UInt8(ascii: ".") }.count >= 2
    }

    /// True if the run contains one of Confab's secrets, for identities (`a_`) or for resuming (`r_`): the prefix and
    /// 32 bytes in base64url.
    private static func isOwnSecret(_ run: ArraySlice<UInt8>) -> Bool {
        run.indices.dropLast(44).contains { start in
            "ar".utf8.contains(run[start]) && run[start + 1] == UInt8(ascii: "_")
                && (start == run.startIndex || !isLetter(run[start - 1]))
        }
    }

    /// True if the run contains a generated secret: of an API key, or of a webhook. There may be many of these
    /// secrets, so they are recognized by their form instead of being listed: they consist of 48 hexadecimal digits.
    /// The usual hashes have 40 or 64.
    private static func isGeneratedSecret(_ run: ArraySlice<UInt8>) -> Bool {
        let separator: (UInt8) -> Bool = { !Character(UnicodeScalar($0)).isHexDigit }
        return run.split(whereSeparator: separator).contains { $0.count == SecretText.generatedLength }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// True for OpenTok's older tokens: `T1==` followed by base64.
    private static func isLegacyToken(_ run: ArraySlice<UInt8>, then rest: ArraySlice<UInt8>) -> Bool {
        run.elementsEqual("T1".utf8) && rest.starts(with: Array("==".utf8))
    }
}

import Wire

/// The secret that resumes a client connection. It contains the connection id, so no table of secrets is needed.
enum ResumeSecret {
    private static let prefix = "r_"

    static func make(for client: ConnectionID, using generator: inout some RandomNumberGenerator) -> String {
        let random = MatchID.random(using: &generator).bytes
        return prefix + Base64URL.encode(client.bytes + random)
    }

    static func client(of secret: String) -> ConnectionID? {
        guard secret.utf8.count < 64, secret.hasPrefix(prefix),
            let bytes = Base64URL.decode(secret.utf8.dropFirst(prefix.utf8.count)), bytes.count == 32
        else { return nil }
        return ConnectionID(bytes: bytes)
    }
}

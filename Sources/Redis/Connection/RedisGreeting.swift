/// The start of a connection: which version of the protocol, who the client is, and whether the server is the right one.
struct RedisGreeting: Sendable {
    /// The kind of server that a connection needs.
    enum Role: Sendable { case primary, sentinel }

    let role: Role
    let clientName: String

    /// `HELLO` selects RESP3, authenticates and sets the connection's name. `PING` finds out whether the server is still
    /// loading its data, because `HELLO` works during that time.
    func commands(_ credentials: RedisCredentials?) -> [RedisCommand] {
        var arguments: [RedisCommand.Argument] = [3]
        if let credentials { arguments += ["AUTH", .text(credentials.user), .text(credentials.password)] }
        if !clientName.isEmpty { arguments += ["SETNAME", .text(clientName)] }
        return [RedisCommand("HELLO", arguments), RedisCommand("PING")]
    }

    /// Checks the answer to `HELLO`, which contains the server's role, as the answer to `ROLE` does.
    ///
    /// - Returns: the server's version.
    func check(hello: RESPValue, from endpoint: RedisEndpoint) throws(RedisError) -> String {
        if let text = hello.errorText { throw Self.refusal(text, endpoint) }
        guard hello["proto"]?.integer == 3, let mode = hello["mode"]?.text else {
            throw RedisError(.protocolViolation, "\(endpoint) did not answer HELLO like Redis.")
        }
        switch (role, mode) {
        case (.sentinel, "sentinel"): break
        case (.sentinel, _): throw RedisError(.unsuitable, "\(endpoint) is not a Sentinel.")
        case (.primary, "standalone"):
            guard hello["role"]?.text == "master" else {
                throw RedisError(.notPrimary, "\(endpoint) is a replica, not the primary.")
            }
        case (.primary, "sentinel"):
            throw RedisError(.unsuitable, "\(endpoint) is a Sentinel, but a server for data is needed.")
        case (.primary, _):
            throw RedisError(.unsuitable, "\(endpoint) is part of Redis Cluster, which is not supported.")
        }
        return String(hello["version"]?.text?.prefix(32).filter { $0.isASCII && ("!"..."~").contains($0) } ?? "")
    }

    /// Checks the answer to `PING`.
    func check(ping: RESPValue, from endpoint: RedisEndpoint) throws(RedisError) {
        // Users who may not send PING get NOPERM, which shows as well that the server executes commands.
        if let text = ping.errorText, let error = Self.temporaryRefusal(text, endpoint) { throw error }
    }

    /// Returns the error for a server that cannot be used at the moment; nil for other errors.
    private static func temporaryRefusal(_ text: String, _ endpoint: RedisEndpoint) -> RedisError? {
        switch RedisError.code(of: text) {
        case "LOADING": RedisError(.unavailable, "\(endpoint) is still loading its data.")
        case "MASTERDOWN": RedisError(.notPrimary, "\(endpoint) is a replica without a primary.")
        case "BUSY": RedisError(.unavailable, "\(endpoint) is executing a script that takes long.")
        case "DENIED":
            RedisError(
                .unavailable, "\(endpoint) is in protected mode. Set a password or protected-mode in its configuration."
            )
        case "ERR" where text.hasPrefix("ERR max number of clients"):
            RedisError(.unavailable, "\(endpoint) has as many connections as its maxclients allows.")
        default: nil
        }
    }

    /// Returns the error for a refused `HELLO`. It has only the code of the server's message, because a server that does not
    /// know `HELLO` repeats its arguments, and thereby the password.
    private static func refusal(_ text: String, _ endpoint: RedisEndpoint) -> RedisError {
        if let error = temporaryRefusal(text, endpoint) { return error }
        let code = RedisError.code(of: text)
        switch code {
        case "WRONGPASS":
            return RedisError(.authenticationFailed, "\(endpoint) rejects the user or the password.")
        case "NOAUTH": return RedisError(.authenticationFailed, "\(endpoint) requires a password.")
        case "NOPERM": return RedisError(.authenticationFailed, "\(endpoint) does not allow this user to send HELLO.")
        case "NOPROTO":
            return RedisError(.unsuitable, "\(endpoint) refuses HELLO 3. Confab needs Redis 7.0 or later, or Valkey.")
        case "ERR" where text.hasPrefix("ERR unknown command"):
            return RedisError(
                .unsuitable, "\(endpoint) does not know HELLO. Confab needs Redis 7.0 or later, or Valkey.")
        default:
            return RedisError(
                .unavailable, "\(endpoint) refuses HELLO with \(code ?? "an unknown error").", serverCode: code)
        }
    }
}

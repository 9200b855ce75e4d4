/// The start of a connection: which version of the protocol, who the client is, and whether the server is the right one.
struct RedisGreeting: Sendable {
    /// The kind of server that a connection needs.
    enum Role: Sendable { case primary, sentinel }

    let role: Role
    let credentials: RedisCredentials?
    let clientName: String

    /// `HELLO` selects RESP3, authenticates and sets the connection's name. `PING` finds out whether the server is still
    /// loading its data, because `HELLO` works during that time.
    var commands: [RedisCommand] {
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
        return hello["version"]?.text ?? ""
    }

    /// Checks the answer to `PING`.
    func check(ping: RESPValue, from endpoint: RedisEndpoint) throws(RedisError) {
        // Users who may not send PING get NOPERM, which shows as well that the server executes commands.
        guard let code = ping.errorText?.prefix(while: { $0 != " " }) else { return }
        switch code {
        case "LOADING": throw RedisError(.connectionLost, "\(endpoint) is still loading its data.")
        case "MASTERDOWN": throw RedisError(.notPrimary, "\(endpoint) is a replica without a primary.")
        default: break
        }
    }

    /// Returns the error for a refused `HELLO`. It has only the code of the server's message, because a server that does not
    /// know `HELLO` repeats its arguments, and thereby the password.
    private static func refusal(_ text: String, _ endpoint: RedisEndpoint) -> RedisError {
        let code = text.prefix { $0 != " " }
        switch code {
        case "WRONGPASS":
            return RedisError(.authenticationFailed, "\(endpoint) rejects the user or the password.")
        case "NOAUTH": return RedisError(.authenticationFailed, "\(endpoint) requires a password.")
        case "NOPERM": return RedisError(.authenticationFailed, "\(endpoint) does not allow this user to send HELLO.")
        default:
            // Only letters, because the text is the server's.
            let shown = code.filter { $0.isASCII && $0.isLetter }.prefix(20)
            return RedisError(
                .unsuitable, "\(endpoint) refuses HELLO 3 (\(shown)). Confab needs Redis 7.0 or later, or Valkey.")
        }
    }
}

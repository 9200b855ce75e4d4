import Wire

extension RedisConnection {
    /// What a connection needs, and its limits.
    package struct Settings: Sendable {
        var role = RedisGreeting.Role.primary
        /// Which user and password each server gets.
        package var credentials = RedisCredentials.Assignment.noServer
        /// The name of the connection in `CLIENT LIST`; empty for none. Redis allows no spaces in it.
        package var clientName = ""
        /// The time until the server must have accepted the connection and answered the greeting.
        package var connectTimeout = Duration.seconds(5)
        /// The longest pause between two attempts. Shorter than a failover, which takes Sentinel a few seconds.
        package var longestPause = Duration.seconds(1)
        /// The time without bytes from a server, and without a request that waits, after which `PING` is sent.
        package var idleTime = Duration.seconds(2)
        /// The time without bytes from a server while an answer is awaited, after which the server is given up. With
        /// `idleTime`, a dead server is noticed after 5 s. Longer than anything for which Redis pauses in ordinary operation.
        package var longestSilence = Duration.seconds(3)
        /// The number of requests that may wait for answers.
        package var maxRequests = 16_384
        /// The bytes of the requests that may wait for answers.
        package var maxRequestBytes = 32 << 20
        /// The limits of an answer.
        package var limits = RESPParser.Limits()

        package init() {}
    }

    /// What happened.
    package enum Event: Sendable {
        /// A connection is wanted.
        case start
        /// The answer to `locate`.
        case located(RedisEndpoint)
        /// The primary is another server now. It is tried at once, unless another attempt began within the longest pause.
        case moved(RedisEndpoint)
        /// The server has accepted the connection.
        case opened(Attempt)
        /// Bytes have arrived, which may be parts of answers.
        case received(Attempt, [UInt8])
        /// The connection was closed, or could not be opened.
        case closed(Attempt, reason: String)
        /// A request with its number.
        ///
        /// - Parameter onlyOn: the connection on which the request may be sent, so that it does not overtake what was lost
        ///   with that connection; nil for any.
        case submit(UInt64, RedisRequest, deadline: Timestamp, onlyOn: Attempt?)
        /// The connection must be given up, and the server be located again.
        case abandon(RedisError)
        /// The connection is no longer wanted.
        case close
    }

    /// What the shell must do, in this order.
    package enum Effect: Equatable, Sendable {
        /// Find the server, and report it as `located`.
        ///
        /// - Parameter failed: the server that was tried last and could not be used.
        case locate(failed: RedisEndpoint?)
        /// Connect, and report the result as `opened` or `closed`.
        case open(Attempt, RedisEndpoint)
        /// Send these bytes.
        case write(Attempt, [UInt8])
        /// Close the connection, or stop opening it.
        case disconnect(Attempt)
        /// The result of a request. An answer that is an error is a failure.
        case complete(UInt64, Result<RESPValue, RedisError>)
        /// A message from the server that answers no request.
        case pushed([RESPValue])
        /// Report the state to the owner. Results that follow from it come later.
        case changed(RedisState)
    }
}

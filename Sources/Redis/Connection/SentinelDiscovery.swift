/// Finds the primary through Redis Sentinel (https://redis.io/docs/latest/develop/reference/sentinel-clients/).
///
/// It asks one Sentinel at a time, over a connection that lasts, and follows the `+switch-master` messages there. A
/// Sentinel that does not know the primary, whose primary could not be used, or that refuses the subscription, is replaced by
/// the next one: it may have been cut off from the others. The connection checks whether the server has the role of a primary.
package struct SentinelDiscovery: Sendable {
    /// What happened.
    package enum Event: Sendable {
        /// A connection to a Sentinel is ready.
        case connected
        /// The connection to the Sentinel was lost.
        case disconnected
        /// A connection needs the primary's address.
        ///
        /// - Parameter failed: the primary that was tried and could not be used.
        case wanted(failed: RedisEndpoint?)
        /// The result of `ask`.
        case answered(Result<RESPValue, RedisError>)
        /// The Sentinel refused the command of `subscribe`.
        case subscriptionRefused
        /// A message from the Sentinel.
        case pushed([RESPValue])
    }

    /// What the shell must do.
    package enum Effect: Equatable, Sendable {
        /// Send this command to the Sentinel, and report the result as `answered`.
        case ask(RedisCommand)
        /// Send this command to the Sentinel, and report if it is refused.
        case subscribe(RedisCommand)
        /// Close the connection and open one to the next Sentinel.
        case useNextSentinel
        /// Report the primary's address to the connections that wait for it.
        case located(RedisEndpoint)
        /// Report to all connections that the primary is another server now.
        case moved(RedisEndpoint)
    }

    private enum State { case disconnected, asking, idle }

    /// The longest name of a host in the DNS.
    private static let maxHostBytes = 253

    private let primaryName: String
    /// Whether connections to the primary use TLS. A Sentinel does not know that.
    private let isSecure: Bool
    private var state = State.disconnected
    /// The primary that was reported last.
    private var located: RedisEndpoint?
    /// Whether this Sentinel does not report failovers.
    private var isMute = false

    package init(primaryName: String, isSecure: Bool) { (self.primaryName, self.isSecure) = (primaryName, isSecure) }

    /// Handles an event and returns what the shell must do.
    package mutating func handle(_ event: Event) -> [Effect] {
        switch event {
        case .connected:
            (state, isMute) = (.asking, false)
            // Subscribes first, so that no change between the two is missed.
            return [.subscribe(RedisCommand("SUBSCRIBE", "+switch-master")), .ask(question)]
        case .disconnected:
            state = .disconnected
            return []
        case .wanted(let failed):
            // In the other states, the answer follows anyway.
            guard state == .idle else { return [] }
            if failed != nil, failed == located { return useNextSentinel() }
            state = .asking
            return [.ask(question)]
        case .answered(let result):
            guard state == .asking else { return [] }
            guard case .success(let answer) = result, let parts = answer.elements, parts.count == 2,
                let found = endpoint(parts[0].text, parts[1].text)
            else { return useNextSentinel() }
            state = .idle
            // A failover during which no Sentinel was connected is found out here.
            let hasMoved = located != nil && located != found
            located = found
            return [hasMoved ? .moved(found) : .located(found)] + (isMute ? useNextSentinel() : [])
        case .subscriptionRefused:
            guard state != .disconnected else { return [] }
            // Nobody reports failovers then, so the Sentinels are asked in turn, with the pauses between connections.
            isMute = true
            return state == .idle ? useNextSentinel() : []
        case .pushed(let message): return follow(message)
        }
    }

    private var question: RedisCommand {
        RedisCommand("SENTINEL", "GET-MASTER-ADDR-BY-NAME", .text(primaryName))
    }

    private mutating func useNextSentinel() -> [Effect] {
        state = .disconnected
        return [.useNextSentinel]
    }

    /// Reads a message of the form `name old-ip old-port new-ip new-port`.
    private mutating func follow(_ message: [RESPValue]) -> [Effect] {
        guard state != .disconnected, message.count == 3, message[0].text == "message",
            message[1].text == "+switch-master", let words = message[2].text?.split(separator: " "), words.count == 5,
            words[0] == primaryName, let found = endpoint(String(words[3]), String(words[4]))
        else { return [] }
        located = found
        return [.moved(found)]
    }

    private func endpoint(_ host: String?, _ port: String?) -> RedisEndpoint? {
        guard let host, (1...Self.maxHostBytes).contains(host.utf8.count), host.utf8.allSatisfy(Self.isHostByte),
            let port = port.flatMap({ UInt16($0) }), port > 0
        else { return nil }
        return RedisEndpoint(host: host, port: Int(port), isSecure: isSecure)
    }

    /// Whether a byte can be part of a name or an address.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: ":"), UInt8(ascii: "%"):
            true
        default: false
        }
    }
}

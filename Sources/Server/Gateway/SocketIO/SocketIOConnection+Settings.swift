import Signaling
import Wire

extension SocketIOConnection {
    /// The settings of a connection from the configuration.
    struct Settings: Equatable, Sendable {
        var times: ConfabConfiguration.SocketIO
        /// Rate limit for packets of any kind.
        var packets: Budget.Rate
        /// Rate limit for the packets that exceed `packets` and are refused. A client that exceeds this limit too is
        /// disconnected.
        var refusals: Budget.Rate
        var malformed: Budget.Rate
        /// The maximum number and the maximum total size in bytes of the packets that wait for the next poll.
        var queuedPackets: Int
        var queuedBytes: Int
        /// How long a client of Socket.IO 4 can recover a dropped connection.
        var recoveryTime: Duration
        /// The maximum size of a message or a request's body, in bytes.
        var messageSize: Int

        init(_ configuration: ConfabConfiguration) {
            let rules = configuration.rules
            (times, packets, refusals) = (configuration.socketIO, rules.verbs, rules.refusals)
            malformed = Budget.Rate(perMinute: rules.malformedPerMinute)
            queuedPackets = max(1, rules.replay.messages)
            queuedBytes = max(4096, rules.replay.bytes)
            (recoveryTime, messageSize) = (rules.resumeGrace, rules.messageSize)
        }
    }
}

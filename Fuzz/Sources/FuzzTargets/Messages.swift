import Wire

extension FuzzTarget {
    private static let examples = ["protocol/examples"]

    /// Fuzzes client messages. Every accepted message must be the same after encoding and parsing it again.
    static let clientMessages = FuzzTarget(
        "client-messages", longestInput: 2048, dictionary: "messages", seeds: examples
    ) { input throws(BrokenProperty) in
        let envelope: Envelope<ClientMessage>
        do throws(UnreadableMessage) {
            envelope = try .decode(input)
        } catch {
            return try checkRefusal(error)
        }
        let encoded = envelope.encode()
        let again = try? Envelope<ClientMessage>.decode(encoded)
        try require(again == envelope, "\(envelope) is read back as \(String(describing: again))")
        try require(again?.encode() == encoded, "\(envelope) has two encodings")
    }

    /// Fuzzes server messages.
    static let serverMessages = FuzzTarget(
        "server-messages", longestInput: 2048, dictionary: "messages", seeds: examples
    ) { input throws(BrokenProperty) in
        let envelope: Envelope<ServerMessage>
        do throws(UnreadableMessage) {
            envelope = try .decode(input)
        } catch {
            return try checkRefusal(error)
        }
        let encoded = envelope.encode()
        let again = try? Envelope<ServerMessage>.decode(encoded)
        try require(again == envelope, "\(envelope) is read back as \(String(describing: again))")
        try require(again?.encode() == encoded, "\(envelope) has two encodings")
    }

    /// Checks that the other end can parse the error about a rejected message, because errors are sent too.
    private static func checkRefusal(_ refusal: UnreadableMessage) throws(BrokenProperty) {
        let sent = Envelope(seq: 1, message: ServerMessage.error(ServerMessage.Failure(refusal.error, re: refusal.seq)))
        let again = try? Envelope<ServerMessage>.decode(sent.encode())
        try require(again == sent, "the other end cannot parse the error \(refusal)")
    }
}

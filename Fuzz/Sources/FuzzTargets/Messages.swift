import Wire

extension FuzzTarget {
    private static let examples = ["protocol/examples"]

    /// Client messages. Every accepted message can be encoded again, and a second reader reads the same.
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

    /// Server messages.
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

    /// Errors are sent too, so the other end must be able to parse them.
    private static func checkRefusal(_ refusal: UnreadableMessage) throws(BrokenProperty) {
        let told = Envelope(seq: 1, message: ServerMessage.error(ServerMessage.Failure(refusal.error, re: refusal.seq)))
        let again = try? Envelope<ServerMessage>.decode(told.encode())
        try require(again == told, "the other end cannot parse the error \(refusal)")
    }
}

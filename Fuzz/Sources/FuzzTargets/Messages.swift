import Wire

extension FuzzTarget {
    private static let examples = ["protocol/examples"]

    /// What a server reads. Whatever it takes, it can pass on, and a second reader takes it for the same.
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
        try require(again == envelope, "\(envelope) was written and read as \(String(describing: again))")
        try require(again?.encode() == encoded, "\(envelope) is written in two ways")
    }

    /// What a client reads.
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
        try require(again == envelope, "\(envelope) was written and read as \(String(describing: again))")
        try require(again?.encode() == encoded, "\(envelope) is written in two ways")
    }

    /// A refusal travels as well, so it must be something that the other end can read.
    private static func checkRefusal(_ refusal: UnreadableMessage) throws(BrokenProperty) {
        let told = Envelope(seq: 1, message: ServerMessage.error(ServerMessage.Failure(refusal.error, re: refusal.seq)))
        let again = try? Envelope<ServerMessage>.decode(told.encode())
        try require(again == told, "the other end cannot read the refusal \(refusal)")
    }
}

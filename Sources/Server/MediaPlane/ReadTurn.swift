/// Decides how much a media loop reads from one socket before it reads from others, and when it flushes in between.
///
/// The loop reads batches of messages. A message is one datagram, or several that the kernel has joined (UDP GRO).
struct ReadTurn {
    /// The maximum number of datagrams that are passed to the router between two flushes. A batch can contain many more, but until
    /// a flush, a feed's readers keep only a few hundred packets (`Fanout.maxPending`).
    static let longestBurst = 64
    /// The number of datagrams after which the turn ends. The batch that reaches it is still read to its end.
    static let longestRead = 512

    private var left = longestRead
    /// The number of datagrams in the current batch.
    private var datagrams = 0

    /// Records that a datagram was passed to the router.
    /// - Returns: whether the router must flush before the next one.
    mutating func passed() -> Bool {
        datagrams += 1
        return datagrams.isMultiple(of: Self.longestBurst)
    }

    /// Records that a batch was read and flushed.
    /// - Parameters:
    ///   - messages: the number of messages in the batch. They count too, because empty datagrams and too long ones are not
    ///     passed to the router.
    ///   - burst: the maximum number of messages in a batch. A batch with fewer has emptied the socket.
    /// - Returns: whether to read another batch.
    mutating func continues(after messages: Int, of burst: Int) -> Bool {
        left -= max(messages, datagrams)
        datagrams = 0
        return messages >= burst && left > 0
    }
}

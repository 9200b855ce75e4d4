import Signaling
import Wire

/// The letters of the benchmark: signals for one client, which carry the time at which they were posted, and have as many bytes as the
/// letters of a match across nodes.
struct LoadLetter {
    /// The letters of a match across nodes, and how many of them are large: those with the tokens for both people.
    private static let letters = 12
    private static let largeLetters = 2
    /// The bytes of those, and of the others: requests, answers, reservations and notices.
    private static let largeSize = 1500...2500
    private static let smallSize = 120...600

    private let client: ConnectionID
    private let session: SessionID
    /// The bytes of a letter without data.
    private let overhead: Int

    init(using random: inout SplitMix64) throws {
        guard let session = SessionID("2_benchmark") else { throw Failure(description: "no session") }
        (client, self.session) = (.random(using: &random), session)
        var packer = LetterPacker(entrySize: 1 << 16)
        try packer.append(Self.letter(client, session, data: ""))
        overhead = packer.entries.reduce(0) { $0 + $1.count }
    }

    private static func letter(_ client: ConnectionID, _ session: SessionID, data: String) -> Letter {
        .client(
            client,
            .deliver(.session(.signal(SessionNotice.Signal(session: session, from: client, type: nil, data: data)))))
    }

    /// Returns a letter of a random size.
    ///
    /// - Parameter time: the nanoseconds of the clock at which it is posted.
    func next(at time: UInt64, using random: inout SplitMix64) -> Letter {
        let isLarge = Int.random(in: 0..<Self.letters, using: &random) < Self.largeLetters
        let size = Int.random(in: isLarge ? Self.largeSize : Self.smallSize, using: &random)
        let stamp = "\(time) "
        let filling = String(repeating: "x", count: max(0, size - overhead - stamp.utf8.count))
        return Self.letter(client, session, data: stamp + filling)
    }

    /// Returns the time at which a letter was posted; nil if it is none of these.
    static func time(of letter: Letter) -> UInt64? {
        guard case .client(_, .deliver(.session(.signal(let signal)))) = letter, let data = signal.data else {
            return nil
        }
        return UInt64(data.prefix { $0 != " " })
    }
}

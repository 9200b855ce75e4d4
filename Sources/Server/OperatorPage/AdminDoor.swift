import Signaling
import Wire

/// Decides which requests to the operator's page have the token.
///
/// Wrong tokens are limited per address, so that guesses do not fill the log. At 128 random bits, nobody finds the token by guessing.
struct AdminDoor: Sendable {
    /// What follows from a request's token.
    enum Verdict: Equatable, Sendable {
        case admitted
        case missing
        case wrong
        /// The token is wrong, and too many wrong tokens have come from the address.
        case blocked(Duration)
    }

    /// Wrong tokens per minute from one IP address (per /64 for IPv6).
    static let guesses = Budget.Rate(perMinute: 10)
    /// Addresses with separate budgets for wrong tokens. All others share one.
    static let maxAddresses = 1024

    private let token: [UInt8]
    private var budgets = BudgetTable<CIDRBlock>(maxKeys: maxAddresses)

    init(_ token: SecretText) { self.token = Array(token.revealed.utf8) }

    mutating func check(_ claimed: String?, from address: IPAddress, now: Timestamp) -> Verdict {
        guard let claimed else { return .missing }
        let block = address.limitingBlock
        // The right token always opens the door, or wrong ones from the operator's own address could keep the operator out.
        if constantTimeEquals(Array(claimed.utf8), token) { return .admitted }
        if let wait = budgets.wait(block, Self.guesses, now: now) { return .blocked(wait) }
        _ = budgets.take(block, Self.guesses, now: now)
        return .wrong
    }
}

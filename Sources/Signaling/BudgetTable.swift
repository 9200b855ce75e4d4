import Wire

/// One budget per key, such as one for each address. At most `maxKeys` keys have separate budgets. All further keys
/// share one budget.
package struct BudgetTable<Key: Hashable & Sendable>: Equatable, Sendable {
    private let maxKeys: Int
    private var budgets: [Key: Budget] = [:]
    private var othersBudget: Budget?

    package init(maxKeys: Int) { self.maxKeys = maxKeys }

    /// Takes a token from the key's budget and returns nil. If the budget has no token, returns how long to wait for
    /// one.
    package mutating func take(_ key: Key, _ rate: Budget.Rate, now: Timestamp) -> Duration? {
        if budgets[key] == nil, budgets.count >= maxKeys {
            budgets = budgets.filter { !$0.value.isFull(rate, now: now) }
        }
        guard budgets[key] != nil || budgets.count < maxKeys else { return othersBudget.take(rate, now: now) }
        return budgets[key, default: Budget(rate, now: now)].take(rate, now: now)
    }

    /// Returns how long to wait until the key's budget has a token; nil if it has one.
    package func wait(_ key: Key, _ rate: Budget.Rate, now: Timestamp) -> Duration? {
        let budget = budgets[key] ?? (budgets.count < maxKeys ? nil : othersBudget)
        return budget?.wait(rate, now: now, beyond: -1)
    }
}

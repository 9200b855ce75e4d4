import Signaling
import Wire

/// The budgets of each limiting block of addresses: an IPv4 address, or an IPv6 /64. The /64s of one /56 also share an
/// account, whose limits are `IPAddress.wideFactor` times as large, because one customer may have all of them.
///
/// It covers every shared resource of which one address could take too much: sockets, new clients, files, broadcasts, messages,
/// stored bytes, queries and queued bytes. It makes no decisions and has no clock. The gateway owns the only instance
/// and acts on the results.
///
/// A connection keeps the slot of its block, so that counting a message needs no lookup and no allocation.
/// Invariant: a block's account exists while a slot is held. After that it is kept until all its budgets are full
/// again, so that reconnecting does not refill them, unless there are too many such accounts. The account of a /56
/// exists as long as that of one of its /64s. Everything counted in an account is also counted in the account of its
/// /56, except for queues, because a separate limit applies to the queues of all addresses together.
struct AddressBudgets {
    /// The limits of a block.
    struct Limits: Equatable {
        /// Maximum number of sockets.
        var sockets: Int
        var hellos: Budget.Rate
        /// The budget for uploads and downloads of files in rooms.
        var files: Budget.Rate
        /// The budget for requests of viewers of broadcasts.
        var views: Budget.Rate
        /// The budget for messages and requests. Large ones cost more.
        var messages: Budget.Rate
        /// The budget for bytes that clients cause to be stored.
        var storedBytes: Budget.Rate
        /// Maximum number of queries in progress.
        var queries: Int
        /// Maximum number of queued bytes of one block.
        var queuedBytes: Int
        /// Maximum number of queued bytes of all blocks.
        var queuedBytesOfAll: Int
    }

    /// A reference to a block's account. Valid while a socket or query holds the account.
    struct Slot: Hashable {
        let index: Int

        init(_ index: Int) { self.index = index }
    }

    /// The state of the budget for stored bytes.
    enum Stored: Equatable {
        case within
        /// The budget is used up. Essential data may still be stored. For other data, wait for the given time.
        case over(Duration)
        /// Twice the budget is used up. Nothing may be stored for the given time.
        case exhausted(Duration)
    }

    /// What the clients of a block currently use of the limits per address.
    struct Account {
        fileprivate let block: CIDRBlock
        /// The index of the wide block's account. Nil for IPv4, and for the account of a wide block.
        fileprivate let wide: Int?
        /// How many sockets and queries hold this account; for a wide block, how many accounts of its limiting blocks
        /// exist. The account is idle if nothing holds it.
        fileprivate var holders = 0
        fileprivate var sockets = 0
        fileprivate var queries = 0
        fileprivate var hellos: Budget
        fileprivate var files: Budget
        fileprivate var views: Budget
        fileprivate var messages: Budget
        fileprivate var stored: Budget
        fileprivate var usedAt: Timestamp
        var queues = Queues()
    }

    /// A message costs one token, plus one per this number of bytes.
    static let bytesPerMessage = 4096
    /// Maximum number of accounts without a connection. Beyond it, the least recently used are dropped. An account
    /// takes about 200 bytes.
    static let maxIdle = 50_000

    /// The limits in use, which a reload changes.
    var limits: Limits {
        didSet {
            guard limits != oldValue else { return }
            wideLimits = limits.ofWideBlock
            checkQueuesAgain()
        }
    }
    private var wideLimits: Limits
    private var slots: [CIDRBlock: Int] = [:]
    var accounts: [Account] = []
    private var free: [Int] = []
    private var idle = 0
    private var sweepAt = 1000
    /// The queued bytes of all blocks.
    var queuedBytes = 0
    /// The sum of queued bytes above which they are counted again.
    var queueCheck: Int

    init(_ limits: Limits) {
        self.limits = limits
        wideLimits = limits.ofWideBlock
        queueCheck = limits.queuedBytesOfAll
    }

    /// The number of accounts, for tests.
    var count: Int { slots.count }

    // MARK: Accounts

    /// Returns the index of this address's account, creating it if needed.
    private mutating func account(of address: IPAddress, now: Timestamp) -> Int {
        let block = address.limitingBlock
        if let index = slots[block] {
            accounts[index].usedAt = now
            return index
        }
        if idle >= sweepAt { sweep(now) }
        guard !address.isIPv4 else { return makeAccount(block, limits, wide: nil, now: now) }
        let wideBlock = address.wideBlock
        let wide = slots[wideBlock] ?? makeAccount(wideBlock, wideLimits, wide: nil, now: now)
        hold(wide)
        return makeAccount(block, limits, wide: wide, now: now)
    }

    private mutating func makeAccount(_ block: CIDRBlock, _ limits: Limits, wide: Int?, now: Timestamp) -> Int {
        let account = Account(
            block: block, wide: wide, hellos: Budget(limits.hellos, now: now), files: Budget(limits.files, now: now),
            views: Budget(limits.views, now: now), messages: Budget(limits.messages, now: now),
            stored: Budget(limits.storedBytes, now: now), usedAt: now,
            queues: Queues(limit: limits.queuedBytes))
        idle += 1
        if let index = free.popLast() {
            accounts[index] = account
            slots[block] = index
            return index
        }
        accounts.append(account)
        slots[block] = accounts.count - 1
        return accounts.count - 1
    }

    private func limits(of index: Int) -> Limits {
        accounts[index].block.prefixLength == IPAddress.widePrefix ? wideLimits : limits
    }

    /// Forgets accounts without a connection: those whose budgets are full, and the least recently used if there are too many.
    private mutating func sweep(_ now: Timestamp) {
        var kept: [(index: Int, usedAt: Timestamp)] = []
        for index in slots.values where accounts[index].holders == 0 {
            let (account, limits) = (accounts[index], limits(of: index))
            let isFull =
                account.hellos.isFull(limits.hellos, now: now) && account.files.isFull(limits.files, now: now)
                && account.views.isFull(limits.views, now: now)
                && account.messages.isFull(limits.messages, now: now)
                && account.stored.isFull(limits.storedBytes, now: now)
            if isFull { forget(index) } else { kept.append((index, account.usedAt)) }
        }
        if kept.count > Self.maxIdle / 2 {
            kept.sort { $0.usedAt < $1.usedAt }
            for old in kept.dropLast(Self.maxIdle / 2) { forget(old.index) }
        }
        sweepAt = min(Self.maxIdle, max(1000, 2 * idle))
    }

    private mutating func forget(_ index: Int) {
        slots[accounts[index].block] = nil
        free.append(index)
        idle -= 1
        if let wide = accounts[index].wide { release(wide, now: accounts[index].usedAt) }
    }

    private mutating func hold(_ index: Int) {
        if accounts[index].holders == 0 { idle -= 1 }
        accounts[index].holders += 1
    }

    private mutating func release(_ index: Int, now: Timestamp) {
        accounts[index].holders -= 1
        accounts[index].usedAt = now
        if accounts[index].holders == 0 { idle += 1 }
    }

    // MARK: Sockets and arrivals

    func hasRoom(for address: IPAddress) -> Bool {
        guard limits.sockets > 0 else { return false }
        if let index = slots[address.limitingBlock], accounts[index].sockets >= limits.sockets { return false }
        guard !address.isIPv4, let wide = slots[address.wideBlock] else { return true }
        return accounts[wide].sockets < wideLimits.sockets
    }

    mutating func addSocket(of address: IPAddress, now: Timestamp) -> Slot {
        let index = account(of: address, now: now)
        hold(index)
        accounts[index].sockets += 1
        if let wide = accounts[index].wide { accounts[wide].sockets += 1 }
        return Slot(index)
    }

    mutating func removeSocket(_ id: ObjectIdentifier, in slot: Slot, now: Timestamp) {
        _ = setQueue(of: id, to: 0, in: slot)
        accounts[slot.index].sockets -= 1
        if let wide = accounts[slot.index].wide { accounts[wide].sockets -= 1 }
        release(slot.index, now: now)
    }

    /// Charges one hello to the address's budget. If the budget is used up, charges nothing and returns how long to
    /// wait.
    mutating func takeHello(of address: IPAddress, now: Timestamp) -> Duration? {
        take(\.hellos, \.hellos, of: address, now: now)
    }

    /// Charges one upload or download to the address's budget. If the budget is used up, charges nothing and returns
    /// how long to wait.
    mutating func takeFile(of address: IPAddress, now: Timestamp) -> Duration? {
        take(\.files, \.files, of: address, now: now)
    }

    /// Charges one request of a viewer to the address's budget. If the budget is used up, charges nothing and returns how
    /// long to wait.
    mutating func takeView(of address: IPAddress, now: Timestamp) -> Duration? {
        take(\.views, \.views, of: address, now: now)
    }

    /// Charges the budgets of the address and of its wide block. If one of them is used up, charges neither and
    /// returns how long to wait; otherwise returns nil.
    private mutating func take(
        _ budget: WritableKeyPath<Account, Budget>, _ rate: KeyPath<Limits, Budget.Rate>, cost: Double = 1,
        of address: IPAddress, now: Timestamp
    ) -> Duration? {
        let index = account(of: address, now: now)
        guard let wide = accounts[index].wide else {
            return accounts[index][keyPath: budget].take(limits[keyPath: rate], cost: cost, now: now)
        }
        var shared = accounts[wide][keyPath: budget]
        let wait =
            shared.take(wideLimits[keyPath: rate], cost: cost, now: now)
            ?? accounts[index][keyPath: budget].take(limits[keyPath: rate], cost: cost, now: now)
        if wait == nil { accounts[wide][keyPath: budget] = shared }
        return wait
    }

    // MARK: Messages

    private static func cost(_ bytes: Int) -> Double { Double(1 + bytes / bytesPerMessage) }

    /// Charges a request to the address's message budget. If the budget is used up, charges nothing and returns how
    /// long to wait.
    mutating func takeRequest(of address: IPAddress, bytes: Int, now: Timestamp) -> Duration? {
        take(\.messages, \.messages, cost: Self.cost(bytes), of: address, now: now)
    }

    /// Counts a message that was already read. The budget may become negative.
    mutating func spendMessage(bytes: Int, in slot: Slot, now: Timestamp) {
        spendMessages(cost: Self.cost(bytes), in: slot, now: now)
    }

    /// Counts messages that arrived inside another one, whose bytes `spendMessage` or `takeRequest` has already
    /// counted.
    mutating func spendMessages(_ count: Int, in slot: Slot, now: Timestamp) {
        spendMessages(cost: Double(count), in: slot, now: now)
    }

    private mutating func spendMessages(cost: Double, in slot: Slot, now: Timestamp) {
        accounts[slot.index].messages.spend(limits.messages, cost: cost, now: now)
        guard let wide = accounts[slot.index].wide else { return }
        accounts[wide].messages.spend(wideLimits.messages, cost: cost, now: now)
    }

    /// Returns the number of messages that may still be read from this block; negative if too many were read.
    func messages(in slot: Slot, now: Timestamp) -> Double {
        let own = accounts[slot.index].messages.tokens(limits.messages, now: now)
        guard let wide = accounts[slot.index].wide else { return own }
        return min(own, accounts[wide].messages.tokens(wideLimits.messages, now: now))
    }

    // MARK: Stored bytes

    mutating func spendStored(bytes: Int, in slot: Slot, now: Timestamp) {
        accounts[slot.index].stored.spend(limits.storedBytes, cost: Double(bytes), now: now)
        guard let wide = accounts[slot.index].wide else { return }
        accounts[wide].stored.spend(wideLimits.storedBytes, cost: Double(bytes), now: now)
    }

    func stored(in slot: Slot, now: Timestamp) -> Stored {
        let own = Self.stored(accounts[slot.index].stored, limits.storedBytes, now: now)
        guard let wide = accounts[slot.index].wide else { return own }
        let shared = Self.stored(accounts[wide].stored, wideLimits.storedBytes, now: now)
        switch (own, shared) {
        case (.exhausted, _), (.over, .within), (.within, .within), (.over, .over): return own
        case (_, .exhausted), (.within, .over): return shared
        }
    }

    private static func stored(_ budget: Budget, _ rate: Budget.Rate, now: Timestamp) -> Stored {
        if let wait = budget.wait(rate, now: now, beyond: rate.burst) { return .exhausted(wait) }
        return budget.wait(rate, now: now).map { .over($0) } ?? .within
    }

    // MARK: Queries

    /// Counts a query. Returns false, without counting it, if too many are in progress.
    mutating func beginQuery(in slot: Slot) -> Bool {
        let wide = accounts[slot.index].wide
        guard accounts[slot.index].queries < limits.queries,
            wide.map({ accounts[$0].queries < wideLimits.queries }) ?? true
        else { return false }
        hold(slot.index)
        accounts[slot.index].queries += 1
        if let wide { accounts[wide].queries += 1 }
        return true
    }

    /// Ends a query counted by `beginQuery`. The client may already be gone.
    mutating func endQuery(in slot: Slot, now: Timestamp) {
        accounts[slot.index].queries -= 1
        if let wide = accounts[slot.index].wide { accounts[wide].queries -= 1 }
        release(slot.index, now: now)
    }
}

extension AddressBudgets.Limits {
    /// The limits of a wide block. Those for queues are unchanged and have no effect, because queues are not counted
    /// for wide blocks.
    fileprivate var ofWideBlock: Self {
        var limits = self
        limits.sockets *= IPAddress.wideFactor
        limits.hellos = hellos.ofWideBlock
        limits.files = files.ofWideBlock
        limits.views = views.ofWideBlock
        limits.messages = messages.ofWideBlock
        limits.storedBytes = storedBytes.ofWideBlock
        limits.queries *= IPAddress.wideFactor
        return limits
    }
}

extension Budget.Rate {
    /// The rate of a wide block of addresses whose limiting blocks have this rate.
    var ofWideBlock: Budget.Rate {
        Budget.Rate(
            perSecond: perSecond * Double(IPAddress.wideFactor), burst: burst * Double(IPAddress.wideFactor))
    }
}

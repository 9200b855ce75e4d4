import Signaling
import Wire

/// The budgets of each limiting block of addresses: an IPv4 address, or an IPv6 /64.
///
/// It contains everything that one address could take from all others: sockets, arrivals, files, messages, stored bytes, queries
/// and queued bytes. It decides nothing and has no clock. The gateway owns the only value and acts on what it returns.
///
/// A connection keeps the slot of its block, so that counting a message needs no lookup and no allocation.
/// Invariant: a block's account exists while a slot is held. After that it is kept until all its budgets are full again, so that
/// reconnecting does not refill them, as long as there are not too many such accounts.
struct AddressBudgets {
    struct Limits: Equatable {
        /// Maximum number of sockets.
        var sockets: Int
        var hellos: Budget.Rate
        /// The budget for uploads and downloads of files in rooms.
        var files: Budget.Rate
        /// The budget for messages and requests. Large ones cost more.
        var messages: Budget.Rate
        /// The budget for bytes that clients cause to be stored.
        var storedBytes: Budget.Rate
        /// Maximum number of queries under way.
        var inquiries: Int
        /// Maximum bytes in the queues of one block, and of all blocks.
        var queuedBytes: Int
        var queuedBytesOfAll: Int
    }

    /// A reference to a block's account. Valid until it is released.
    struct Slot: Hashable {
        let index: Int

        init(_ index: Int) { self.index = index }
    }

    /// The state of the budget for stored bytes.
    enum Stored: Equatable {
        case within
        /// The budget is used up. What is essential may be stored. Otherwise, wait for the given time.
        case over(Duration)
        /// As much again was stored. Nothing may be stored.
        case exhausted(Duration)
    }

    struct Account {
        fileprivate let block: IPAddress
        /// The number of slots that are held.
        fileprivate var holders = 0
        fileprivate var sockets = 0
        fileprivate var inquiries = 0
        fileprivate var hellos: Budget
        fileprivate var files: Budget
        fileprivate var messages: Budget
        fileprivate var stored: Budget
        fileprivate var usedAt: Timestamp
        var queues = Queues()
    }

    /// A message costs one, plus one per this number of bytes.
    static let bytesPerMessage = 4096
    /// Maximum number of accounts without a connection. Beyond it, those that were not used for longest are forgotten. An
    /// account has some 200 bytes.
    static let maxIdle = 50_000

    /// The limits in use, which a reload changes.
    var limits: Limits {
        didSet { if limits != oldValue { checkQueuesAgain() } }
    }
    private var slots: [IPAddress: Int] = [:]
    var accounts: [Account] = []
    private var free: [Int] = []
    private var idle = 0
    private var sweepAt = 1000
    /// The queued bytes of all blocks. `queueCheck` is the sum from which they are checked again.
    var queuedBytes = 0
    var queueCheck: Int

    init(_ limits: Limits) {
        self.limits = limits
        queueCheck = limits.queuedBytesOfAll
    }

    /// The number of accounts, for tests.
    var count: Int { slots.count }

    // MARK: Accounts

    /// Returns the index of the account of this address, which is created if there is none.
    private mutating func account(of address: IPAddress, now: Timestamp) -> Int {
        let block = address.limitingBlock.network
        if let index = slots[block] {
            accounts[index].usedAt = now
            return index
        }
        if idle >= sweepAt { sweep(now) }
        let account = Account(
            block: block, hellos: Budget(limits.hellos, now: now), files: Budget(limits.files, now: now),
            messages: Budget(limits.messages, now: now), stored: Budget(limits.storedBytes, now: now), usedAt: now,
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

    /// Forgets accounts without a connection: those whose budgets are full, and the least recently used if there are too many.
    private mutating func sweep(_ now: Timestamp) {
        var kept: [(index: Int, usedAt: Timestamp)] = []
        for index in slots.values where accounts[index].holders == 0 {
            let account = accounts[index]
            let isFull =
                account.hellos.isFull(limits.hellos, now: now) && account.files.isFull(limits.files, now: now)
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
        guard let index = slots[address.limitingBlock.network] else { return limits.sockets > 0 }
        return accounts[index].sockets < limits.sockets
    }

    mutating func addSocket(of address: IPAddress, now: Timestamp) -> Slot {
        let index = account(of: address, now: now)
        hold(index)
        accounts[index].sockets += 1
        return Slot(index)
    }

    mutating func removeSocket(_ id: ObjectIdentifier, in slot: Slot, now: Timestamp) {
        _ = setQueue(of: id, to: 0, in: slot)
        accounts[slot.index].sockets -= 1
        release(slot.index, now: now)
    }

    /// Takes one arrival. Returns how long to wait if the budget is used up.
    mutating func takeHello(of address: IPAddress, now: Timestamp) -> Duration? {
        accounts[account(of: address, now: now)].hellos.take(limits.hellos, now: now)
    }

    /// Takes one upload or download. Returns how long to wait if the budget is used up.
    mutating func takeFile(of address: IPAddress, now: Timestamp) -> Duration? {
        accounts[account(of: address, now: now)].files.take(limits.files, now: now)
    }

    // MARK: Messages

    private static func cost(_ bytes: Int) -> Double { Double(1 + bytes / bytesPerMessage) }

    /// Takes a request that can be refused. Returns how long to wait if the budget is used up.
    mutating func takeRequest(of address: IPAddress, bytes: Int, now: Timestamp) -> Duration? {
        accounts[account(of: address, now: now)].messages.take(limits.messages, cost: Self.cost(bytes), now: now)
    }

    /// Counts a message that was already read. The budget may become negative.
    mutating func spendMessage(bytes: Int, in slot: Slot, now: Timestamp) {
        accounts[slot.index].messages.spend(limits.messages, cost: Self.cost(bytes), now: now)
    }

    /// Counts messages that came inside another one, which `spendMessage` or `takeRequest` has counted with its bytes.
    mutating func spendMessages(_ count: Int, in slot: Slot, now: Timestamp) {
        accounts[slot.index].messages.spend(limits.messages, cost: Double(count), now: now)
    }

    /// The number of messages that may be read; negative if too many were read.
    func messages(in slot: Slot, now: Timestamp) -> Double {
        accounts[slot.index].messages.tokens(limits.messages, now: now)
    }

    // MARK: Stored bytes

    mutating func spendStored(bytes: Int, in slot: Slot, now: Timestamp) {
        accounts[slot.index].stored.spend(limits.storedBytes, cost: Double(bytes), now: now)
    }

    func stored(in slot: Slot, now: Timestamp) -> Stored {
        let (stored, rate) = (accounts[slot.index].stored, limits.storedBytes)
        if let wait = stored.wait(rate, now: now, beyond: rate.burst) { return .exhausted(wait) }
        return stored.wait(rate, now: now).map { .over($0) } ?? .within
    }

    // MARK: Queries

    /// Counts a query. Returns false, without counting it, if too many are under way.
    mutating func beginInquiry(in slot: Slot) -> Bool {
        guard accounts[slot.index].inquiries < limits.inquiries else { return false }
        hold(slot.index)
        accounts[slot.index].inquiries += 1
        return true
    }

    /// Ends a query that `beginInquiry` has counted. The client may be gone.
    mutating func endInquiry(in slot: Slot, now: Timestamp) {
        accounts[slot.index].inquiries -= 1
        release(slot.index, now: now)
    }
}

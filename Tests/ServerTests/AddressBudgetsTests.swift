import CAllocations
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Budgets of address blocks") struct AddressBudgetsTests {
    private static let limits = AddressBudgets.Limits(
        sockets: 2, hellos: .init(perSecond: 1, burst: 3), files: .init(perSecond: 1, burst: 2),
        views: .init(perSecond: 1, burst: 2),
        messages: .init(perSecond: 10, burst: 100), storedBytes: .init(perSecond: 1, burst: 1000), queries: 2,
        queuedBytes: 1000, queuedBytesOfAll: 2500)

    private let start = Timestamp(milliseconds: 1_000_000)
    private let home = IPAddress("192.0.2.1")!

    /// A connection, which the budgets know only by its identity.
    private final class Line {
        var id: ObjectIdentifier { ObjectIdentifier(self) }
    }

    private func address(_ number: Int) -> IPAddress {
        IPAddress(bytes: [10, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)])!
    }

    // MARK: Sockets and arrivals

    @Test func `an IPv6 block of 64 bits counts as one address`() {
        var budgets = AddressBudgets(Self.limits)
        for text in ["2001:db8::1", "2001:db8::ffff:1"] {
            #expect(budgets.hasRoom(for: IPAddress(text)!))
            _ = budgets.addSocket(of: IPAddress(text)!, now: start)
        }
        #expect(!budgets.hasRoom(for: IPAddress("2001:db8::2")!))
        #expect(budgets.hasRoom(for: IPAddress("2001:db8:0:1::1")!))
        #expect(budgets.count == 2, "one for the block, and one for its /56")
    }

    @Test func `the blocks of one IPv6 customer share four times the limits of a block`() {
        var budgets = AddressBudgets(Self.limits)
        let networks = (0..<20).map { IPAddress("2001:db8:0:\(String($0, radix: 16))::1")! }
        let slots = networks.prefix(8).map { budgets.addSocket(of: $0, now: start) }
        #expect(!budgets.hasRoom(for: networks[9]), "8 sockets, of 2 per block")
        #expect(budgets.hasRoom(for: IPAddress("2001:db8:0:100::1")!))
        budgets.removeSocket(Line().id, in: slots[0], now: start)
        #expect(budgets.hasRoom(for: networks[9]))

        for network in networks.prefix(12) { #expect(budgets.takeHello(of: network, now: start) == nil) }
        #expect(budgets.takeHello(of: networks[12], now: start) == .milliseconds(250), "12 arrivals, of 3 per block")
        #expect(budgets.takeHello(of: home, now: start) == nil)
        for network in networks.prefix(8) { #expect(budgets.takeFile(of: network, now: start) == nil) }
        #expect(budgets.takeFile(of: networks[9], now: start) != nil)

        for slot in slots.dropFirst() { budgets.spendMessages(57, in: slot, now: start) }
        #expect(budgets.messages(in: slots[1], now: start) == 1, "400 for all")
        budgets.spendStored(bytes: 900, in: slots[1], now: start)
        for slot in slots.dropFirst(2) { budgets.spendStored(bytes: 600, in: slot, now: start) }
        #expect(budgets.stored(in: slots[1], now: start) == .over(.seconds(125)))
        for slot in slots.dropFirst().prefix(4) { for _ in 0..<2 { #expect(budgets.beginQuery(in: slot) == true) } }
        #expect(budgets.beginQuery(in: slots[6]) == false)
        budgets.endQuery(in: slots[1], now: start)
        #expect(budgets.beginQuery(in: slots[6]) == true)
    }

    @Test func `the account of a /56 is forgotten after those of its blocks`() {
        var budgets = AddressBudgets(Self.limits)
        for number in 0..<5000 {
            let text = "2001:db8:\(String(number, radix: 16))::1"
            _ = budgets.takeHello(of: IPAddress(text)!, now: start + .milliseconds(Int64(number) * 10))
        }
        #expect(budgets.count < 4300, "a budget is full again after a second, in which 100 arrive")
    }

    @Test func `a socket that is closed makes room, and reconnecting does not refill the budgets`() {
        var budgets = AddressBudgets(Self.limits)
        let line = Line()
        for _ in 0..<3 {
            let slot = budgets.addSocket(of: home, now: start)
            #expect(budgets.takeHello(of: home, now: start) == nil)
            budgets.spendMessage(bytes: 0, in: slot, now: start)
            budgets.removeSocket(line.id, in: slot, now: start)
        }
        #expect(budgets.hasRoom(for: home))
        #expect(budgets.takeHello(of: home, now: start) == .seconds(1))
        let slot = budgets.addSocket(of: home, now: start)
        #expect(budgets.messages(in: slot, now: start) == 97)
    }

    @Test func `files and arrivals do not use up each other's budget`() {
        var budgets = AddressBudgets(Self.limits)
        for _ in 0..<2 { #expect(budgets.takeFile(of: home, now: start) == nil) }
        #expect(budgets.takeFile(of: home, now: start) == .seconds(1))
        for _ in 0..<3 { #expect(budgets.takeHello(of: home, now: start) == nil) }
        #expect(budgets.takeHello(of: home, now: start) == .seconds(1))
        #expect(budgets.takeFile(of: address(1), now: start) == nil)
        #expect(budgets.takeFile(of: home, now: start + .seconds(1)) == nil)
    }

    @Test func `an account whose budget for files is not full is kept`() {
        var limits = Self.limits
        limits.files.perSecond = 0.001
        var budgets = AddressBudgets(limits)
        for _ in 0..<2 { _ = budgets.takeFile(of: home, now: start) }
        for number in 0..<5000 {
            _ = budgets.takeHello(of: address(number), now: start + .milliseconds(Int64(number) * 10))
        }
        #expect(budgets.takeFile(of: home, now: start + .seconds(50)) != nil)
    }

    @Test func `accounts without a connection are forgotten once their budgets are full`() {
        var budgets = AddressBudgets(Self.limits)
        let kept = budgets.addSocket(of: home, now: start)
        for number in 0..<5000 {
            let now = start + .milliseconds(Int64(number) * 10)
            _ = budgets.takeHello(of: address(number), now: now)
        }
        #expect(budgets.count < 2100, "a budget is full again after a second, in which 100 arrive")
        #expect(budgets.messages(in: kept, now: start) == 100)
    }

    @Test func `if nothing is ever full again, the accounts that were not used for longest are forgotten`() {
        var limits = Self.limits
        limits.hellos.perSecond = 0.001
        var budgets = AddressBudgets(limits)
        for number in 0..<(AddressBudgets.maxIdle * 2) {
            _ = budgets.takeHello(of: address(number), now: start + .milliseconds(Int64(number)))
        }
        #expect(budgets.count <= AddressBudgets.maxIdle + 1)
    }

    @Test func `forgotten accounts are used again without a trace of the last address`() {
        var random = SeededGenerator(seed: 7)
        var budgets = AddressBudgets(Self.limits)
        var now = start
        var open: [(line: Line, slot: AddressBudgets.Slot, address: Int)] = []
        for _ in 0..<20_000 {
            now = now + .milliseconds(Int64.random(in: 0...50, using: &random))
            let number = Int.random(in: 0..<3000, using: &random)
            if Bool.random(using: &random), budgets.hasRoom(for: address(number)) {
                let line = Line()
                let slot = budgets.addSocket(of: address(number), now: now)
                _ = budgets.setQueue(of: line.id, to: Int.random(in: 0...2, using: &random), in: slot)
                open.append((line, slot, number))
            } else if let index = open.indices.randomElement(using: &random) {
                let last = open.remove(at: index)
                budgets.removeSocket(last.line.id, in: last.slot, now: now)
            } else {
                _ = budgets.takeHello(of: address(number), now: now)
            }
        }
        for number in 0..<3000 {
            let sockets = open.count { $0.address == number }
            #expect(budgets.hasRoom(for: address(number)) == (sockets < 2), "seed 7, address \(number)")
        }
        for last in open { budgets.removeSocket(last.line.id, in: last.slot, now: now) }
        #expect(budgets.queuedBytes == 0)
    }

    // MARK: Messages

    @Test func `messages of all connections of an address share a budget, and large ones cost more`() {
        var budgets = AddressBudgets(Self.limits)
        let (first, second) = (budgets.addSocket(of: home, now: start), budgets.addSocket(of: home, now: start))
        let other = budgets.addSocket(of: address(1), now: start)
        for _ in 0..<50 { budgets.spendMessage(bytes: 200, in: first, now: start) }
        budgets.spendMessage(bytes: 40 * 4096, in: second, now: start)
        #expect(budgets.messages(in: first, now: start) == 9)
        #expect(budgets.messages(in: other, now: start) == 100)
        for _ in 0..<20 { budgets.spendMessage(bytes: 0, in: first, now: start) }
        #expect(budgets.messages(in: second, now: start) == -11)
        #expect(budgets.takeRequest(of: home, bytes: 0, now: start) == .milliseconds(1200))
        #expect(budgets.messages(in: first, now: start + .seconds(2)) == 9)
    }

    @Test func `messages inside a message cost one each`() {
        var budgets = AddressBudgets(Self.limits)
        let slot = budgets.addSocket(of: home, now: start)
        #expect(budgets.takeRequest(of: home, bytes: 4096, now: start) == nil)
        budgets.spendMessages(255, in: slot, now: start)
        #expect(budgets.messages(in: slot, now: start) == -157)
        #expect(budgets.takeRequest(of: home, bytes: 0, now: start) == .milliseconds(15_800))
    }

    @Test(
        "counting a message allocates nothing",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer, or another C library, has its own allocator"))
    func allocations() {
        var budgets = AddressBudgets(Self.limits)
        let line = Line()
        let slot = budgets.addSocket(of: IPAddress("2001:db8::1")!, now: start)
        func count() {
            budgets.spendMessage(bytes: 200, in: slot, now: start)
            _ = budgets.messages(in: slot, now: start)
            _ = budgets.stored(in: slot, now: start)
            _ = budgets.setQueue(of: line.id, to: 0, in: slot)
        }
        // The runtime allocates the metadata of types at their first use.
        count()
        confab_allocations_begin()
        for _ in 0..<1000 { count() }
        #expect(confab_allocations_end() == 0)
    }

    // MARK: Stored bytes

    @Test func `stored bytes are limited in two steps and refill with time`() {
        var budgets = AddressBudgets(Self.limits)
        let slot = budgets.addSocket(of: home, now: start)
        budgets.spendStored(bytes: 1000, in: slot, now: start)
        #expect(budgets.stored(in: slot, now: start) == .within)
        budgets.spendStored(bytes: 10, in: slot, now: start)
        #expect(budgets.stored(in: slot, now: start) == .over(.seconds(10)))
        budgets.spendStored(bytes: 1000, in: slot, now: start)
        #expect(budgets.stored(in: slot, now: start) == .exhausted(.seconds(10)))
        #expect(budgets.stored(in: slot, now: start + .seconds(10)) == .over(.seconds(1000)))
        #expect(budgets.stored(in: slot, now: start + .seconds(1010)) == .within)
    }

    @Test func `what a change adds to the storage is about what a row and its texts take`() {
        let at = start
        let (ann, bob) = (IdentityID(high: 1, low: 1), IdentityID(high: 1, low: 2))
        #expect(Change.block(owner: ann, blocked: bob, at: at).summary.storedBytes == 128)
        #expect(Change.unblock(owner: ann, blocked: bob).summary.storedBytes == 0)
        let line = ChatLine(from: bob, text: String(repeating: "x", count: 8000), at: at)
        let report = Report(
            match: MatchID(high: 1, low: 1), by: ann, against: bob, reason: "rude",
            lines: Array(repeating: line, count: 20), createdAt: at)
        #expect((160_000...170_000).contains(Change.report(report).summary.storedBytes))
        let push = PushRegistration(
            kind: .web, endpoint: String(repeating: "e", count: 500), p256dh: String(repeating: "p", count: 87),
            auth: String(repeating: "a", count: 22))
        #expect(StoredSize.of(push) == 256 + 609)
    }

    // MARK: Queries

    private final class Accounts: ClientBudgets {
        var budgets = AddressBudgets(AddressBudgetsTests.limits)
        let now = Timestamp(milliseconds: 0)
        func storagePermit(_ slot: AddressBudgets.Slot?) -> StoragePermit { .all }
        func charge(storedBytes: Int, to slot: AddressBudgets.Slot) {}
        func beginQuery(in slot: AddressBudgets.Slot) -> Bool { budgets.beginQuery(in: slot) }
        func endQuery(in slot: AddressBudgets.Slot) { budgets.endQuery(in: slot, now: now) }
    }

    private func question(_ person: UInt64) -> Question {
        Question(
            identity: IdentityID(high: 0, low: person), client: ConnectionID(high: 0, low: person), re: 1,
            .callLog(.init()))
    }

    @Test func `several people of an address share a limit of queries`() {
        let accounts = Accounts()
        var counts = QueryCounts()
        let slot = accounts.budgets.addSocket(of: home, now: accounts.now)
        let other = accounts.budgets.addSocket(of: address(1), now: accounts.now)
        #expect(counts.begin(question(1), in: slot, accounts) == nil)
        #expect(counts.begin(question(2), in: slot, accounts) == nil)
        #expect(counts.begin(question(3), in: slot, accounts)?.code == .rateLimited)
        #expect(counts.begin(question(4), in: other, accounts) == nil)
        #expect(counts.total == 3)
        counts.end(question(1), accounts)
        #expect(counts.begin(question(3), in: slot, accounts) == nil)
        for person: UInt64 in [2, 3, 4] { counts.end(question(person), accounts) }
        #expect(counts.total == 0)
    }

    @Test func `a query ends for its address even if the client is gone`() {
        let accounts = Accounts()
        var counts = QueryCounts()
        let line = Line()
        let slot = accounts.budgets.addSocket(of: home, now: accounts.now)
        #expect(counts.begin(question(1), in: slot, accounts) == nil)
        accounts.budgets.removeSocket(line.id, in: slot, now: accounts.now)
        // The client has dropped, so its socket is not known any more.
        #expect(counts.begin(question(1), in: nil, accounts) == nil)
        #expect(counts.begin(question(1), in: nil, accounts)?.code == .rateLimited)
        counts.end(question(1), accounts)
        counts.end(question(1), accounts)
        let again = accounts.budgets.addSocket(of: home, now: accounts.now)
        #expect(again == slot)
        for person: UInt64 in [2, 3] { #expect(counts.begin(question(person), in: again, accounts) == nil) }
    }

    @Test func `one person has a limit of queries, and all together`() {
        var counts = QueryCounts()
        for _ in 0..<QueryCounts.maxOfPerson { #expect(counts.begin(question(1), in: nil, nil) == nil) }
        #expect(counts.begin(question(1), in: nil, nil)?.code == .rateLimited)
        var person: UInt64 = 1
        while counts.total < QueryCounts.maxOfAll {
            person += 1
            #expect(counts.begin(question(person), in: nil, nil) == nil)
        }
        #expect(counts.begin(question(person + 1), in: nil, nil)?.retryAfter == .seconds(1))
    }

    // MARK: Queues

    @Test func `the largest queue of the address that has too much is dropped`() {
        var budgets = AddressBudgets(Self.limits)
        let (slot, other) = (budgets.addSocket(of: home, now: start), budgets.addSocket(of: address(1), now: start))
        let lines = (0..<4).map { _ in Line() }
        #expect(budgets.setQueue(of: lines[0].id, to: 300, in: slot) == false)
        #expect(budgets.setQueue(of: lines[1].id, to: 500, in: slot) == false)
        #expect(budgets.setQueue(of: lines[2].id, to: 900, in: other) == false)
        #expect(budgets.setQueue(of: lines[3].id, to: 201, in: slot) == true)
        #expect(budgets.queuesToCount(slot).map(\.slot) == [slot])
        let victim = budgets.queueToDrop(slot)
        #expect(victim?.connection == lines[1].id && victim?.slot == slot)
        _ = budgets.setQueue(of: lines[1].id, to: 0, in: slot)
        #expect(budgets.queueToDrop(slot) == nil)
        #expect(budgets.queuedBytes == 300 + 201 + 900)
    }

    @Test func `if all together have too much, the address with the most loses its largest queue`() {
        var budgets = AddressBudgets(Self.limits)
        let lines = (0..<6).map { _ in Line() }
        let slots = (0..<3).map { budgets.addSocket(of: address($0), now: start) }
        for (index, bytes) in [(0, 300), (0, 690), (1, 980), (2, 400)].enumerated() {
            #expect(budgets.setQueue(of: lines[index].id, to: bytes.1, in: slots[bytes.0]) == false)
        }
        #expect(budgets.setQueue(of: lines[4].id, to: 200, in: slots[2]) == true)
        #expect(Set(budgets.queuesToCount(slots[2]).map(\.slot)) == Set(slots))
        #expect(budgets.queueToDrop(slots[2])?.connection == lines[1].id, "not the connection that has just written")
    }

    @Test func `queues are not counted again for every message near the limit`() {
        var budgets = AddressBudgets(Self.limits)
        let (line, slot) = (Line(), budgets.addSocket(of: home, now: start))
        #expect(budgets.setQueue(of: line.id, to: 1001, in: slot) == true)
        _ = budgets.setQueue(of: line.id, to: 990, in: slot)
        budgets.queuesCounted([slot])
        #expect(budgets.setQueue(of: line.id, to: 1040, in: slot) == false)
        #expect(budgets.setQueue(of: line.id, to: 1060, in: slot) == true)
    }
}

@Suite("Pending Socket.IO handshakes") struct PendingHandshakesTests {
    private func address(_ number: Int) -> IPAddress {
        IPAddress(bytes: [10, 0, UInt8(number >> 8), UInt8(number & 255)])!
    }

    @Test func `a few addresses cannot push out the handshakes of others`() {
        var handshakes = PendingHandshakes(maxOfAll: 1000)
        for number in 0..<50 { #expect(handshakes.add("honest \(number)", of: address(100 + number)) == nil) }
        var removed: [String] = []
        for round in 0..<400 {
            for attacker in 0..<13 {
                if let old = handshakes.add("\(attacker) \(round)", of: address(attacker)) { removed.append(old) }
            }
        }
        #expect(removed.allSatisfy { !$0.hasPrefix("honest") })
        #expect(handshakes.count == 1000)
        #expect(removed.count == 50 + 13 * 400 - 1000)
        #expect(removed.first == "0 0" || removed.first?.hasSuffix(" 0") == true, "the oldest goes first")
    }

    @Test func `a used handshake is not removed for another, and an IPv6 block counts as one address`() {
        var handshakes = PendingHandshakes(maxOfAll: 4)
        let block = ["2001:db8::1", "2001:db8::2", "2001:db8::3"].compactMap { IPAddress($0) }
        #expect(handshakes.add("other", of: address(2)) == nil)
        for (name, address) in zip(["a", "b", "c"], block) { #expect(handshakes.add(name, of: address) == nil) }
        handshakes.remove("a", of: block[0])
        #expect(handshakes.add("d", of: address(3)) == nil)
        #expect(handshakes.add("e", of: address(4)) == "b")
        handshakes.remove("b", of: block[1])
        #expect(handshakes.count == 4)
    }

    @Test func `handshakes that are used leave nothing behind`() {
        var handshakes = PendingHandshakes(maxOfAll: 100)
        for number in 0..<10_000 {
            #expect(handshakes.add("\(number)", of: address(number % 500)) == nil)
            handshakes.remove("\(number)", of: address(number % 500))
            handshakes.remove("\(number)", of: address(number % 500))
        }
        #expect(handshakes.count == 0)
        for number in 0..<100 { #expect(handshakes.add("x\(number)", of: address(number)) == nil) }
        #expect(handshakes.add("y", of: address(7)) == "x7", "this address has two, all others have one")
        #expect(handshakes.add("z", of: address(1000)) == "x0", "all have one, so the oldest goes")
    }
}

import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Polls storage for bans that the command `confab ban`, which is a separate process, has added or removed.
struct BanWatch: Service {
    let gateway: NIOLoopBound<Gateway>
    let storage: any Storage
    let live: LiveConfiguration
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var counter: Int64?
            while !Task.isCancelled {
                do {
                    let now = try await storage.changeCounter()
                    if now != counter { try await reload() }
                    counter = now
                } catch let error as StorageError where error.code == .fenced {
                    // Stop without waiting for the next change.
                    let gateway = gateway
                    gateway.eventLoop.execute { gateway.value.runner.writer.stop(because: error) }
                } catch {
                    logger.error("Could not read the bans", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: live.current.storage.pollInterval)
            }
        }
    }

    private func reload() async throws { try await gateway.applyBans(of: storage) }
}

extension NIOLoopBound<Gateway> {
    /// Applies the stored bans now.
    func applyBans(of storage: any Storage) async throws {
        let gateway = self
        let number = try await eventLoop.submit { gateway.value.beginReadingBans() }.get()
        // Read bans that have ended too. Whether a ban has ended is decided when it is applied, because the clock may
        // be corrected later.
        let bans = try await storage.bans(at: .distantPast)
        try await eventLoop.submit { gateway.value.update(bans: bans, read: number) }.get()
    }
}

extension BanSubject {
    /// Parses an identity (32 hexadecimal digits), an IP address or a block of addresses. Returns nil for any other text.
    ///
    /// Limits and bans treat a /64 as one client. A ban of a single IPv6 address or of a smaller block would be ineffective, so
    /// such text means its whole /64.
    public init?(text: String) {
        if let identity = IdentityID(text) {
            self = .identity(identity)
        } else if let block = CIDRBlock(text) {
            let isLone = !block.network.isIPv4 && block.prefixLength > 64
            self = .address("\(isLone ? block.network.limitingBlock : block)")
        } else {
            return nil
        }
    }

    /// The subject as ``init(text:)`` reads it.
    public var text: String {
        switch self {
        case .identity(let id): "\(id)"
        case .address(let text): text
        }
    }
}

extension Storage {
    /// Returns everything to ban because of a report: the reported identity, the account to which it is linked, and the address
    /// of the reported person, if the report has it. Throws a ``StorageError`` if it cannot read them.
    ///
    /// The reported identity may have been linked to an account since the report, as one of its devices. A ban of the device
    /// would miss the account's other devices, and a ban of the account alone would no longer apply after the device is unlinked.
    public func banSubjects(of report: Report) async throws -> [BanSubject] {
        var subjects = [BanSubject.identity(report.against)]
        if case .person(let owner) = try await resolve(report.against) { subjects.append(.identity(owner)) }
        if !report.againstAddress.isEmpty {
            guard let address = BanSubject(text: report.againstAddress) else {
                throw SQLRow.unreadable("againstAddress")
            }
            subjects.append(address)
        }
        return subjects
    }
}

/// The bans of addresses and identities, as last read from storage.
struct GatewayBans {
    fileprivate var all: [Ban] = []
    fileprivate var addresses = AddressBans()
    fileprivate var identities = IdentityBans()
    /// Numbers of the last read that has begun, and of the last one that was applied.
    fileprivate var (begun, applied) = (0, 0)
}

/// Refuses banned addresses and people who connect, and disconnects those who are connected. `Hub+Bans` implements
/// the effects on people.
extension Gateway {
    /// Returns the error for a connection or request from this address if the address is banned, otherwise nil.
    /// `Gateway.admit` throws it.
    func banError(of address: IPAddress) -> WireError? {
        bans.addresses.ban(of: address, at: runner.wallNow).map { .banned($0, now: runner.wallNow) }
    }

    /// Returns the error for a client that has sent `hello` if the person or the person's device is banned, otherwise nil. A
    /// ban in memory may be newer than the record from storage.
    func banError(of guest: HelloValidator.Guest, _ record: PersonRecord) -> WireError? {
        bans.identities.active(stored: record.ban, [guest.identity.id, guest.device], at: runner.wallNow)
            .map { .banned($0, now: runner.wallNow) }
    }

    /// Returns the number of a read of the bans, which begins now.
    func beginReadingBans() -> Int {
        bans.begun += 1
        return bans.begun
    }

    /// Replaces the bans. The command `confab ban`, which is a separate process, may have changed them in storage.
    ///
    /// - Parameter number: from ``beginReadingBans()``. Nothing happens if a read that began later was applied before: it has read
    ///   all that this one has.
    func update(bans: [Ban], read number: Int) {
        guard number > self.bans.applied else { return }
        self.bans.applied = number
        // The bans may be unchanged, because they are read again whenever another process has changed anything in the
        // database.
        guard bans != self.bans.all else { return }
        self.bans.all = bans
        self.bans.addresses = AddressBans(bans)
        // Submit only the difference. With thousands of bans, submitting all of them again would block the loop for a
        // while.
        let difference = self.bans.identities.replace(with: bans)
        for identity in difference.lifted { runner.submit(.unbanned(identity)) }
        for ban in difference.added { runner.submit(.banned(ban)) }
        for connection in registeredConnections {
            if let error = banError(of: connection.address) { connection.expel(error, .forbidden) }
        }
    }
}

/// The active bans of identities.
struct IdentityBans: Equatable, Sendable {
    /// The difference between two lists of bans. The hub applies it to the people in memory.
    struct Difference: Equatable, Sendable {
        /// New bans, and bans that replace another ban of the same identity.
        var added: [Ban] = []
        /// The identities that are no longer banned.
        var lifted: [IdentityID] = []
    }

    private var bans: [IdentityID: Ban] = [:]

    /// Replaces all bans and returns what has changed. Ignores bans of addresses.
    mutating func replace(with list: [Ban]) -> Difference {
        var difference = Difference()
        var bans: [IdentityID: Ban] = [:]
        for ban in list {
            guard case .identity(let identity) = ban.subject else { continue }
            bans[identity] = ban
            if self.bans[identity] != ban { difference.added.append(ban) }
        }
        difference.lifted = self.bans.keys.filter { bans[$0] == nil }.sorted()
        self.bans = bans
        return difference
    }

    /// Returns the first active ban of a person: the stored one, or one in memory of these identities, which may be
    /// newer. Returns nil if none is active.
    ///
    /// Checks all of them, because an expired ban must not hide an active one: the list in memory can contain expired
    /// bans, since it is read again only when another process changes it.
    func active(stored: Ban?, _ identities: [IdentityID], at now: Timestamp) -> Ban? {
        let candidates = [stored] + identities.map { bans[$0] }
        return candidates.lazy.compactMap { $0 }.first { $0.isActive(at: now) }
    }
}

/// The bans of addresses, indexed by prefix length. A lookup takes one step per distinct prefix length, no matter how
/// many bans there are.
struct AddressBans: Equatable, Sendable {
    /// The address family and prefix length of a block. The key of `bans`.
    private struct Length: Hashable {
        var isIPv4: Bool
        var bits: Int
    }

    private var bans: [Length: [IPAddress: Ban]] = [:]

    /// Indexes the address bans by their blocks. Ignores identity bans, and address bans whose block cannot be parsed.
    init(_ bans: [Ban] = []) {
        for ban in bans {
            guard case .address(let text) = ban.subject, let block = CIDRBlock(text) else { continue }
            self.bans[Length(isIPv4: block.network.isIPv4, bits: block.prefixLength), default: [:]][block.network] = ban
        }
    }

    /// Returns a ban that covers this address at `now`, if there is one.
    func ban(of address: IPAddress, at now: Timestamp) -> Ban? {
        for (length, bans) in bans where length.isIPv4 == address.isIPv4 {
            let network = CIDRBlock(address: address, prefixLength: length.bits).network
            if let ban = bans[network], ban.isActive(at: now) { return ban }
        }
        return nil
    }
}

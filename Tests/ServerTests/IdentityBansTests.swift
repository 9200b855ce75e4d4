import Signaling
import Testing
import Wire

@testable import Server

@Suite("Bans of identities") struct IdentityBansTests {
    private let start = Timestamp(milliseconds: 1_000_000)
    private var (ann, bob, eve) = (
        IdentityID(high: 0, low: 1), IdentityID(high: 0, low: 2), IdentityID(high: 0, low: 3)
    )

    private func ban(_ identity: IdentityID, _ reason: String = "", until end: Timestamp? = nil) -> Ban {
        Ban(subject: .identity(identity), reason: reason, createdAt: start, expiresAt: end)
    }

    @Test func `a new list of bans changes only what is different`() {
        var bans = IdentityBans()
        let address = Ban(subject: .address("192.0.2.1"), reason: "", createdAt: start)
        #expect(bans.replace(with: [ban(ann), address, ban(bob)]) == .init(added: [ban(ann), ban(bob)]))
        #expect(bans.replace(with: [ban(ann), address, ban(bob)]) == .init())
        #expect(bans.replace(with: [ban(ann), ban(bob), ban(eve)]) == .init(added: [ban(eve)]))
        #expect(bans.replace(with: [ban(ann, "again"), ban(eve)]) == .init(added: [ban(ann, "again")], lifted: [bob]))
        #expect(bans.replace(with: []) == .init(lifted: [ann, eve]))
    }

    @Test func `an expired ban does not hide an active one`() {
        var bans = IdentityBans()
        let (short, long) = (ban(ann, until: start + .seconds(10)), ban(bob))
        _ = bans.replace(with: [short, long])
        #expect(bans.active(stored: nil, [ann, bob], at: start) == short)
        #expect(bans.active(stored: nil, [ann, bob], at: start + .seconds(10)) == long)
        #expect(bans.active(stored: short, [bob, ann], at: start + .seconds(10)) == long)
        #expect(bans.active(stored: short, [ann, eve], at: start + .seconds(10)) == nil)
    }
}

import Logging
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Queries of the hub")
struct QueryTests: StorageFixtures {
    /// A push notifier that normalizes registrations and sends nothing.
    private struct Alarm: PushNotifier {
        var vapidKey: String? { nil }

        func check(_ registration: PushRegistration) throws(WireError) -> PushRegistration {
            guard registration.endpoint != "bad" else { throw WireError(.pushInvalid, "No.") }
            var kept = registration
            kept.endpoint = kept.endpoint.lowercased()
            return kept
        }

        func wake(_ identity: IdentityID, _ notice: PushNotice) {}
    }

    private func finding(
        _ query: Query, _ storage: any Storage, pushNotifier: (any PushNotifier)? = Alarm(),
        device: IdentityID? = nil
    ) async -> Finding {
        let handler = QueryHandler(
            storage: storage, pushNotifier: pushNotifier,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let question = Question(
            identity: alice, client: ConnectionID(high: 0, low: 1), re: 1, query, device: device)
        return await handler.finding(for: question, now: now)
    }

    private func code(_ finding: Finding) -> WireError.Code? {
        if case .refused(let error) = finding { error.code } else { nil }
    }

    @Test func `a push endpoint is stored as validated, with its device, until it is removed`() async throws {
        let storage = try SQLiteStorage.inMemory()
        try await storage.commit([.linked(LinkedDevice(identity: bob, label: "Phone", linkedAt: now), to: alice)])
        let app = PushRegistration(kind: .apns, endpoint: "AB")
        #expect(await finding(.register(app), storage, device: bob) == .push(isReachable: true))
        let held = try await storage.everything(of: alice, at: now).endpoints
        #expect(held.map(\.registration.endpoint) == ["ab"])
        #expect(held.map(\.device) == [bob])
        #expect(await finding(.wakeable, storage) == .push(isReachable: true))
        var taken = PushVerb.Unregister()
        taken.endpoint = "AB"
        #expect(await finding(.unregister(taken), storage) == .push(isReachable: false))
        #expect(try await storage.pushEndpoints(of: alice) == [])
        #expect(await finding(.wakeable, storage) == .push(isReachable: false))
    }

    @Test func `an invalid push endpoint is rejected with its code`() async throws {
        let storage = try SQLiteStorage.inMemory()
        let bad = Query.register(PushRegistration(kind: .apns, endpoint: "bad"))
        #expect(code(await finding(bad, storage)) == .pushInvalid)
        #expect(code(await finding(bad, storage, pushNotifier: nil)) == .pushNotAllowed)
    }

    @Test func `the end of an endpoint with a NUL is refused, because no endpoint has one`() async throws {
        try await withStorage { storage in
            let removal = Query.unregister(PushVerb.Unregister(endpoint: "https://push.example/\0"))
            #expect(code(await finding(removal, storage)) == .pushInvalid)
        }
    }

    @Test func `a disk failure is a temporary error`() async throws {
        try await withStorage { storage in
            try await storage.close()
            guard case .refused(let error) = await finding(.callLog(.init()), storage) else {
                Issue.record("the query was answered")
                return
            }
            #expect(error.code == .internalError && error.retryable)
        }
    }

    @Test func `an answer is outdated if its identities changed after the query`() {
        var changes = RecentChanges<IdentityID> { $0.summary.provenIdentity.map { [$0] } ?? [] }
        let asked = changes.number
        #expect(!changes.concern([alice], since: asked))
        changes.begin(.unlinked(alice))
        #expect(changes.concern([bob, alice], since: asked), "the change is not stored yet")
        #expect(!changes.concern([bob], since: asked))
        changes.settle([.unlinked(alice)])
        #expect(changes.concern([alice], since: asked))
        #expect(!changes.concern([alice], since: changes.number))
        changes.begin(block(alice, bob))
        changes.settle([block(alice, bob)])
        #expect(!changes.concern([alice], since: changes.number))
        let before = changes.number
        for number in 0..<5000 {
            changes.begin(.retired(person(number)))
            changes.settle([.retired(person(number))])
        }
        #expect(changes.concern([bob], since: before), "more changes happened than are tracked")
        #expect(!changes.concern([bob], since: changes.number))
    }
}

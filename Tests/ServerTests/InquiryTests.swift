import Logging
import Signaling
import Testing
import Wire

@testable import Server

@Suite("What the rules ask of the server")
struct InquiryTests: StorageFixtures {
    /// Keeps what it is given in another form, and wakes nobody.
    private struct Alarm: Waking {
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
        _ inquiry: Inquiry, _ storage: MemoryStorage, waking: (any Waking)? = Alarm(), device: IdentityID? = nil
    ) async -> Finding {
        let handler = InquiryHandler(
            storage: storage, waking: waking, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let question = Question(
            identity: alice, client: ConnectionID(high: 0, low: 1), re: 1, inquiry, device: device)
        return await handler.finding(for: question, now: now)
    }

    private func code(_ finding: Finding) -> WireError.Code? {
        if case .refused(let error) = finding { error.code } else { nil }
    }

    @Test func `a way to be woken is kept as it was judged, with its device, until it is taken back`() async throws {
        let storage = MemoryStorage()
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

    @Test func `what cannot wake anybody is refused with its code`() async {
        let storage = MemoryStorage()
        let bad = Inquiry.register(PushRegistration(kind: .apns, endpoint: "bad"))
        #expect(code(await finding(bad, storage)) == .pushInvalid)
        #expect(code(await finding(bad, storage, waking: nil)) == .pushNotAllowed)
    }

    @Test func `a disk that fails is an error that may pass`() async {
        let storage = MemoryStorage()
        await storage.close()
        guard case .refused(let error) = await finding(.callLog(.init()), storage) else {
            Issue.record("it was answered")
            return
        }
        #expect(error.code == .internalError && error.retryable)
    }

    @Test func `an answer is out of date when its identities changed after the question`() {
        var changes = IdentityChanges()
        let asked = changes.number
        #expect(!changes.concern([alice], since: asked))
        changes.begin(.unlinked(alice))
        #expect(changes.concern([bob, alice], since: asked), "storage does not know yet")
        #expect(!changes.concern([bob], since: asked))
        changes.settle()
        #expect(changes.concern([alice], since: asked))
        #expect(!changes.concern([alice], since: changes.number))
        changes.begin(block(alice, bob))
        changes.settle()
        #expect(!changes.concern([alice], since: changes.number))
        let before = changes.number
        for number in 0..<5000 {
            changes.begin(.retired(person(number)))
            changes.settle()
        }
        #expect(changes.concern([bob], since: before), "so many that not all are kept in mind")
        #expect(!changes.concern([bob], since: changes.number))
    }
}

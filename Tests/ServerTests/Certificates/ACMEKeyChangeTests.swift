import Crypto
import Testing

@testable import Server

@Suite("The change of an account's key") struct ACMEKeyChangeTests {
    private static let oldKey = P256.Signing.PrivateKey()
    private static let newKey = P256.Signing.PrivateKey()

    private static func run(
        answer: (ACMERequest) -> ACMEKeyChange.Input
    ) throws -> Result<ACMEKeyChange.Outcome, ACMEFailure> {
        var change = ACMEKeyChange(directory: FakeAuthority.directory, oldKey: oldKey, newKey: newKey)
        var output = change.handle(.start)
        while case .send(let request)? = output { output = change.handle(answer(request)) }
        guard case .done(let result)? = output else { throw NoResult() }
        #expect(change.handle(.start) == nil && change.handle(.lost("late")) == nil)
        return result
    }

    private static func run(
        at authority: inout FakeAuthority
    ) throws -> Result<ACMEKeyChange.Outcome, ACMEFailure> {
        try run { .received(authority.respond(to: $0, published: [])) }
    }

    struct NoResult: Error {}

    @Test("both keys sign the change, and the authority finds no fault")
    func change() throws {
        var authority = try FakeAuthority()
        authority.knownKey = Self.oldKey.publicKey
        #expect(try Self.run(at: &authority).get() == .changed)
        #expect(authority.violations == [])
        #expect(authority.requests == ["directory", "new-nonce", "new-account", "new-account", "key-change"])
        #expect(authority.knownKey?.rawRepresentation == Self.newKey.publicKey.rawRepresentation)
    }

    @Test("a change whose response was lost is found by the next attempt")
    func lostResponse() throws {
        var authority = try FakeAuthority()
        authority.knownKey = Self.oldKey.publicKey
        let lost = try Self.run { request in
            let response = authority.respond(to: request, published: [])
            return request.url.hasSuffix("key-change") ? .lost("connection reset") : .received(response)
        }
        #expect(throws: ACMEFailure.self) { try lost.get() }
        #expect(try Self.run(at: &authority).get() == .alreadyChanged)
        #expect(authority.violations == [])
    }

    @Test("without an account the authority has nothing to change")
    func noAccount() throws {
        var authority = try FakeAuthority()
        #expect(try Self.run(at: &authority).get() == .noAccount)
        #expect(!authority.requests.contains("key-change"))
    }

    @Test("a refused nonce is replaced, but not forever")
    func badNonce() throws {
        var authority = try FakeAuthority()
        authority.knownKey = Self.oldKey.publicKey
        let refusal = FakeAuthority.problem(400, "badNonce", "old nonce")
        authority.replaced["key-change"] = [refusal, refusal]
        #expect(try Self.run(at: &authority).get() == .changed)
        authority = try FakeAuthority()
        authority.knownKey = Self.oldKey.publicKey
        authority.replaced["key-change"] = Array(repeating: refusal, count: 100)
        let result = try Self.run(at: &authority)
        guard case .failure(let failure) = result else {
            Issue.record("the change succeeded")
            return
        }
        #expect(failure.code == .timedOut && authority.requests.count <= ACMEKeyChange.maxRequests)
    }

    @Test("a refusal, an authority that is down, and one without key changes fail with a sentence")
    func failures() throws {
        var authority = try FakeAuthority()
        authority.knownKey = Self.oldKey.publicKey
        authority.replaced["key-change"] = [FakeAuthority.problem(409, "conflict", "the key is in use")]
        #expect(try Self.code(Self.run(at: &authority)) == .refused)
        #expect(try Self.code(Self.run { _ in .lost("connection refused") }) == .unreachable)
        var old = try FakeAuthority()
        let url = FakeAuthority.base
        old.replaced["directory"] = [
            FakeAuthority.json(
                200, #"{"newNonce":"\#(url)/n","newAccount":"\#(url)/a","newOrder":"\#(url)/o"}"#)
        ]
        #expect(try Self.code(Self.run(at: &old)) == .refused)
    }

    @Test("no answer at any step traps or continues forever", arguments: ["directory", "new-account", "key-change"])
    func hostile(step: String) throws {
        let answers = [
            FakeAuthority.json(200, ""), FakeAuthority.json(200, "[]"), FakeAuthority.json(200, "{}"),
            FakeAuthority.json(302, "", ["location": FakeAuthority.directory]), ACMEResponse(status: 0),
            FakeAuthority.json(200, "{}", ["location": "file:///etc/passwd"]), ACMEResponse(status: 503),
        ]
        for answer in answers {
            var authority = try FakeAuthority()
            authority.knownKey = Self.oldKey.publicKey
            authority.replaced[step] = Array(repeating: answer, count: 100)
            _ = try Self.run(at: &authority)
            #expect(authority.requests.count <= ACMEKeyChange.maxRequests)
        }
    }

    private static func code(_ result: Result<ACMEKeyChange.Outcome, ACMEFailure>) -> ACMEFailure.Code? {
        if case .failure(let failure) = result { failure.code } else { nil }
    }
}

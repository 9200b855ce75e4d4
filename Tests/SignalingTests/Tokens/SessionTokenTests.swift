import Signaling
import TestSupport
import Testing
import Wire

@Suite struct SessionTokenTests {
    private let stage = Stage()
    private let session: SessionID

    init() { session = stage.room() }

    private func verify(_ token: String, for session: SessionID? = nil) throws(WireError) -> SessionGrant {
        try stage.project.verifySessionToken(token, for: session ?? self.session, now: stage.now)
    }

    private func refusal(_ token: String, for session: SessionID? = nil) -> WireError.Code? {
        do throws(WireError) {
            _ = try verify(token, for: session)
            return nil
        } catch {
            return error.code
        }
    }

    private func claims(_ changes: [String: String?] = [:]) -> String {
        Forge.sessionClaims(session, at: stage.now, changes)
    }

    @Test(arguments: Role.allCases) func aTokenGrantsItsRoleAndData(_ role: Role) throws {
        let grant = try verify(stage.token(session, role, data: "data"))
        #expect((grant.session, grant.mediaMode, grant.role, grant.data) == (session, .relayed, role, "data"))
        #expect(grant.match == nil)
        let match = MatchID.random(using: &stage.generator)
        #expect(try verify(stage.token(session, match: match)).match == match)
    }

    /// The token was computed with Python's `hmac` and `json`, with the claims of OpenTok's SDK (a fractional nonce, a
    /// layout list).
    @Test func aTokenMadeByAnIndependentImplementationVerifies() throws {
        let session = try #require(
            SessionID("1_MX40NTAwMDAwMX5-MTc5MDAwMDAwMDAwMH5BUUlEQkFVR0J3Z0pBTGdWZjF3ekdGZnp-fn4")
        )
        let token =
            "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJpc3MiOiI0NTAwMDAwMSIsImlzdCI6InByb2plY3QiLCJpYXQiOjE3OTAwMDAwMDAsImV4c"
            + "CI6MTc5MDAwMzYwMCwibm9uY2UiOjAuODE1NDc4Miwicm9sZSI6Im1vZGVyYXRvciIsInNjb3BlIjoic2Vzc2lvbi5jb25uZWN0Iiwic2Vz"
            + "c2lvbl9pZCI6IjFfTVg0ME5UQXdNREF3TVg1LU1UYzVNREF3TURBd01EQXdNSDVCVVVsRVFrRlZSMEozWjBwQlRHZFdaakYzZWtkR1pucC1"
            + "mbjQiLCJjb25uZWN0aW9uX2RhdGEiOiJHcmFjZSIsImluaXRpYWxfbGF5b3V0X2NsYXNzX2xpc3QiOiIifQ.jZAST6-6XCQeUAPKUR3d0bu"
            + "RZV_4C24qDOGeWnTc0vY"
        let grant = try verify(token, for: session)
        #expect(grant.role == .moderator)
        #expect(grant.data == "Grace")
    }

    @Test(arguments: [
        #"{"alg":"none"}"#, #"{"alg":"None","typ":"JWT"}"#, #"{"alg":"HS384"}"#, #"{"alg":"HS512"}"#,
        #"{"alg":"RS256"}"#,
        #"{"alg":"ES256"}"#, #"{"alg":"hs256"}"#, #"{"typ":"JWT"}"#, #"{"alg":"HS256","alg":"none"}"#,
        #"{"alg":["HS256"]}"#, "[]",
        "", #"{"alg":null}"#, #"{"alg":"HS256","crit":["exp"]}"#, #"{"alg":"HS256\u0000"}"#, #"{"alg":""}"#, "null",
        #"{"alg":{"HS256":1}}"#, #"{"alg":"none","alg":"HS256"}"#, #""HS256""#, "{", #"{"alg":"HS256"}x"#,
    ])
    func onlyHS256IsAccepted(_ header: String) {
        #expect(refusal(Forge.token(claims(), header: header)) == .tokenMalformed)
    }

    @Test(arguments: [
        #""kid":"../../../../dev/null""#, #""kid":"/etc/passwd\u0000.pem""#, #""kid":"' UNION SELECT 'x""#,
        #""jku":"http://127.0.0.1:9/keys.json""#, #""x5u":"http://127.0.0.1:9/a.pem""#, #""x5c":["AAAA"]"#,
        #""jwk":{"kty":"oct","k":""}"#,
    ])
    func aHeaderNeverChoosesTheKey(_ member: String) {
        let header = #"{"alg":"HS256",\#(member)}"#
        #expect(refusal(Forge.token(claims(), header: header, secret: "")) == .tokenSignature)
        #expect(refusal(Forge.token(claims(), header: header)) == nil)
    }

    @Test func aTokenWithoutASignatureIsRefused() {
        let parts = Forge.token(claims()).split(separator: ".")
        #expect(refusal(parts[0] + "." + parts[1] + ".") == .tokenSignature)
        #expect(refusal(parts[0] + "." + parts[1]) == .tokenMalformed)
        #expect(refusal(Forge.base64URL(#"{"alg":"none"}"#) + "." + parts[1] + ".") == .tokenMalformed)
    }

    @Test func wrongAndTruncatedSignaturesAreRefused() {
        let token = Forge.token(claims())
        #expect(refusal(Forge.token(claims(), secret: String(Stage.secret.reversed()))) == .tokenSignature)
        #expect(refusal(String(token.dropLast(2))) != nil)
        #expect(refusal(token + "AAAA") == .tokenSignature)
        for text in [
            token + ".", token + "=", " " + token, token + "\n", token + "\u{0}", token.replacing("e", with: "е"),
        ] {
            #expect(refusal(text) == .tokenMalformed, "\(text)")
        }
    }

    @Test func anyCharacterChangedIsRefused() {
        let token = Forge.token(claims())
        for at in token.utf8.indices.map({ token.utf8.distance(from: token.utf8.startIndex, to: $0) }) {
            var bytes = Array(token.utf8)
            bytes[at] = bytes[at] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(refusal(String(decoding: bytes, as: UTF8.self)) != nil, "byte \(at)")
        }
    }

    @Test func aTokenExpiresAtItsExactMillisecond() {
        let token = stage.token(session, lifetime: .seconds(10))
        stage.pass(.milliseconds(9999))
        #expect(refusal(token) == nil)
        stage.pass(.milliseconds(1))
        #expect(refusal(token) == .tokenExpired)
    }

    @Test func invalidExpiriesAreRefused() {
        let now = stage.now.seconds
        #expect(refusal(Forge.token(claims(["exp": "\(now)"]))) == .tokenExpired)
        #expect(refusal(Forge.token(claims(["exp": "-1"]))) == .tokenExpired)
        #expect(refusal(Forge.token(claims(["exp": "0"]))) == .tokenExpired)
        let beyond = ["9223372036854775807", "99999999999999999999999999", "1e300", "-1e300"]
        for odd in [nil, "\"\(now + 60)\"", "null", "true", "[]", "{}", "[\(now + 60)]"] + beyond {
            #expect(refusal(Forge.token(claims(["exp": odd]))) == .tokenMalformed, "\(odd ?? "none")")
        }
        #expect(refusal(Forge.token(claims(["exp": "\(now + 60).5"]))) == nil, "a NumericDate may have a fraction")
    }

    @Test func tokensFromTheFutureAreRefusedBeyondTheClockSkew() {
        let now = stage.now.seconds
        for claim in ["iat", "nbf"] {
            #expect(refusal(Forge.token(claims([claim: "\(now + 60)"]))) == nil)
            #expect(refusal(Forge.token(claims([claim: "\(now + 61)"]))) == .tokenNotYet)
            #expect(refusal(Forge.token(claims([claim: "9223372036854775807"]))) != nil)
            #expect(refusal(Forge.token(claims([claim: "\"tomorrow\""]))) == .tokenMalformed)
        }
        #expect(refusal(Forge.token(claims(["iat": nil]))) == nil)
    }

    @Test func tokensExpireWithinThirtyDays() {
        let now = stage.now.seconds
        let day: Int64 = 24 * 3600
        #expect(refusal(Forge.token(claims(["exp": "\(now + 30 * day)"]))) == nil)
        #expect(refusal(Forge.token(claims(["exp": "\(now + 3653 * day)"]))) == .tokenLifetime)
        #expect(refusal(Forge.token(claims(["exp": "\(now + 3653 * day)", "iat": nil]))) == .tokenLifetime)
        #expect(
            refusal(Forge.token(claims(["exp": "\(now + 10 * day)", "iat": "\(now - 3653 * day)"]))) == .tokenLifetime)
        #expect(refusal(Forge.token(claims(["exp": "\(now + 31 * day)", "iat": "\(now + 60)"]))) == .tokenLifetime)
        #expect(refusal(Forge.token(claims(["exp": "9223372036854775"]))) == .tokenLifetime)
    }

    @Test func claimsNamedTwiceAreRefused() {
        let twice = claims().dropLast() + #","role":"moderator"}"#
        #expect(refusal(Forge.token(String(twice))) == .tokenMalformed)
        let (inside, deep) = (claims().dropFirst().dropLast(), String(repeating: "[", count: 1500))
        for text in [
            "[]", "", "\"x\"", "[\(claims())]", "\(claims()) {}", "\u{FEFF}\(claims())", "{/**/\(inside)}",
            "{\(inside),}",
            "{\(inside),\"sc\\u006fpe\":\"user.connect\"}", "{\(inside),\"x\":\"\u{0}\"}", "{\(inside),\"x\":\(deep)}",
            "{\(inside),\"x\":\(deep)\(deep.map { _ in "]" }.joined())}",
        ] { #expect(refusal(Forge.token(text)) == .tokenMalformed, "\(text.prefix(300))") }
    }

    @Test func aTokenForAnotherSessionOrNoneIsRefused() {
        let other = stage.room()
        #expect(refusal(stage.token(other)) == .tokenSession)
        #expect(refusal(Forge.token(claims(["session_id": nil]))) == .tokenSession)
        #expect(refusal(Forge.token(claims(["session_id": "5"]))) == .tokenSession)
        #expect(refusal(Forge.token(claims(["session_id": "\"a b\""]))) == .tokenSession)
    }

    @Test func aTokenForAForgedSessionIDIsRefused() throws {
        let forged = try #require(SessionID("1_forged"))
        #expect(refusal(Forge.token(claims(["session_id": "\"1_forged\""])), for: forged) == .sessionInvalid)
    }

    @Test func aTokenOfAnotherProjectKindOrScopeIsRefused() {
        #expect(refusal(Forge.token(claims(["iss": "\"45000002\""]))) == .tokenProject)
        #expect(refusal(Forge.token(claims(["iss": "45000001"]))) == .tokenProject)
        #expect(refusal(Forge.token(claims(["ist": "\"account\""]))) == .tokenScope)
        #expect(refusal(Forge.token(claims(["scope": "\"user.connect\""]))) == .tokenScope)
        #expect(refusal(Forge.token(claims(["scope": nil]))) == .tokenScope)
        #expect(refusal(stage.project.makeUserToken(user: "ada", name: nil, now: stage.now)) == .tokenScope)
    }

    @Test func aMissingRoleIsPublisherAndUnknownOnesAreRefused() throws {
        #expect(try verify(Forge.token(claims(["role": nil]))).role == .publisher)
        for role in ["\"admin\"", "\"Moderator\"", "\"\"", "7", "[\"moderator\"]"] {
            #expect(refusal(Forge.token(claims(["role": role]))) == .tokenRole, "\(role)")
        }
    }

    @Test func connectionDataIsLimitedToAThousandCharacters() throws {
        #expect(try verify(stage.token(session, data: String(repeating: "\u{1F600}", count: 1000))).data.count == 1000)
        #expect(refusal(stage.token(session, data: String(repeating: "a", count: 1001))) == .tokenMalformed)
    }

    @Test func tokensOverEightKilobytesAreRefused() {
        let long = Forge.token(claims(["padding": "\"" + String(repeating: "x", count: 7000) + "\""]))
        #expect(long.utf8.count > Limits.token)
        #expect(refusal(long) == .tokenMalformed)
        #expect(refusal(String(repeating: "A", count: 1_000_000)) == .tokenMalformed)
    }

    @Test func theMatchClaimMustBeAnID() {
        #expect(refusal(Forge.token(claims(["match": "\"x\""]))) == .tokenMalformed)
        #expect(refusal(Forge.token(claims(["match": "5"]))) == .tokenMalformed)
    }

    @Test(arguments: ["", ".", "..", "...", "a.b.c", "a.b.c.d", "é.é.é", " ", "null"])
    func malformedTokensAreRefused(_ text: String) {
        #expect(refusal(text) == .tokenMalformed)
    }
}

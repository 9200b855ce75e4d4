import Signaling
import TestSupport
import Testing
import Wire

@Suite struct IdentityTests {
    private let stage = Stage()

    private func refusal(ofUser token: String) -> WireError.Code? {
        do throws(WireError) {
            _ = try stage.project.verifyUserToken(token, now: stage.now)
            return nil
        } catch {
            return error.code
        }
    }

    private func refusal(ofSecret secret: String, by project: Project? = nil) -> WireError.Code? {
        do throws(WireError) {
            _ = try (project ?? stage.project).verifyIdentitySecret(secret)
            return nil
        } catch {
            return error.code
        }
    }

    private func user(_ changes: [String: String?] = [:]) -> String {
        Forge.token(Forge.userClaims(at: stage.now, changes))
    }

    @Test func aUserTokenNamesTheSameIdentityEveryTime() throws {
        let project = stage.project
        let first = try project.verifyUserToken(
            project.makeUserToken(user: "ada", name: "Ada", now: stage.now), now: stage.now)
        let again = try project.verifyUserToken(user(), now: stage.now)
        #expect(first.id == again.id)
        #expect(first.name == "Ada")
        #expect(again.name == nil)
        #expect(first.id != project.identity(ofUser: "Ada"))
    }

    @Test func anIdentityBelongsToAProject() throws {
        let other = try #require(Project(apiKey: "45000002", secret: Stage.secret))
        #expect(other.identity(ofUser: "ada") != stage.project.identity(ofUser: "ada"))
    }

    /// Two different (project, name) pairs must not produce the same identity because of a newline in a name.
    @Test func differentUsersNeverShareAnIdentity() throws {
        let short = try #require(Project(apiKey: "4", secret: Stage.secret))
        let long = try #require(Project(apiKey: "45", secret: Stage.secret))
        #expect(short.identity(ofUser: "5\nada") != long.identity(ofUser: "ada"))
        #expect(
            stage.project.identity(ofUser: "é") != stage.project.identity(ofUser: "e\u{301}"), "bytes, not characters")
    }

    @Test func userTokensExpireWithinADay() {
        let now = stage.now.seconds
        #expect(refusal(ofUser: user(["exp": "\(now + 24 * 3600)"])) == nil)
        #expect(refusal(ofUser: user(["exp": "\(now + 25 * 3600)"])) == .tokenLifetime)
        #expect(refusal(ofUser: user(["exp": "\(now + 30 * 24 * 3600)"])) == .tokenLifetime)
        #expect(refusal(ofUser: user(["exp": "\(now)"])) == .tokenExpired)
        #expect(refusal(ofUser: user(["exp": nil])) == .tokenMalformed)
        #expect(refusal(ofUser: user(["iat": "\(now + 120)"])) == .tokenNotYet)
    }

    @Test func userNamesHave1To256Bytes() {
        func sub(_ text: String) -> WireError.Code? { refusal(ofUser: user(["sub": "\"\(text)\""])) }
        #expect(sub("") == .tokenMalformed)
        #expect(sub(String(repeating: "a", count: 256)) == nil)
        #expect(sub(String(repeating: "a", count: 257)) == .tokenMalformed)
        #expect(sub(String(repeating: "é", count: 129)) == .tokenMalformed)
        #expect(refusal(ofUser: user(["sub": nil])) == .tokenMalformed)
        #expect(refusal(ofUser: user(["sub": "42"])) == .tokenMalformed)
        #expect(refusal(ofUser: user(["name": "\"" + String(repeating: "n", count: 257) + "\""])) == .tokenMalformed)
    }

    @Test func aSessionTokenIsNotAUserToken() {
        #expect(refusal(ofUser: stage.token(stage.room())) == .tokenScope)
    }

    @Test func aSecretProvesOnlyItsIdentity() throws {
        for _ in 0..<50 {
            let id = stage.identity()
            #expect(try stage.project.verifyIdentitySecret(stage.project.secret(of: id)).id == id)
        }
    }

    /// The expected values were computed with Python's `hmac`.
    @Test func aSecretMadeByAnIndependentImplementationVerifies() throws {
        let identity = try stage.project.verifyIdentitySecret("a_Dx4tPEtaaXiHlqW0w9Lh8PxeQMQJaOJ-3_oIextfGxc")
        #expect(identity.id.description == "0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    }

    @Test func aSecretWithAnyChangedCharacterIsRefused() {
        let secret = stage.project.secret(of: stage.identity())
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= ".utf8)
        var accepted: [String] = []
        for at in 0..<secret.utf8.count {
            for character in alphabet where character != Array(secret.utf8)[at] {
                var bytes = Array(secret.utf8)
                bytes[at] = character
                let text = String(decoding: bytes, as: UTF8.self)
                if refusal(ofSecret: text) == nil { accepted.append(text) }
            }
        }
        #expect(accepted == [])
    }

    @Test func secretsOfOtherProjectsOrFormatsAreRefused() throws {
        let other = try #require(Project(apiKey: Stage.apiKey, secret: String(Stage.secret.reversed())))
        let secret = stage.project.secret(of: stage.identity())
        #expect(refusal(ofSecret: secret, by: other) == .tokenSignature)
        for text in [
            "", "a_", "b" + secret.dropFirst(), String(secret.dropLast(4)), secret + "AAAA",
            String(repeating: "a", count: 100_000),
        ] {
            #expect(refusal(ofSecret: text) == .tokenMalformed)
        }
    }
}

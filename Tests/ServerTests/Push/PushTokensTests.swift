import Crypto
import Foundation
import Testing
import Wire

@testable import Server

@Suite("Push encryption, tokens and keys") struct PushTokensTests {
    private let start = Timestamp(milliseconds: 1_800_000_000_900)

    @Test("the example of RFC 8291 §5 is reproduced exactly")
    func example() throws {
        func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.decode(text.utf8)) }
        let receiver = try bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
        let sender = try P256.KeyAgreement.PrivateKey(
            rawRepresentation: bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
        let body = try PushEncryption.seal(
            Array("When I grow up, I want to be a watermelon".utf8), for: receiver,
            authentication: bytes("BTBZMqHH6r4Tts7J_aSIgg"), sender: sender, salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"),
            padding: 0)
        #expect(
            Base64URL.encode(body)
                == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzA"
                + "C8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
    }

    @Test("a browser can decrypt messages, which have equal lengths and different keys")
    func sealing() throws {
        let browser = BrowserDouble()
        let key = Array(browser.key.publicKey.x963Representation)
        var bodies: [[UInt8]] = []
        for text in ["{}", "{\"type\":\"call\"}", String(repeating: "x", count: PushEncryption.paddedSize)] {
            let body = try PushEncryption.seal(Array(text.utf8), for: key, authentication: browser.secret)
            let opened = try browser.open(body)
            #expect(opened.text == text)
            #expect(text.utf8.count + opened.padding == PushEncryption.paddedSize)
            bodies.append(body)
        }
        #expect(Set(bodies.map(\.count)).count == 1)
        #expect(Set(bodies.map { Array($0[0..<16]) }).count == 3, "each message has its own salt")
        #expect(Set(bodies.map { Array($0[21..<86]) }).count == 3, "each message has its own key")
        let largest = [UInt8](repeating: 1, count: PushEncryption.maxMessageSize)
        #expect(try PushEncryption.seal(largest, for: key, authentication: browser.secret).count == 4096)
        #expect(throws: PushFailure.self) {
            try PushEncryption.seal(largest + [1], for: key, authentication: browser.secret)
        }
    }

    @Test("each browser service gets its own token, valid for 12 hours and renewed early")
    func vapid() throws {
        let key = P256.Signing.PrivateKey()
        var tokens = VAPIDTokens(key: key, contact: "mailto:operator@example.org")
        let first = try tokens.authorization(for: "https://a.example", now: start)
        let token = try ReadToken(vapid: first, key: key.publicKey)
        #expect(token.header["alg"] as? String == "ES256" && token.header["typ"] as? String == "JWT")
        #expect(token.claims["aud"] as? String == "https://a.example")
        #expect(token.claims["exp"] as? Int == 1_800_000_000 + 12 * 3600)
        #expect(token.claims["sub"] as? String == "mailto:operator@example.org")
        #expect(try tokens.authorization(for: "https://b.example:8443", now: start) != first)
        let soon = start + .seconds(11 * 3600 - 1)
        #expect(try tokens.authorization(for: "https://a.example", now: soon) == first)
        let later = start + .seconds(11 * 3600)
        let second = try tokens.authorization(for: "https://a.example", now: later)
        #expect(try ReadToken(vapid: second, key: key.publicKey).claims["exp"] as? Int == 1_800_000_000 + 23 * 3600)
    }

    @Test("a token without a contact has no sub, and the cache is limited")
    func vapidBounds() throws {
        let key = P256.Signing.PrivateKey()
        var tokens = VAPIDTokens(key: key, contact: nil)
        for number in 0...(2 * VAPIDTokens.maxCached) {
            let text = try tokens.authorization(for: "https://\(number).example", now: start)
            if number == 0 { #expect(try ReadToken(vapid: text, key: key.publicKey).claims["sub"] == nil) }
        }
        let kept = Mirror(reflecting: tokens).children.first { $0.label == "tokens" }?.value as? [String: Any]
        #expect((kept?.count ?? .max) <= VAPIDTokens.maxCached)
    }

    @Test("Apple's token is reused for 50 minutes and is never older than an hour")
    func apns() throws {
        let key = PushSamples.apnsKey()
        var tokens = APNSToken(key: key)
        let first = try tokens.token(now: start)
        let token = try ReadToken(first, key: key.key.publicKey)
        #expect(token.header["alg"] as? String == "ES256" && token.header["kid"] as? String == "ABC123DEFG")
        #expect(token.claims["iss"] as? String == "TEAM456789" && token.claims["iat"] as? Int == 1_800_000_000)
        #expect(token.claims.count == 2)
        var (current, made) = (first, start)
        for minute in 0..<600 {
            let now = start + .seconds(minute * 60)
            let next = try tokens.token(now: now)
            if next != current {
                #expect(now - made >= APNSToken.minRenewalInterval)
                (current, made) = (next, now)
            }
            #expect(now - made < .seconds(3600))
        }
    }

    @Test("a token that was rejected as expired is replaced, unless it is too new")
    func apnsReplacement() throws {
        var tokens = APNSToken(key: PushSamples.apnsKey())
        let first = try tokens.token(now: start)
        #expect(try tokens.replacement(for: first, now: start + .seconds(1199)) == nil)
        let second = try #require(try tokens.replacement(for: first, now: start + .seconds(1200)))
        #expect(second != first)
        #expect(
            try tokens.replacement(for: first, now: start + .seconds(1201)) == second, "a late rejection")
    }

    @Test("tokens that were made before the clock was set back are replaced at once")
    func setBack() throws {
        let year = Duration.seconds(366 * 86400)
        var apns = APNSToken(key: PushSamples.apnsKey())
        let wrong = try apns.token(now: start + year)
        #expect(try apns.token(now: start) != wrong)
        var other = APNSToken(key: PushSamples.apnsKey())
        let refused = try other.token(now: start + year)
        #expect(try other.replacement(for: refused, now: start) != nil)
        var vapid = VAPIDTokens(key: P256.Signing.PrivateKey(), contact: nil)
        let late = try vapid.authorization(for: "https://push.example.org", now: start + year)
        #expect(try vapid.authorization(for: "https://push.example.org", now: start) != late)
    }

    @Test("the first start creates a private key file, and later starts read it")
    func keys() throws {
        let certificate = try TestCertificate(["localhost"])
        defer { certificate.remove() }
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = certificate.directory + "/data"
        let first = try PushKeys.open(configuration)
        #expect(try ReadToken.bytes(first.vapidKey).count == 65)
        #expect(try PushKeys.open(configuration).vapidKey == first.vapidKey)
        #expect(first.warnings.isEmpty && first.apns == nil)
        let path = configuration.dataDirectory + "/" + PushKeys.fileName
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        #expect(try PushKeys.open(configuration).warnings.count == 1)
        configuration.push.authorities = certificate.authorities
        _ = try PushKeys.open(configuration)
        configuration.push.authorities = path
        #expect(throws: DataDirectoryError.self, "a key is not a certificate") { try PushKeys.open(configuration) }
        configuration.push.authorities = nil
        try "nonsense".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(throws: DataDirectoryError.self) { try PushKeys.open(configuration) }
    }

    @Test("Apple's key is read from its file, and incomplete settings are errors")
    func apnsKeyFile() throws {
        let certificate = try TestCertificate(["localhost"])
        defer { certificate.remove() }
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = certificate.directory
        let key = P256.Signing.PrivateKey()
        let path = certificate.directory + "/key.p8"
        configuration.push.apnsKey = path
        #expect(throws: DataDirectoryError.self) { try PushKeys.open(configuration) }
        configuration.push.apnsKeyID = "ABC123DEFG"
        configuration.push.apnsTeamID = "TEAM456789"
        configuration.push.apnsBundle = "org.example.chat"
        #expect(throws: DataDirectoryError.self, "missing file") { try PushKeys.open(configuration) }
        try "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".write(
            toFile: path, atomically: true, encoding: .utf8)
        #expect(throws: DataDirectoryError.self, "invalid key") { try PushKeys.open(configuration) }
        try key.pemRepresentation.write(toFile: path, atomically: true, encoding: .utf8)
        let opened = try PushKeys.open(configuration)
        #expect(opened.apns?.key.rawRepresentation == key.rawRepresentation)
    }
}

import Crypto
import Foundation
import SwiftASN1
import Testing
import Wire
import X509

@testable import Server

/// An ACME server for tests of the rules, written from RFC 8555. It checks each request as the RFC requires, and records what
/// it finds wrong.
struct FakeAuthority {
    static let base = "https://ca.example.org"
    static let directory = base + "/directory"

    /// Answers that replace the usual ones, by the last part of the request's path. Each is used once.
    var replaced: [String: [ACMEResponse]] = [:]
    /// The statuses of an authorization when it is requested, one after the other. The last one stays.
    var authorizationStatuses = ["pending", "pending", "valid"]
    /// The statuses of the order after its finalization.
    var orderStatuses = ["processing", "valid"]
    /// The type of the challenge that counts. The authority also offers another one, which is never valid.
    var challengeType = "http-01"
    /// The error of a challenge that is invalid.
    var challengeError: JSONValue = .null
    /// How long certificates are valid.
    var lifetime: TimeInterval = 90 * 86400
    /// The key of an account that exists; nil if there is none yet.
    var knownKey: P256.Signing.PublicKey?
    /// The key that certificates get instead of that of the request.
    var wrongKey: P256.Signing.PublicKey?

    private(set) var violations: [String] = []
    /// The last parts of the paths of all requests.
    private(set) var requests: [String] = []
    private(set) var contacts: [JSONValue] = []
    private var account: P256.Signing.PublicKey?
    private var nonces: Set<String> = []
    private var nonceCount = 0
    private var domains: [String] = []
    private var valid: Set<Int> = []
    /// How often each authorization was requested.
    private var looks: [Int: Int] = [:]
    private var finalized = false
    private var chain = ""
    private let issuer: SigningIdentity

    init() throws { issuer = try LocalCertificateAuthority.makeAuthority(hostName: nil, now: Date()) }

    // MARK: Requests

    mutating func respond(to request: ACMERequest, published: [ACMEChallenge]) -> ACMEResponse {
        let name = String(request.url.split(separator: "/").last ?? "")
        requests.append(name)
        var response: ACMEResponse
        if request.method == .post {
            response = signed(request, name, published)
        } else if let next = replacement(name) {
            response = next
        } else if name == "directory" {
            response = Self.directoryResponse()
        } else {
            response = ACMEResponse(status: 200)
        }
        if name != "directory", response.headers["replay-nonce"] == nil {
            response.headers["replay-nonce"] = newNonce()
        }
        return response
    }

    static func directoryResponse(
        _ meta: String = #"{"termsOfService":"https://ca.example.org/terms"}"#
    ) -> ACMEResponse {
        json(
            200,
            """
            {"newNonce":"\(base)/new-nonce","newAccount":"\(base)/new-account","newOrder":"\(base)/new-order",\
            "keyChange":"\(base)/key-change","meta":\(meta)}
            """)
    }

    static func problem(_ status: Int, _ type: String, _ detail: String, retryAfter: String? = nil) -> ACMEResponse {
        var response = json(status, #"{"type":"urn:ietf:params:acme:error:\#(type)","detail":"\#(detail)"}"#)
        response.headers["retry-after"] = retryAfter
        return response
    }

    static func json(_ status: Int, _ text: String, _ headers: [String: String] = [:]) -> ACMEResponse {
        ACMEResponse(status: status, headers: headers, body: Array(text.utf8))
    }

    private mutating func replacement(_ name: String) -> ACMEResponse? {
        guard replaced[name]?.isEmpty == false else { return nil }
        return replaced[name]?.removeFirst()
    }

    private mutating func newNonce() -> String {
        nonceCount += 1
        let nonce = Base64URL.encode(Array("nonce \(nonceCount)".utf8))
        nonces.insert(nonce)
        return nonce
    }

    private mutating func signed(
        _ request: ACMERequest, _ name: String, _ published: [ACMEChallenge]
    ) -> ACMEResponse {
        guard let message = SignedMessage(request.body) else {
            violations.append("\(name) has no signed body")
            return ACMEResponse(status: 400)
        }
        if message.header.text("url") != request.url { violations.append("\(name) is signed for another URL") }
        if message.header.text("alg") != "ES256" { violations.append("\(name) has another algorithm") }
        guard let nonce = message.header.text("nonce"), nonces.remove(nonce) != nil else {
            return Self.problem(400, "badNonce", "JWS has an invalid anti-replay nonce")
        }
        if name == "new-account" {
            guard case .object(let jwk)? = message.header["jwk"], message.header["kid"] == nil else {
                violations.append("new-account has no jwk")
                return ACMEResponse(status: 400)
            }
            account = SignedMessage.key(jwk)
        } else if message.header.text("kid") != Self.base + "/account/1" || message.header["jwk"] != nil {
            violations.append("\(name) does not name the account")
        }
        guard let account, message.isSigned(by: account) else {
            violations.append("\(name) has a wrong signature")
            return ACMEResponse(status: 400)
        }
        return replacement(name) ?? handle(name, message, published, account, request)
    }

    private mutating func handle(
        _ name: String, _ message: SignedMessage, _ published: [ACMEChallenge], _ account: P256.Signing.PublicKey,
        _ request: ACMERequest
    ) -> ACMEResponse {
        let isGet = message.payload == nil
        switch name {
        case "new-account" where message.payload?["onlyReturnExisting"] == .bool(true):
            guard account.rawRepresentation == knownKey?.rawRepresentation else {
                return Self.problem(400, "accountDoesNotExist", "no account of this key")
            }
            return Self.json(200, #"{"status":"valid"}"#, ["location": Self.base + "/account/1"])
        case "new-account":
            if message.payload?["termsOfServiceAgreed"] != .bool(true) { violations.append("terms not agreed") }
            contacts.append(message.payload?["contact"] ?? .null)
            return Self.json(201, #"{"status":"valid"}"#, ["location": Self.base + "/account/1"])
        case "new-order":
            domains = message.payload?.objects("identifiers").compactMap { $0.text("value") } ?? []
            return order(201)
        case _ where name.hasPrefix("authorization-"):
            if !isGet { violations.append("an authorization is read with a payload") }
            return authorization(Int(name.dropFirst("authorization-".count)) ?? 0)
        case _ where name.hasPrefix("challenge-"):
            if message.payload?.members.isEmpty != true { violations.append("the challenge's payload is not {}") }
            let index = Int(name.dropFirst("challenge-".count)) ?? 0
            let token = Self.token(index)
            let expected = ACMEChallenge(
                domain: domains[index], token: token, answer: token + "." + JSONWebSignature.thumbprint(account))
            if !published.contains(expected) { violations.append("\(name) is not published before it is requested") }
            return Self.json(200, #"{"type":"\#(challengeType)","status":"processing"}"#)
        case "finalize":
            if valid.count != domains.count { violations.append("finalized too early") }
            finalized = true
            issue(message.payload?.text("csr") ?? "")
            return order(200)
        case "order": return order(200)
        case "key-change": return changeKey(message, account, url: request.url)
        case "certificate":
            if request.accept != "application/pem-certificate-chain" { violations.append("wrong Accept") }
            return ACMEResponse(status: 200, body: Array(chain.utf8))
        default: return ACMEResponse(status: 404)
        }
    }

    /// Checks the inner message as §7.3.5 requires.
    private mutating func changeKey(
        _ message: SignedMessage, _ account: P256.Signing.PublicKey, url: String
    ) -> ACMEResponse {
        guard let payload = message.payload, let protected = payload.text("protected"),
            let content = payload.text("payload"), let signature = payload.text("signature"),
            let inner = SignedMessage(protected: protected, content: content, signature: signature),
            case .object(let jwk)? = inner.header["jwk"], let newKey = SignedMessage.key(jwk)
        else {
            violations.append("the payload of the key change is not signed")
            return ACMEResponse(status: 400)
        }
        if !inner.isSigned(by: newKey) { violations.append("the new key has not signed") }
        if inner.header.text("url") != url { violations.append("the inner message is for another URL") }
        if inner.header["nonce"] != nil { violations.append("the inner message has a nonce") }
        if inner.payload?.text("account") != Self.base + "/account/1" { violations.append("the account is missing") }
        guard case .object(let oldKey)? = inner.payload?["oldKey"],
            SignedMessage.key(oldKey)?.rawRepresentation == account.rawRepresentation
        else {
            violations.append("the old key is missing")
            return ACMEResponse(status: 400)
        }
        knownKey = newKey
        return Self.json(200, #"{"status":"valid"}"#)
    }

    private static func token(_ index: Int) -> String { "token-\(index)-of-at-least-22-characters" }

    private mutating func order(_ status: Int) -> ACMEResponse {
        let urls = domains.indices.map { "\"\(Self.base)/authorization-\($0)\"" }.joined(separator: ",")
        var state = valid.count == domains.count ? "ready" : "pending"
        if finalized {
            state = orderStatuses[0]
            if orderStatuses.count > 1 { orderStatuses.removeFirst() }
        }
        let text =
            #"{"status":"\#(state)","authorizations":[\#(urls)],"finalize":"\#(Self.base)/finalize","#
            + #""certificate":"\#(Self.base)/certificate"}"#
        return Self.json(status, text, ["location": Self.base + "/order"])
    }

    private mutating func authorization(_ index: Int) -> ACMEResponse {
        let step = looks[index, default: 0]
        looks[index] = step + 1
        let status = authorizationStatuses[min(step, authorizationStatuses.count - 1)]
        if status == "valid" { valid.insert(index) }
        var writer = JSONWriter()
        writer.value(challengeError)
        let error = String(decoding: writer.bytes, as: UTF8.self)
        let otherType = challengeType == "http-01" ? "tls-alpn-01" : "http-01"
        return Self.json(
            200,
            """
            {"status":"\(status)","identifier":{"type":"dns","value":"\(domains[index])"},"challenges":[
              {"type":"\(otherType)","url":"\(Self.base)/other","token":"other"},
              {"type":"\(challengeType)","url":"\(Self.base)/challenge-\(index)","token":"\(Self.token(index))","error":\(error)}]}
            """)
    }

    // MARK: Certificates

    private mutating func issue(_ request: String) {
        do {
            let bytes = try #require(Base64URL.decode(request.utf8))
            let csr = try CertificateSigningRequest(derEncoded: bytes)
            if !csr.publicKey.isValidSignature(csr.signature, for: csr) { violations.append("the CSR is not signed") }
            let key = wrongKey.map { Certificate.PublicKey($0) } ?? csr.publicKey
            let names = domains.map { GeneralName.dnsName($0) }
            let certificate = try Certificate(
                version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: key,
                notValidBefore: Date() - 60 + min(0, 2 * lifetime), notValidAfter: Date() + lifetime,
                issuer: issuer.certificate.subject, subject: DistinguishedName(), signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try Certificate.Extensions { SubjectAlternativeNames(names) },
                issuerPrivateKey: Certificate.PrivateKey(issuer.key))
            chain = [certificate, issuer.certificate].compactMap { try? $0.serializeAsPEM().pemString + "\n" }.joined()
        } catch {
            violations.append("\(error)")
        }
    }
}

/// The parts of a flattened JWS (RFC 7515 §7.2.2).
struct SignedMessage {
    let header: JSONObject
    /// Nil if the payload is empty.
    let payload: JSONObject?
    private let input: [UInt8]
    private let signature: [UInt8]

    init?(_ body: [UInt8]) {
        guard case .object(let object)? = try? JSONReader.parse(body), let protected = object.text("protected"),
            let content = object.text("payload"), let signature = object.text("signature")
        else { return nil }
        self.init(protected: protected, content: content, signature: signature)
    }

    init?(protected: String, content: String, signature: String) {
        guard let header = Base64URL.decode(protected.utf8), case .object(let found)? = try? JSONReader.parse(header),
            let payload = Base64URL.decode(content.utf8), let signature = Base64URL.decode(signature.utf8)
        else { return nil }
        (self.header, self.signature, input) = (found, signature, Array("\(protected).\(content)".utf8))
        if payload.isEmpty {
            self.payload = nil
        } else {
            guard case .object(let object)? = try? JSONReader.parse(payload) else { return nil }
            self.payload = object
        }
    }

    func isSigned(by key: P256.Signing.PublicKey) -> Bool {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: Data(signature)) else { return false }
        return key.isValidSignature(signature, for: Data(input))
    }

    static func key(_ jwk: JSONObject) -> P256.Signing.PublicKey? {
        guard let x = jwk.text("x").flatMap({ Base64URL.decode($0.utf8) }),
            let y = jwk.text("y").flatMap({ Base64URL.decode($0.utf8) })
        else { return nil }
        return try? P256.Signing.PublicKey(x963Representation: Data([4] + x + y))
    }
}

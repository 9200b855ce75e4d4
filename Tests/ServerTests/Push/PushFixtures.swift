import Crypto
import Foundation
import Logging
import NIOConcurrencyHelpers
import Signaling
import Testing
import Wire

@testable import Server

/// A subscribed browser with its private key. It decrypts messages with an independent implementation of RFC 8291.
struct BrowserDouble {
    let key = P256.KeyAgreement.PrivateKey()
    let secret = (0..<16).map { _ in UInt8.random(in: 0...255) }

    func registration(_ url: String) -> PushRegistration {
        PushRegistration(
            kind: .web, endpoint: url, p256dh: text(Array(key.publicKey.x963Representation)), auth: text(secret))
    }

    /// Encodes the keys with Foundation's Base64, to test ours too.
    private func text(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }

    struct Opened {
        var text: String
        var salt: [UInt8]
        var padding: Int
    }

    func open(_ body: [UInt8]) throws -> Opened {
        let salt = Array(body[0..<16])
        let size = body[16..<20].reduce(0) { $0 << 8 | Int($1) }
        let ownLength = Int(body[20])
        let header = 21 + ownLength
        try #require(ownLength == 65 && body.count - header <= size && body.count <= 4096)
        let sender = Array(body[21..<header])
        let shared = try key.sharedSecretFromKeyAgreement(with: .init(x963Representation: sender))
        // Use HMAC directly (RFC 5869), because the server uses HKDF.
        let first = hmac(key: secret, shared.withUnsafeBytes { Array($0) })
        let own = Array(key.publicKey.x963Representation)
        let material = hmac(key: first, Array("WebPush: info\0".utf8) + own + sender + [1])
        let second = hmac(key: salt, material)
        let content = hmac(key: second, Array("Content-Encoding: aes128gcm\0".utf8) + [1]).prefix(16)
        let nonce = hmac(key: second, Array("Content-Encoding: nonce\0".utf8) + [1]).prefix(12)
        let box = try AES.GCM.SealedBox(combined: nonce + body[header...])
        let record = Array(try AES.GCM.open(box, using: SymmetricKey(data: content)))
        let end = try #require(record.lastIndex { $0 != 0 })
        try #require(record[end] == 2, "the last record's delimiter")
        return Opened(
            text: String(decoding: record[..<end], as: UTF8.self), salt: salt, padding: record.count - end - 1)
    }

    private func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    }
}

/// A parsed and verified token. Uses Foundation's JSON and Base64.
struct ReadToken {
    var header: [String: Any]
    var claims: [String: Any]

    init(_ text: String, key: P256.Signing.PublicKey) throws {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        try #require(parts.count == 3)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: Self.bytes(parts[2]))
        try #require(key.isValidSignature(signature, for: Data((parts[0] + "." + parts[1]).utf8)))
        header = try #require(JSONSerialization.jsonObject(with: Self.bytes(parts[0])) as? [String: Any])
        claims = try #require(JSONSerialization.jsonObject(with: Self.bytes(parts[1])) as? [String: Any])
    }

    /// Parses `vapid t=…, k=…`, and checks that `k` is the key.
    init(vapid text: String?, key: P256.Signing.PublicKey) throws {
        let text = try #require(text)
        try #require(text.hasPrefix("vapid t="))
        let parts = text.dropFirst(8).components(separatedBy: ", k=")
        try #require(parts.count == 2)
        #expect(try Self.bytes(parts[1]) == key.x963Representation)
        try self.init(parts[0], key: key)
    }

    static func bytes(_ text: String) throws -> Data {
        var text = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        return try #require(Data(base64Encoded: text))
    }
}

/// A clock that advances whenever a task sleeps.
final class ManualTime: Sendable {
    private let state: NIOLockedValueBox<(now: Timestamp, pauses: [Duration])>

    init(_ now: Timestamp = Timestamp(milliseconds: 1_800_000_000_000)) { state = NIOLockedValueBox((now, [])) }

    var now: Timestamp { state.withLockedValue { $0.now } }
    var pauses: [Duration] { state.withLockedValue { $0.pauses } }

    func advance(by duration: Duration) { state.withLockedValue { $0.now = $0.now + duration } }

    var clock: PushClock {
        PushClock(
            now: { self.now },
            pause: { duration in
                self.state.withLockedValue {
                    $0.now = $0.now + duration
                    $0.pauses.append(duration)
                }
            })
    }
}

/// An in-memory push directory.
actor DirectoryDouble: PushDirectory {
    private(set) var kept: [IdentityID: [PushEndpoint]]
    private(set) var removed: [PushEndpoint] = []

    init(_ kept: [IdentityID: [PushEndpoint]] = [:]) { self.kept = kept }

    func endpoints(of identity: IdentityID) async throws -> [PushEndpoint] { kept[identity] ?? [] }

    func remove(_ endpoint: PushEndpoint, of identity: IdentityID) async {
        removed.append(endpoint)
        kept[identity]?.removeAll { $0 == endpoint }
    }
}

/// A push transport without sockets.
actor TransportDouble: PushTransport {
    private(set) var requests: [PushRequest] = []
    private(set) var isClosed = false
    private let respond: @Sendable (Int, PushRequest) async throws -> PushResponse

    init(_ respond: @escaping @Sendable (Int, PushRequest) async throws -> PushResponse) { self.respond = respond }

    func exchange(_ request: PushRequest) async throws -> PushResponse {
        requests.append(request)
        return try await respond(requests.count - 1, request)
    }

    func close() async { isClosed = true }
}

/// A resolver that returns addresses chosen by the test and counts the lookups.
final class ResolverDouble: PushResolver {
    private let state: NIOLockedValueBox<(answers: [[String]], asked: Int)>

    /// - Parameter answers: one answer per lookup. The last answer is repeated.
    init(_ answers: [[String]]) { state = NIOLockedValueBox((answers, 0)) }

    var asked: Int { state.withLockedValue { $0.asked } }

    func addresses(of host: String) async throws -> [IPAddress] {
        state.withLockedValue { state in
            state.asked += 1
            let answer = state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first ?? []
            return answer.compactMap { IPAddress($0) }
        }
    }
}

/// A resolver whose lookups of some hosts hang until the test lets them finish.
final class HangingResolver: PushResolver {
    private let state: NIOLockedValueBox<(asked: [String], hanging: [Once<Bool>], isOpen: Bool)>
    private let hangs: @Sendable (String) -> Bool

    init(_ hangs: @escaping @Sendable (String) -> Bool) {
        (state, self.hangs) = (NIOLockedValueBox(([], [], false)), hangs)
    }

    /// The hosts that were looked up, in order.
    var asked: [String] { state.withLockedValue { $0.asked } }

    /// Lets the first lookup finish.
    func openFirst() { state.withLockedValue { $0.hanging.first }?.settle(true) }

    /// Lets all lookups finish.
    func open() {
        let hanging = state.withLockedValue { state in
            state.isOpen = true
            return state.hanging
        }
        for lookup in hanging { lookup.settle(true) }
    }

    func addresses(of host: String) async throws -> [IPAddress] {
        let gate = Once<Bool>()
        let isOpen = state.withLockedValue { state in
            state.asked.append(host)
            state.hanging.append(gate)
            return state.isOpen
        }
        if hangs(host), !isOpen { _ = await gate.value() }
        return [IPAddress("127.0.0.1")].compactMap(\.self)
    }
}

enum PushSamples {
    static let identity = IdentityID(high: 1, low: 2)
    static let call = CallID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210)
    static let callText = "0123456789abcdeffedcba9876543210"
    static let device = String(repeating: "0a", count: 32)
    static let silent = Logger(label: "push") { _ in SwiftLogNoOpLogHandler() }

    static func notice(_ kind: PushNotice.Kind = .incoming, until expires: Timestamp) -> PushNotice {
        PushNotice(call: call, kind: kind, expires: expires)
    }

    static func apnsKey() -> APNSKey {
        APNSKey(key: .init(), keyID: "ABC123DEFG", teamID: "TEAM456789", bundle: "org.example.chat")
    }

    /// Sleeps until it is canceled.
    @Sendable static func never() async throws {
        let (nothing, source) = AsyncStream.makeStream(of: Never.self)
        for await _ in nothing {}
        withExtendedLifetime(source) {}
        try Task.checkCancellation()
    }
}

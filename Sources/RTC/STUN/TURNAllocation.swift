import COpenSSL

/// A client's request for a relayed address on a TURN server (RFC 8656 §7), with long-term credentials (RFC 8489 §9.2). It
/// has no sockets, and relays nothing: it finds out whether the server accepts the credentials.
///
/// Its owner sends ``request``, again and again over UDP, and passes what arrives to ``handle(_:using:)``.
public struct TURNAllocation: Sendable {
    /// What a datagram has changed.
    public enum Progress: Equatable, Sendable {
        /// Nothing: it does not answer the request.
        case none
        /// ``request`` is another one now. Send it.
        case requests
        /// The server relays at this address. Send ``release(using:)``. `isOpen` is true if the server required no credentials.
        case allocated(TransportAddress, isOpen: Bool)
        /// The server refuses with this error code, such as 401 for wrong credentials.
        case refused(UInt16)
    }

    /// What the server wants to be authenticated with (RFC 8489 §9.2.4).
    private struct Challenge {
        var realm: [UInt8]
        var nonce: [UInt8]
        var key: [UInt8]
    }

    /// How often a server may replace the nonce (438) before the attempt counts as refused.
    private static let maxStaleNonces = 2
    /// The maximum length of a realm or nonce in bytes (RFC 8489 §14.9 and §14.10).
    private static let maxText = 763

    /// The message to send. Repetitions over UDP belong to one transaction.
    public private(set) var request: [UInt8]
    private let username: [UInt8]
    private let password: [UInt8]
    private var transaction: STUNTransaction
    private var challenge: Challenge?
    private var staleNonces = 0

    /// - Parameters:
    ///   - username: at most 508 bytes.
    ///   - password: the credential that belongs to the name.
    public init(username: String, password: String, using random: inout some RandomNumberGenerator) {
        (self.username, self.password) = (Array(username.utf8.prefix(508)), Array(password.utf8))
        transaction = STUNTransaction(using: &random)
        // The server answers the first request with its realm and nonce.
        request = Self.allocate(transaction, self.username, nil)
    }

    /// Processes a datagram, or a message from a stream.
    public mutating func handle(_ datagram: [UInt8], using random: inout some RandomNumberGenerator) -> Progress {
        let (transaction, key) = (transaction, challenge?.key)
        let answer = datagram.withUnsafeBytes { Answer($0, to: transaction, key: key) }
        switch answer {
        case nil: return .none
        case .allocated(let address): return .allocated(address, isOpen: key == nil)
        case .refused(401, let realm, let nonce) where key == nil:
            return authenticate(realm, nonce, orRefuse: 401, using: &random)
        case .refused(438, let realm, let nonce) where staleNonces < Self.maxStaleNonces:
            staleNonces += 1
            return authenticate(realm, nonce, orRefuse: 438, using: &random)
        case .refused(let code, _, _): return .refused(code)
        }
    }

    /// Returns the message that ends the allocation (RFC 8656 §8).
    public func release(using random: inout some RandomNumberGenerator) -> [UInt8] {
        let transaction = STUNTransaction(using: &random)
        return STUN.message(.request, method: STUN.refresh, transaction: transaction, key: challenge?.key) { writer in
            writer.raw(STUN.Attribute.lifetime, [0, 0, 0, 0])
            if let challenge { writer.authenticate(username, challenge.realm, challenge.nonce) }
        }
    }

    private mutating func authenticate(
        _ realm: [UInt8], _ nonce: [UInt8], orRefuse code: UInt16, using random: inout some RandomNumberGenerator
    ) -> Progress {
        guard !realm.isEmpty, !nonce.isEmpty, realm.count <= Self.maxText, nonce.count <= Self.maxText,
            let key = Self.md5(username + [UInt8(ascii: ":")] + realm + [UInt8(ascii: ":")] + password)
        else { return .refused(code) }
        let challenge = Challenge(realm: realm, nonce: nonce, key: key)
        transaction = STUNTransaction(using: &random)
        request = Self.allocate(transaction, username, challenge)
        // A message that is too long is empty.
        guard !request.isEmpty else { return .refused(code) }
        self.challenge = challenge
        return .requests
    }

    private static func allocate(
        _ transaction: STUNTransaction, _ username: [UInt8], _ challenge: Challenge?
    ) -> [UInt8] {
        STUN.message(.request, method: STUN.allocate, transaction: transaction, key: challenge?.key) { writer in
            // UDP between the server and the peers: protocol 17.
            writer.raw(STUN.Attribute.requestedTransport, [17, 0, 0, 0])
            if let challenge { writer.authenticate(username, challenge.realm, challenge.nonce) }
        }
    }

    /// Returns the key of long-term credentials (RFC 8489 §9.2.2); nil if OpenSSL's configuration forbids MD5.
    private static func md5(_ text: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 16)
        let made = text.withUnsafeBytes { text in
            digest.withUnsafeMutableBufferPointer {
                EVP_Digest(text.baseAddress, text.count, $0.baseAddress, nil, EVP_md5(), nil)
            }
        }
        return made == 1 ? digest : nil
    }

    /// A server's answer to an Allocate request.
    private enum Answer {
        case allocated(TransportAddress)
        case refused(UInt16, realm: [UInt8], nonce: [UInt8])

        /// Returns nil if the datagram does not answer the request. An error is not authenticated, because the server may not
        /// know the password.
        init?(_ bytes: UnsafeRawBufferPointer, to transaction: STUNTransaction, key: [UInt8]?) {
            guard let message = STUNMessage(bytes), message.method == STUN.allocate, message.transaction == transaction
            else { return nil }
            switch message.class {
            case .success:
                guard let address = message.relayedAddress, key.map(message.isAuthentic) ?? true else { return nil }
                self = .allocated(address)
            case .failure:
                guard let code = message.errorCode else { return nil }
                self = .refused(code, realm: message.realm, nonce: message.nonce)
            case .request, .indication: return nil
            }
        }
    }
}

extension STUNWriter {
    /// Writes USERNAME, REALM and NONCE.
    fileprivate mutating func authenticate(_ username: [UInt8], _ realm: [UInt8], _ nonce: [UInt8]) {
        self.username(username)
        raw(STUN.Attribute.realm, realm)
        raw(STUN.Attribute.nonce, nonce)
    }
}

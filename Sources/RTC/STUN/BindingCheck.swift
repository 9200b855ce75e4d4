/// A Binding request that finds out whether a server answers at an address. It has no sockets: its owner sends ``request``, again
/// and again because datagrams can be lost, and passes the datagrams that arrive to ``mappedAddress(in:)``.
public struct BindingCheck: Sendable {
    /// The datagram to send. All repetitions belong to one transaction (RFC 8489 §6.2.1).
    public let request: [UInt8]
    private let transaction: STUNTransaction
    /// The password that must authenticate the response; nil if nothing does.
    private let key: [UInt8]?

    /// Creates a request to a STUN server, which needs no credentials.
    public init(using random: inout some RandomNumberGenerator) {
        transaction = STUNTransaction(using: &random)
        key = nil
        request = STUN.message(.request, transaction: transaction) { _ in }
    }

    /// Creates a connectivity check of ICE (RFC 8445 §7.2.2), which nominates no path.
    ///
    /// - Parameters:
    ///   - local: the credentials in this side's description.
    ///   - remote: the credentials in the server's description.
    public init(local: ICECredentials, remote: ICECredentials, using random: inout some RandomNumberGenerator) {
        transaction = STUNTransaction(using: &random)
        let password = Array(remote.password.utf8)
        let tieBreaker: UInt64 = random.next()
        key = password
        request = STUN.message(.request, transaction: transaction, key: password) { writer in
            writer.username(Array("\(remote.ufrag):\(local.ufrag)".utf8))
            // The type preference of a peer reflexive candidate (RFC 8445 §5.1.2.2).
            writer.priority(110 << 24 | 65535 << 8 | 255)
            writer.controlling(tieBreaker: tieBreaker)
        }
    }

    /// Returns the address from which the server saw the request; nil if the datagram is not an authentic response to it.
    public func mappedAddress(in datagram: [UInt8]) -> TransportAddress? {
        datagram.withUnsafeBytes { bytes in
            guard let message = STUNMessage(bytes), message.class == .success, message.method == STUN.binding,
                message.transaction == transaction, key.map(message.isAuthentic) ?? true
            else { return nil }
            return message.mappedAddress
        }
    }
}

extension STUN {
    /// Writes a message with the attributes that `body` adds, and MESSAGE-INTEGRITY if there is a key. Returns an empty array if
    /// the message is too long.
    static func message(
        _ class: Class, method: UInt16 = binding, transaction: STUNTransaction, key: [UInt8]? = nil,
        _ body: (inout STUNWriter) -> Void
    ) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: maxBytes)
        let length = memory.withUnsafeMutableBytes { memory in
            var writer = STUNWriter(memory, `class`, method: method, transaction: transaction)
            body(&writer)
            return if let key { writer.finish(key: key) } else { writer.finish() }
        }
        return Array(memory.prefix(length ?? 0))
    }
}

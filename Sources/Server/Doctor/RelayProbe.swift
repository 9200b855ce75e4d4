import NIOCore
import RTC
import Synchronization

/// Asks STUN servers for this machine's address, and TURN servers for a relayed one, with the credentials that clients get.
enum RelayProbe {
    /// How long to wait for all answers of a server.
    private static let limit = Duration.seconds(5)

    static func ask(_ url: String, username: String, password: String) async -> RelayObservation {
        guard let relay = RelayAddress(url) else { return .failed("it is not a URL of a STUN or TURN server") }
        let addresses: [IPAddress]
        if let address = IPAddress(relay.host) {
            addresses = [address]
        } else {
            let found = await ProbeLimit.within(limit) { try? await SystemResolver().addresses(of: relay.host) }
            guard let found, let found else { return .failed("the name servers did not answer in time") }
            addresses = found
        }
        guard let address = addresses.first else { return .unknownName }
        guard relay.isTURN else { return await reflect(address, port: relay.port) }
        return relay.transport == .udp
            ? await allocate(address, port: relay.port, username, password)
            : await allocateOverStream(relay, address, username, password)
    }

    private static func reflect(_ address: IPAddress, port: Int) async -> RelayObservation {
        let target = address.transportAddress(port: UInt16(clamping: port))
        return await ProbeLimit.blocking(limit + .seconds(1)) {
            var random = SystemRandomNumberGenerator()
            let check = BindingCheck(using: &random)
            let outcome = DatagramProbe.exchange(with: target, within: limit, first: check.request) { datagram in
                check.mappedAddress(in: datagram) == nil ? .wait : .finish(nil)
            }
            return outcome == .answered ? .reflected : RelayObservation(outcome)
        } ?? .silent
    }

    private static func allocate(
        _ address: IPAddress, port: Int, _ username: String, _ password: String
    ) async -> RelayObservation {
        let target = address.transportAddress(port: UInt16(clamping: port))
        return await ProbeLimit.blocking(limit + .seconds(1)) {
            var random = SystemRandomNumberGenerator()
            var allocation = TURNAllocation(username: username, password: password, using: &random)
            var result: RelayObservation?
            let outcome = DatagramProbe.exchange(with: target, within: limit, first: allocation.request) { datagram in
                switch allocation.handle(datagram, using: &random) {
                case .none: return .wait
                case .requests: return .send(allocation.request)
                case .allocated(let relayed, let isOpen):
                    result = RelayObservation(relayed, isOpen: isOpen)
                    return .finish(allocation.release(using: &random))
                case .refused(let code):
                    result = .rejected(Int(code))
                    return .finish(nil)
                }
            }
            return result ?? RelayObservation(outcome)
        } ?? .silent
    }

    private static func allocateOverStream(
        _ relay: RelayAddress, _ address: IPAddress, _ username: String, _ password: String
    ) async -> RelayObservation {
        let tls = relay.transport == .tls ? StreamProbe.TLS(host: relay.host, verifies: true) : nil
        return await ProbeLimit.within(limit + .seconds(1)) { () -> RelayObservation in
            do {
                return try await StreamProbe.open(address, port: relay.port, tls: tls) { reader, outbound in
                    var random = SystemRandomNumberGenerator()
                    var allocation = TURNAllocation(username: username, password: password, using: &random)
                    try await outbound.write(ByteBuffer(bytes: allocation.request))
                    while let message = try await reader.stunMessage() {
                        switch allocation.handle(message, using: &random) {
                        case .none: continue
                        case .requests: try await outbound.write(ByteBuffer(bytes: allocation.request))
                        case .allocated(let relayed, let isOpen):
                            try await outbound.write(ByteBuffer(bytes: allocation.release(using: &random)))
                            return RelayObservation(relayed, isOpen: isOpen)
                        case .refused(let code): return .rejected(Int(code))
                        }
                    }
                    return .failed("it closed the connection without an answer")
                }
            } catch {
                switch StreamProbe.outcome(of: error) {
                case .refused: return .refused
                case .connected, .timedOut: return .silent
                case .failed(let reason): return .failed(reason)
                }
            }
        } ?? .silent
    }
}

extension RelayObservation {
    fileprivate init(_ relayed: TransportAddress, isOpen: Bool) {
        self =
            IPAddress(relayed.host).map { .allocated($0, isOpen: isOpen) } ?? .failed("its relayed address is invalid")
    }

    /// The result of an exchange without an answer.
    fileprivate init(_ outcome: ExchangeOutcome) {
        switch outcome {
        case .answered, .silent: self = .silent
        case .refused: self = .refused
        case .unreachable(let reason): self = .failed(reason)
        }
    }
}

extension StreamReader {
    /// Reads the next STUN message: its header says how long it is (RFC 8489 §6.2.2). Returns nil if the connection is closed, or
    /// the bytes are no message.
    fileprivate mutating func stunMessage() async throws -> [UInt8]? {
        while true {
            if bytes.count >= STUN.headerLength {
                let length = STUN.headerLength + (Int(bytes[2]) << 8 | Int(bytes[3]))
                guard length <= STUN.maxBytes else { return nil }
                if bytes.count >= length { return take(length) }
            }
            guard try await more() else { return nil }
        }
    }
}

import NIOCore
import RTC

/// Connectivity checks to the addresses of a media plane, over UDP and TCP.
struct MediaProbe: Sendable {
    /// How long to wait for an answer.
    private static let limit = Duration.seconds(3)
    /// The maximum number of addresses that are tried, of those in the answer and of others each.
    private static let maxAddresses = 16

    /// The credentials in the offer and in the answer.
    let local: ICECredentials
    let remote: ICECredentials

    /// An address to try.
    private struct Target: Hashable {
        var address: IPAddress
        var port: Int
        var isTCP: Bool
        var isAnnounced: Bool
    }

    /// Tries all candidates, and other addresses at the same ports.
    func paths(_ candidates: [Candidate], others: [IPAddress]) async -> [MediaPathObservation] {
        var targets = candidates.prefix(Self.maxAddresses).compactMap { candidate in
            IPAddress(candidate.address.host).map {
                Target(
                    address: $0, port: Int(candidate.address.port), isTCP: candidate.transport == .tcpPassive,
                    isAnnounced: true)
            }
        }
        let announced = targets
        for other in others.prefix(Self.maxAddresses) where !announced.contains(where: { $0.address == other }) {
            for one in announced {
                let target = Target(address: other, port: one.port, isTCP: one.isTCP, isAnnounced: false)
                if !targets.contains(target), targets.count < 3 * Self.maxAddresses { targets.append(target) }
            }
        }
        return await withTaskGroup(of: (Int, MediaPathObservation).self) { group in
            for (index, target) in targets.enumerated() {
                group.addTask { (index, await check(target)) }
            }
            var found: [(Int, MediaPathObservation)] = []
            for await one in group { found.append(one) }
            return found.sorted { $0.0 < $1.0 }.map { $0.1 }
        }
    }

    private func check(_ target: Target) async -> MediaPathObservation {
        var random = SystemRandomNumberGenerator()
        let check = BindingCheck(local: local, remote: remote, using: &random)
        let outcome = target.isTCP ? await overTCP(target, check) : await overUDP(target, check)
        return MediaPathObservation(
            address: target.address, port: target.port, isTCP: target.isTCP, isAnnounced: target.isAnnounced,
            outcome: outcome)
    }

    private func overUDP(_ target: Target, _ check: BindingCheck) async -> ExchangeOutcome {
        let address = target.address.transportAddress(port: UInt16(clamping: target.port))
        return await ProbeLimit.blocking(Self.limit + .seconds(1)) {
            DatagramProbe.exchange(with: address, within: Self.limit, first: check.request) { datagram in
                check.mappedAddress(in: datagram) == nil ? .wait : .finish(nil)
            }
        } ?? .silent
    }

    private func overTCP(_ target: Target, _ check: BindingCheck) async -> ExchangeOutcome {
        await ProbeLimit.within(Self.limit) { () -> ExchangeOutcome in
            do {
                return try await StreamProbe.open(target.address, port: target.port) { reader, outbound in
                    let length = UInt16(clamping: check.request.count)
                    try await outbound.write(
                        ByteBuffer(bytes: [UInt8(length >> 8), UInt8(length & 0xff)] + check.request))
                    while true {
                        let step = reader.bytes.withUnsafeBytes { StreamFraming.next(in: $0, at: 0) }
                        switch step {
                        case .frame(let range):
                            let frame = Array(reader.take(range.upperBound)[range])
                            if check.mappedAddress(in: frame) != nil { return .answered }
                        case .incomplete: guard try await reader.more() else { return .silent }
                        case .tooLong: return .silent
                        }
                    }
                }
            } catch {
                switch StreamProbe.outcome(of: error) {
                case .refused: return .refused
                case .connected, .timedOut: return .silent
                case .failed(let reason): return .unreachable(reason)
                }
            }
        } ?? .silent
    }
}

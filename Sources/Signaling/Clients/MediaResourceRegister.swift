import Wire

/// Who holds how many resources of WHIP and WHEP: each costs a peer connection, and nobody may have them all.
struct MediaResourceRegister: Equatable, Sendable {
    private var byAddress: [String: Int] = [:]
    /// By the token's fingerprint.
    private var byToken: [[UInt8]: Int] = [:]
    private(set) var count = 0

    /// Counts one more, unless that is too many.
    mutating func admit(_ arrival: ResourceArrival, _ rules: Rules) throws(WireError) {
        guard byAddress[arrival.address, default: 0] < rules.resourcesPerAddress else {
            throw WireError(
                .tooManyConnections, "Too many resources are held from your network; delete some.", retryable: true,
                retryAfter: Self.pause
            )
        }
        guard byToken[arrival.grant.fingerprint, default: 0] < rules.resourcesPerToken else {
            throw WireError(
                .tooManyConnections, "Too many resources are held with this token; delete some, or use another token.",
                retryable: true, retryAfter: Self.pause
            )
        }
        guard count < rules.resources else {
            throw WireError(
                .mediaUnavailable, "The server holds as many resources as it may; try again later.", retryable: true,
                retryAfter: Self.pause
            )
        }
        count += 1
        byAddress[arrival.address, default: 0] += 1
        byToken[arrival.grant.fingerprint, default: 0] += 1
    }

    /// Long enough for somebody else's to end.
    private static let pause: Duration = .seconds(10)

    mutating func release(address: String, fingerprint: [UInt8]) {
        count = max(0, count - 1)
        Self.lower(&byAddress[address])
        Self.lower(&byToken[fingerprint])
    }

    private static func lower(_ count: inout Int?) { count = count.flatMap { $0 > 1 ? $0 - 1 : nil } }
}

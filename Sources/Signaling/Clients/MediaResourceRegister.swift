import Wire

/// Counts WHIP and WHEP resources in total, per project, per address and per token. The server allows only a limited number,
/// because each needs a peer connection, and no single client may use up the limit.
struct MediaResourceRegister: Equatable, Sendable {
    private var byAddress: [String: Int] = [:]
    /// The number of resources per token, keyed by the token's fingerprint.
    private var byToken: [[UInt8]: Int] = [:]
    /// The number of resources per API key.
    private var byProject: [String: Int] = [:]
    private(set) var count = 0

    /// Counts a new resource; throws if a limit is reached.
    mutating func admit(_ arrival: ResourceArrival, _ context: Context) throws(WireError) {
        let rules = context.rules
        let apiKey = Project.apiKey(in: arrival.grant.session) ?? ""
        guard byAddress[arrival.address, default: 0] < rules.resourcesPerAddress else {
            throw WireError(
                .tooManyConnections, "Too many WHIP and WHEP resources from your network. Delete some first.",
                retryable: true, retryAfter: Self.pause
            )
        }
        guard byToken[arrival.grant.fingerprint, default: 0] < rules.resourcesPerToken else {
            throw WireError(
                .tooManyConnections,
                "Too many WHIP and WHEP resources with this token. Delete some or use another token.",
                retryable: true, retryAfter: Self.pause
            )
        }
        guard count < rules.resources else {
            throw WireError(
                .mediaUnavailable, "The server has reached its limit of WHIP and WHEP resources. Try again later.",
                retryable: true, retryAfter: Self.pause
            )
        }
        // With several projects, none gets more than half of the resources.
        guard !context.projects.areSeveral || byProject[apiKey, default: 0] < max(1, rules.resources / 2) else {
            throw WireError(
                .tooManyConnections,
                "This application has its share of the server's WHIP and WHEP resources. Delete some first.",
                retryable: true, retryAfter: Self.pause
            )
        }
        count += 1
        byProject[apiKey, default: 0] += 1
        byAddress[arrival.address, default: 0] += 1
        byToken[arrival.grant.fingerprint, default: 0] += 1
    }

    /// How long a rejected client should wait before the next attempt. By then, another resource may have ended.
    private static let pause: Duration = .seconds(10)

    mutating func release(_ resource: MediaResource) {
        count = max(0, count - 1)
        Self.lower(&byProject[Project.apiKey(in: resource.grant.session) ?? ""])
        Self.lower(&byAddress[resource.address])
        Self.lower(&byToken[resource.grant.fingerprint])
    }

    private static func lower(_ count: inout Int?) { count = count.flatMap { $0 > 1 ? $0 - 1 : nil } }
}

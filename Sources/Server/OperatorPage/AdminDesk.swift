import Cluster
import NIOCore
import Signaling
import Wire

/// What an operator decides on the operator's page. A returned decision is stored with its entry in the audit log, and
/// bans are in effect.
struct AdminDesk: Sendable {
    /// Maximum length of a reason in bytes of UTF-8.
    static let maxReason = 500
    /// Reports, and entries of the audit log, in one response.
    static let maxRows = 100
    /// Bans in one response, the newest.
    static let maxBans = 500

    let gateway: NIOLoopBound<Gateway>
    let storage: any Storage
    let clock: ServerClock

    /// A ban that an operator requests.
    struct BanRequest: Equatable, Sendable {
        var reason: String
        /// Nil for a permanent ban.
        var duration: Duration?

        /// Reads `reason` and `duration` of a request. Without `duration`, the ban is permanent.
        init(_ members: JSONObject) throws(WireError) {
            switch members["reason"] {
            case nil: reason = ""
            case .string(let text)? where text.utf8.count <= AdminDesk.maxReason: reason = text.withoutNUL
            default:
                throw WireError(.malformed, "\"reason\" must be text of at most \(AdminDesk.maxReason) bytes.")
            }
            guard let wanted = members["duration"] else {
                duration = nil
                return
            }
            guard case .string(let text) = wanted, let length = DurationText.parse(text), length > .zero,
                length <= Self.longest
            else {
                throw WireError(
                    .malformed,
                    "\"duration\" must be a number and a unit, such as 2h or 30d, of at most 3650d. "
                        + "Omit it for a permanent ban.")
            }
            duration = length
        }

        private static let longest: Duration = .seconds(3650 * 86400)
    }

    // MARK: Reports

    func reports(includingClosed: Bool) async throws -> [StoredReport] {
        try await storage.reports(includingClosed: includingClosed, limit: Self.maxRows)
    }

    /// Bans the reported person, their account and their address, and closes the report. If this fails halfway, the report
    /// stays open, and doing it again is harmless.
    ///
    /// - Returns: what was banned.
    func ban(report id: Int64, _ request: BanRequest) async throws -> [Ban] {
        guard let stored = try await storage.report(id: id) else { throw Self.noReport }
        let bans = try await storage.banSubjects(of: stored.report).map { makeBan($0, request) }
        do {
            for ban in bans { try await add(ban) }
        } catch {
            // What is stored counts, also if not all of it is.
            try? await applyBans()
            throw error
        }
        try await applyBans()
        try await storage.closeReport(id: id, at: clock.wallNow, recording: entry("report.close", "\(id)", "banned"))
        return bans
    }

    /// Closes a report without a ban.
    func dismiss(report id: Int64) async throws {
        let closing = entry("report.close", "\(id)", "dismissed")
        guard try await storage.closeReport(id: id, at: clock.wallNow, recording: closing) else { throw Self.noReport }
    }

    /// Warns the reported person on all devices that are connected to this server, and closes the report.
    ///
    /// - Parameter text: a sentence for the person; nil for the client's own.
    /// - Returns: whether the person sees the warning. If not, nothing was sent, and the report stays open.
    func warn(report id: Int64, _ text: String?) async throws -> WarningReach {
        guard let stored = try await storage.report(id: id), stored.closedAt == nil else { throw Self.noReport }
        // The reported identity may have been linked to an account since the report.
        var person = stored.report.against
        if case .person(let owner) = try await storage.resolve(person) { person = owner }
        let (gateway, warned) = (gateway, person)
        let reach = try await gateway.eventLoop.submit {
            let reach = gateway.value.runner.hub.warningReach(warned)
            if reach == .shown { gateway.value.runner.submit(.warned(warned, text)) }
            return reach
        }.get()
        guard reach == .shown else { return reach }
        let detail = text.map { "warned: \($0)" } ?? "warned"
        try await storage.closeReport(id: id, at: clock.wallNow, recording: entry("report.close", "\(id)", detail))
        return reach
    }

    /// Reads the sentence of a warning; nil if there is none.
    static func warning(_ members: JSONObject) throws(WireError) -> String? {
        switch members["text"] {
        case nil: return nil
        case .string(let text)? where text.utf8.count <= Limits.warning: return text.isEmpty ? nil : text.withoutNUL
        default: throw WireError(.malformed, "\"text\" must be text of at most \(Limits.warning) bytes.")
        }
    }

    /// Returns the sample of the reported person's camera, as JPEG.
    func sample(report id: Int64) async throws -> [UInt8] {
        guard let sample = try await storage.report(id: id)?.report.sample else {
            throw WireError(.notFound, "There is no image with this report, or the report was deleted.")
        }
        return sample.jpeg
    }

    private static let noReport = WireError(
        .notFound, "This report does not exist, or was closed or deleted. Load the list again.")

    // MARK: Bans

    /// Returns the newest active bans, and how many there are in all.
    func bans() async throws -> (count: Int, bans: [Ban]) {
        let all = try await storage.bans(at: clock.wallNow)
        return (all.count, Array(all.suffix(Self.maxBans).reversed()))
    }

    /// Returns everything that is banned now.
    func bannedSubjects() async throws -> Set<BanSubject> {
        Set(try await storage.bans(at: clock.wallNow).map(\.subject))
    }

    func ban(subject: BanSubject, _ request: BanRequest) async throws -> Ban {
        let ban = makeBan(subject, request)
        try await add(ban)
        try await applyBans()
        return ban
    }

    func lift(_ subject: BanSubject) async throws {
        guard try await storage.removeBan(subject, recording: entry("ban.remove", subject.text)) else {
            throw WireError(.notFound, "There is no ban of this identity or address. Load the list again.")
        }
        try await applyBans()
    }

    private func makeBan(_ subject: BanSubject, _ request: BanRequest) -> Ban {
        let now = clock.wallNow
        return Ban(
            subject: subject, reason: request.reason, createdAt: now, expiresAt: request.duration.map { now + $0 })
    }

    private func add(_ ban: Ban) async throws {
        try await storage.addBan(ban, recording: entry("ban.add", ban.subject.text, ban.reason))
    }

    /// Applies the stored bans now. `BanWatch` notices only changes of other processes.
    private func applyBans() async throws { try await gateway.applyBans(of: storage) }

    // MARK: Nodes

    /// Takes a node of the cluster out of service, or puts it back. Does nothing if this node is in that state already.
    ///
    /// - Returns: the response with the node.
    func change(node name: String, _ state: NodeRecord.State) async throws -> GateResponse {
        let gateway = gateway
        let change = try await gateway.eventLoop.submit { try gateway.value.change(name, to: state) }.get()
        try await change.finish(state)
        if change.isNew { try await storage.record(entry(state.auditAction, name)) }
        return try await gateway.eventLoop.submit { try gateway.value.response(to: change, state, of: name) }.get()
    }

    // MARK: Audit log

    func audit() async throws -> [AuditEntry] {
        try await storage.audit(since: .distantPast, limit: Self.maxRows)
    }

    private func entry(_ action: String, _ subject: String, _ detail: String = "") -> AuditEntry {
        AuditEntry(
            at: clock.wallNow, actor: AuditEntry.operatorActor, action: action, subject: subject, detail: detail)
    }
}

import Signaling
import Wire

/// Responses of the operator's page. Times are milliseconds since 1970.
extension GateResponse {
    /// The samples after `since`, oldest first.
    ///
    /// - Parameter node: the name of this node; nil if the server is alone.
    static func overview(
        _ history: AdminHistory, since: Timestamp, now: Timestamp, startedAt: Timestamp, certificateTrouble: String?,
        node: String?
    ) -> Self {
        json { writer in
            writer.member("version", OperatingMetrics.version)
            writer.member("now", now.milliseconds)
            writer.member("startedAt", startedAt.milliseconds)
            writer.member("intervalMs", AdminHistory.interval.wholeMilliseconds)
            writer.member("keptSamples", AdminHistory.maxSamples)
            if let certificateTrouble { writer.member("certificateTrouble", certificateTrouble) }
            if let node { writer.member("node", node) }
            writer.list("samples", history.samples.filter { $0.at > since }) { $0.write($1) }
        }
    }

    static func sessions(
        _ overview: (count: Int, sessions: [SessionOverview]), from first: Int, pageSize: Int, _ log: AdminMediaLog
    ) -> Self {
        json { writer in
            writer.member("count", overview.count)
            writer.member("from", first)
            writer.member("pageSize", pageSize)
            writer.list("sessions", overview.sessions) { $0.write($1, log) }
            writer.list("switches", log.switches.suffix(50).reversed()) { $0.write($1) }
        }
    }

    /// - Parameter openCount: the number of all reports that are not closed.
    static func reports(_ reports: [StoredReport], openCount: Int, banned: Set<BanSubject>) -> Self {
        json { writer in
            writer.member("openCount", openCount)
            writer.list("reports", reports) { $0.write($1, banned) }
        }
    }

    /// `obstacle` says why a warning was not sent: `notConnected`, or `ignored` if no connected client of the person shows warnings.
    static func warned(_ reach: WarningReach) -> Self {
        json { writer in
            writer.member("delivered", reach == .shown)
            switch reach {
            case .shown: break
            case .ignored: writer.member("obstacle", "ignored")
            case .notConnected: writer.member("obstacle", "notConnected")
            }
        }
    }

    static func bans(_ bans: [Ban], count: Int) -> Self {
        json { writer in
            writer.member("count", count)
            writer.list("bans", bans) { $0.write($1) }
        }
    }

    static func audit(_ entries: [AuditEntry]) -> Self {
        json { writer in
            writer.list("entries", entries) { writer, entry in
                writer.member("at", entry.at.milliseconds)
                writer.member("actor", entry.actor)
                writer.member("action", entry.action)
                writer.member("subject", entry.subject)
                writer.member("detail", entry.detail)
            }
        }
    }

    static func recordings(_ archives: StoredPage<ArchiveRecord>, _ broadcasts: StoredPage<BroadcastRecord>) -> Self {
        json { writer in
            writer.member("archiveCount", archives.count)
            writer.list("archives", archives.records) { writer, archive in
                writer.member("id", "\(archive.id)")
                writer.member("sessionId", archive.session.text)
                writer.member("name", archive.request.name ?? "")
                writer.member("status", archive.status.rawValue)
                writer.member("reason", archive.shownReason ?? "")
                writer.member("at", archive.createdAt.milliseconds)
                writer.member("durationMs", archive.duration.wholeMilliseconds)
                writer.member("bytes", archive.size)
            }
            writer.member("broadcastCount", broadcasts.count)
            writer.list("broadcasts", broadcasts.records) { writer, broadcast in
                writer.member("id", "\(broadcast.id)")
                writer.member("sessionId", broadcast.session.text)
                writer.member("status", broadcast.status.rawValue)
                writer.member("reason", broadcast.reason ?? "")
                writer.member("at", broadcast.createdAt.milliseconds)
            }
        }
    }
}

extension JSONWriter {
    /// Writes a member whose value is a rate or a share, rounded to hundredths: that is enough, and keeps the response short.
    mutating func member(_ name: String, rate: Double) {
        self.name(name)
        value(.number((rate * 100).rounded() / 100))
    }

    fileprivate mutating func write(_ sample: AdminSample) {
        let figures = sample.figures
        member("at", sample.at.milliseconds)
        for (name, count) in [
            ("clients", figures.clients), ("people", figures.people), ("sessions", figures.sessions),
            ("rooms", figures.rooms), ("waiting", figures.waiting), ("matches", figures.matches),
            ("calls", figures.activeCalls), ("archives", figures.archives), ("broadcasts", figures.broadcasts),
        ] {
            member(name, count)
        }
        if let cores = sample.cores { member("cores", rate: cores) }
        member("bitsIn", rate: sample.bitsIn.rounded())
        member("bitsOut", rate: sample.bitsOut.rounded())
        member("packets", rate: sample.packets)
        member("switches", rate: sample.switches)
    }

    fileprivate mutating func write(_ session: SessionOverview, _ log: AdminMediaLog) {
        member("id", session.id.text)
        member("apiKey", session.apiKey)
        member("mediaMode", session.mediaMode.rawValue)
        if let room = session.room { member("room", room.text) }
        member("recorded", session.isRecorded)
        member("broadcast", session.isBroadcast)
        member("memberCount", session.memberCount)
        member("streamCount", session.streamCount)
        list("members", session.members) { writer, member in
            writer.member("connectionId", "\(member.connection)")
            writer.member("identity", "\(member.identity)")
            writer.member("name", member.name)
            writer.member("joinedAt", member.joinedAt.milliseconds)
            writer.member("reconnecting", member.isReconnecting)
            writer.member("subscriptions", member.subscriptions)
            writer.list("streams", member.streams) { $0.write($1, log) }
            if let last = log.lastSwitch(of: member.connection) {
                writer.name("lastSwitch")
                writer.beginObject()
                writer.write(last)
                writer.endObject()
            }
        }
    }

    fileprivate mutating func write(_ stream: StreamInfo, _ log: AdminMediaLog) {
        member("streamId", "\(stream.id)")
        member("audio", stream.hasAudio)
        member("video", stream.hasVideo)
        member("kind", (stream.videoType ?? .camera).rawValue)
        if let width = stream.width, let height = stream.height {
            member("width", width)
            member("height", height)
        }
        let quality = log.quality(of: stream.id)
        member("quality", (quality?.level ?? .good).rawValue)
        if let reason = quality?.reason { member("qualityReason", reason.rawValue) }
    }

    fileprivate mutating func write(_ entry: AdminMediaLog.Switch) {
        member("at", entry.at.milliseconds)
        member("sessionId", entry.change.session.text)
        member("subscriber", "\(entry.subscriber)")
        member("streamId", "\(entry.change.stream)")
        member("reason", entry.change.reason.rawValue)
        member("paused", entry.change.videoPaused)
        if let rid = entry.change.rid { member("layer", rid) }
        if let limited = entry.change.limited { member("limited", limited) }
    }

    fileprivate mutating func write(_ stored: StoredReport, _ banned: Set<BanSubject>) {
        let report = stored.report
        member("id", stored.id)
        member("at", report.createdAt.milliseconds)
        if let closedAt = stored.closedAt { member("closedAt", closedAt.milliseconds) }
        member("matchId", "\(report.match)")
        member("reason", report.reason)
        member("against", "\(report.against)")
        member("againstAddress", report.againstAddress)
        member("by", "\(report.by)")
        member("byAddress", report.byAddress)
        member("banned", banned.contains(.identity(report.against)))
        list("lines", report.lines) { writer, line in
            writer.member("at", line.at.milliseconds)
            writer.member("from", line.from == report.by ? "reporter" : "reported")
            writer.member("text", line.text)
        }
        guard let sample = report.sample else { return }
        name("sample")
        beginObject()
        member("at", sample.at.milliseconds)
        if let verdict = sample.verdict { member("verdict", verdict.rawValue) }
        member("warnings", sample.warnings)
        member("blurs", sample.blurs)
        endObject()
    }

    fileprivate mutating func write(_ ban: Ban) {
        member("subject", ban.subject.text)
        member("reason", ban.reason)
        member("at", ban.createdAt.milliseconds)
        if let end = ban.expiresAt { member("until", end.milliseconds) }
    }
}

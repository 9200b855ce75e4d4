import Wire

/// An archive into which a session is recorded.
struct RunningArchive: Equatable, Sendable {
    /// What members know about the archive.
    var info: ArchiveInfo
    var tag: String
    /// Whether the archive was started because the session is always recorded.
    var isAutomatic: Bool
}

/// Who has caused an archive.
enum ArchiveCause {
    /// The application's server has requested it.
    case application
    /// A client has: a moderator, or the first member of a session that is always recorded.
    case client
}

/// Starts archives of a session. They decide what is recorded.
extension Session {
    /// Starts an archive, and notifies the members.
    ///
    /// - Parameter cause: whose budget is charged.
    /// - Returns: the record of the archive, which is stored before anyone is notified.
    mutating func startArchive(
        _ request: ArchiveRequest, by cause: ArchiveCause, _ context: inout Context
    ) throws(WireError) -> ArchiveRecord {
        try permitArchive(request, context)
        switch cause {
        case .application: try context.takeDecision(of: apiKey)
        case .client: try context.takeRecording(of: apiKey)
        }
        let record = archiveRecord(request, &context)
        let asks = context.rules.recordingConsent == .ask
        let info = ArchiveInfo(record.id, name: request.name, asks: asks ? true : nil)
        context.persist(.archiveStored(record))
        report(.archive(record), &context)
        let accepted = Set(order.filter { members[$0]?.acceptsRecording == true })
        archives.append(RunningArchive(info: info, tag: request.tag, isAutomatic: request.isAutomatic))
        broadcast(.session(.archiveStarted(.init(session: id, info))), &context)
        context.tell(.archive(record.id, .begin(record, presentStreams, accepted: accepted)))
        return record
    }

    func archiveRecord(_ request: ArchiveRequest, _ context: inout Context) -> ArchiveRecord {
        var record = ArchiveRecord(
            id: context.newID(), project: apiKey, session: id, request: request, createdAt: context.wallNow)
        record.node = context.nodeName ?? ""
        return record
    }

    private func permitArchive(_ request: ArchiveRequest, _ context: Context) throws(WireError) {
        guard context.rules.recordsSessions else {
            throw WireError(.recordingUnavailable, "Recording is not available on this server.")
        }
        guard request.output == .individual || context.rules.composesArchives else {
            throw .composingUnavailable
        }
        try permit(ArchiveRecord.self, context)
        guard !archives.contains(where: { $0.tag == request.tag }) else {
            throw .archiveConflict(
                "This session is already being recorded. Stop that archive first, or set another multiArchiveTag.")
        }
        guard context.hasRecordingSpace else { throw .recordingSpace }
        guard context.runningArchives < context.rules.maxRunningArchives else {
            throw WireError(
                .mediaUnavailable, "This server records as many sessions as it may. Try again when one has stopped.",
                retryable: true, retryAfter: .seconds(60))
        }
    }

    mutating func perform(
        _ operation: CompositionOperation, on archive: ArchiveID, _ socket: SocketID, _ context: inout Context
    ) {
        guard archives.contains(where: { $0.info.archive == archive }) else {
            return context.answer(socket, .refused(.archiveNotRunning))
        }
        context.tell(.archive(archive, .operated(operation, .application(socket))))
    }

    // MARK: Moderators

    /// How moderators may record the session; nil if they may not.
    func moderatorArchives(_ context: Context) -> ArchiveOutput? {
        let rules = context.rules
        guard rules.moderatorsMayRecord, rules.recordsSessions, isRouted, !isPrivate(context) else { return nil }
        return rules.composesArchives ? .composed : .individual
    }

    mutating func startArchive(
        _ verb: SessionVerb.StartArchive, by member: Member, _ context: inout Context
    ) throws(WireError) {
        try member.rights.permit(.record(isEnabled: context.rules.moderatorsMayRecord))
        guard verb.name.map({ ArchiveRequest.isText($0, max: ArchiveRequest.maxName) }) ?? true else {
            throw WireError(
                .malformed,
                "The name of an archive must not exceed \(ArchiveRequest.maxName) characters or contain control characters."
            )
        }
        var request = ArchiveRequest()
        (request.name, request.output) = (verb.name.flatMap { $0.isEmpty ? nil : $0 }, verb.output ?? request.output)
        _ = try startArchive(request, by: .client, &context)
    }

    /// Stops an archive of this session, which answers the request.
    func stopArchive(
        _ archive: ArchiveID, by member: Member, re: UInt64, _ context: inout Context
    ) throws(WireError) {
        try member.rights.permit(.record(isEnabled: context.rules.moderatorsMayRecord))
        guard archives.contains(where: { $0.info.archive == archive }) else { throw .archiveNotRunning }
        context.tell(.archive(archive, .operated(.stop, .member(member.connection.id, re: re))))
    }

    // MARK: Members

    /// An archive has stopped. When the session is no longer recorded, the answers of the members are forgotten: the next
    /// archive asks again.
    ///
    /// - Parameter reason: nil after an error.
    mutating func archiveStopped(_ archive: ArchiveID, _ reason: RecordingEnd?, _ context: inout Context) {
        guard let index = archives.firstIndex(where: { $0.info.archive == archive }) else { return }
        let stopped = archives.remove(at: index)
        if stopped.isAutomatic {
            continueAutomatically(after: reason, &context)
        } else if !streams.isEmpty {
            // It may have been in the place of the automatic archive.
            recordAutomatically(&context)
        }
        broadcast(.session(.archiveStopped(.init(session: id, archive: archive))), &context)
        guard archives.isEmpty else { return }
        for client in order { members[client]?.acceptsRecording = nil }
    }
}

import Wire

extension LoggedCall {
    /// Converts log records to messages.
    static func list(_ records: [CallRecord], _ project: Project) -> [LoggedCall] {
        records.map { LoggedCall($0, project) }
    }

    /// Converts a log record for its owner.
    init(_ record: CallRecord, _ project: Project) {
        self.init()
        call = record.call
        direction = record.direction
        outcome = record.outcome
        person = PersonInfo(id: project.personID(of: record.other), name: record.otherName, online: false)
        video = record.video
        at = record.at
        duration = record.duration
        seen = record.isSeen
    }
}

extension CallNotice.Ended {
    /// - Parameter outcome: the outcome to show on one device, instead of the outcome in the record.
    init(_ record: CallRecord, as outcome: CallOutcome? = nil, into: CallID? = nil, _ other: PersonID) {
        self.init()
        call = record.call
        reason = outcome ?? record.outcome
        direction = record.direction
        person = PersonInfo(id: other, name: record.otherName, online: false)
        video = record.video
        at = record.at
        duration = record.duration
        self.into = reason == .merged ? into : nil
    }
}

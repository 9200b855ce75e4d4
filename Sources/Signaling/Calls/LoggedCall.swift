import Wire

extension LoggedCall {
    /// Converts log records to the form in which messages contain them.
    static func list(_ records: [CallRecord], _ project: Project) -> [LoggedCall] {
        records.map { LoggedCall($0, project) }
    }

    /// Converts a log record to the form in which it is sent to the person whose call log contains it.
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
    /// Creates the message that notifies a device of the end of a call.
    ///
    /// - Parameters:
    ///   - outcome: the outcome to show on this device; nil to show the outcome in the record.
    ///   - into: the call in which both people continue; ignored unless the outcome is `merged`.
    ///   - other: the public id of the other person.
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

import Wire

/// A broadcast of a session.
struct RunningBroadcast: Equatable, Sendable {
    /// What members know about the broadcast.
    var info: BroadcastInfo
    var tag: String
}

/// Starts broadcasts of a session. They decide what is broadcast.
extension Session {
    /// Starts a broadcast, and notifies the members.
    ///
    /// - Returns: the record of the broadcast, which is stored before anyone is notified.
    mutating func startBroadcast(
        _ request: BroadcastRequest, _ context: inout Context
    ) throws(WireError) -> BroadcastRecord {
        try permitBroadcast(request, context)
        try context.takeDecision(of: apiKey)
        var record = BroadcastRecord(
            id: context.newID(), project: apiKey, session: id, request: request,
            key: .random(using: &context.random), createdAt: context.wallNow)
        record.node = context.nodeName ?? ""
        let info = BroadcastInfo(record.id, asks: context.rules.recordingConsent == .ask ? true : nil)
        context.persist(.broadcastStored(record))
        report(.broadcast(record), &context)
        let accepted = Set(order.filter { members[$0]?.acceptsBroadcast == true })
        broadcasts.append(RunningBroadcast(info: info, tag: request.tag))
        broadcast(.session(.broadcastStarted(.init(session: id, info))), &context)
        context.tell(.broadcast(record.id, .begin(record, presentStreams, accepted: accepted)))
        return record
    }

    private func permitBroadcast(_ request: BroadcastRequest, _ context: Context) throws(WireError) {
        guard context.rules.broadcastsSessions else { throw .broadcastUnavailable }
        try permit(BroadcastRecord.self, context)
        guard !broadcasts.contains(where: { $0.tag == request.tag }) else {
            throw .broadcastConflict(
                "This session is already being broadcast. Stop that broadcast first, or set another multiBroadcastTag.")
        }
        guard context.runningBroadcasts < context.rules.maxBroadcasts else {
            throw WireError(
                .mediaUnavailable,
                "This server has reached its limit of broadcasts (broadcast.maxBroadcasts). Try again when one has stopped.",
                retryable: true, retryAfter: .seconds(60))
        }
    }

    mutating func perform(
        _ operation: CompositionOperation, on broadcast: BroadcastID, _ socket: SocketID, _ context: inout Context
    ) {
        guard broadcasts.contains(where: { $0.info.broadcast == broadcast }) else {
            return context.answer(socket, .refused(.broadcastNotRunning))
        }
        context.tell(.broadcast(broadcast, .operated(operation, socket)))
    }

    /// A broadcast has ended. When there is none left, the answers of the members are forgotten: the next one asks again.
    mutating func broadcastStopped(_ broadcast: BroadcastID, _ context: inout Context) {
        guard let index = broadcasts.firstIndex(where: { $0.info.broadcast == broadcast }) else { return }
        broadcasts.remove(at: index)
        self.broadcast(.session(.broadcastStopped(.init(session: id, broadcast: broadcast))), &context)
        guard broadcasts.isEmpty else { return }
        for client in order { members[client]?.acceptsBroadcast = nil }
    }
}

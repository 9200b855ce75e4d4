import Wire

/// Performs the operations that applications' servers request. These servers are not members of the session, so no
/// role restricts them.
extension Session {
    mutating func perform(_ operation: SessionOperation, _ socket: SocketID, _ context: inout Context) {
        if case .archive(let archive, let change) = operation { return perform(change, on: archive, socket, &context) }
        if case .broadcast(let broadcast, let change) = operation {
            return perform(change, on: broadcast, socket, &context)
        }
        let reply: OperatorReply
        do throws(WireError) { reply = try self.reply(to: operation, &context) } catch { reply = .refused(error) }
        context.answer(socket, reply)
    }

    private mutating func reply(
        to operation: SessionOperation, _ context: inout Context
    ) throws(WireError) -> OperatorReply {
        // A session without members is kept for a while, but for an application it is no longer active.
        guard !members.isEmpty else { throw .sessionNotActive }
        switch operation {
        case .describe(let stream?): return .streams([description(of: try existing(stream))])
        case .describe(nil):
            let published = order.flatMap { members[$0]?.streams ?? [] }.compactMap { streams[$0] }
            return .streams(published.map(description))
        case .signal(let type, let data, let receiver):
            try signal(type: type, data: data, from: nil, to: receiver, &context)
        case .setLayoutClasses(let layouts):
            for layout in layouts { _ = try existing(layout.stream) }
            for layout in layouts {
                streams[layout.stream]?.layoutClasses = layout.classes
                forward(.classes(layout.stream, layout.classes), &context)
            }
            return .streams(layouts.compactMap { streams[$0.stream] }.map(description))
        case .disconnect(let connection):
            guard let member = members[connection] else { throw .noConnection }
            // A removal that is refused must not use up the budget.
            if member.match == nil { try context.permitRevocation(of: apiKey) }
            try context.takeDecision(of: apiKey)
            try disconnect(member, by: nil, &context)
        case .mute(let stream): mute(stream, of: try existing(stream).stream.connection, &context)
        case .muteAll(let excluded):
            try setMuted(excluded != nil, by: .application(apiKey), excluding: excluded ?? [], &context)
        case .startArchive(let request): return .archive(try startArchive(request, by: .application, &context))
        case .startBroadcast(let request): return .broadcast(try startBroadcast(request, &context))
        // `perform` passes these to the archive or broadcast, which answers them.
        case .archive, .broadcast: break
        }
        return .done
    }

    private func description(of published: Published) -> StreamDescription {
        StreamDescription(published.stream, layoutClasses: published.layoutClasses)
    }
}

extension WireError {
    static let sessionNotActive = WireError(
        .notFound, "Nobody is connected to this session. Try again when a client has joined it.")
}

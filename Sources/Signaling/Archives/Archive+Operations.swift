import Wire

/// Performs the operations that applications' servers and moderators request.
extension Archive {
    mutating func perform(_ operation: ArchiveOperation, _ requester: ArchiveRequester, _ context: inout Context) {
        do throws(WireError) {
            guard record.status.isRunning else { throw .archiveNotRunning }
            switch operation {
            case .stop:
                guard !record.request.isAutomatic else {
                    throw .archiveConflict("This session is always recorded. Its archive ends after everyone has left.")
                }
                stop(.requested, &context)
            case .setLayout(let layout): try setLayout(layout, &context)
            case .addStream(let selection): try add(selection, &context)
            case .removeStream(let stream): try deselect(stream, &context)
            }
            context.answer(requester, record)
        } catch {
            context.refuse(requester, error)
        }
    }

    private mutating func setLayout(_ layout: ArchiveLayout, _ context: inout Context) throws(WireError) {
        guard record.request.output == .composed else {
            throw WireError(.malformed, "An individual archive has no layout. Only composed archives have one.")
        }
        change { $0.request.layout = layout }
        store(&context)
        if phase == .recording { noteLayout(&context) }
    }

    private mutating func add(_ selection: ArchiveSelection, _ context: inout Context) throws(WireError) {
        try permitSelection(context)
        guard streams[selection.stream] != nil else {
            throw WireError(.notFound, "This stream is not in the archive's session. Use the ID of one that is.")
        }
        guard selection.hasAudio || selection.hasVideo else {
            throw WireError(.malformed, "Record the audio of a stream, its video, or both.")
        }
        let former = record.selection.first { $0.stream == selection.stream }
        guard former != selection else { return }
        guard former != nil || record.selection.count < context.rules.streamsPerArchive else {
            throw WireError(
                .archiveConflict,
                "An archive can contain at most \(context.rules.streamsPerArchive) streams. Remove one first.")
        }
        change { record in
            record.selection.removeAll { $0.stream == selection.stream }
            record.selection.append(selection)
        }
        store(&context)
        guard phase == .recording else { return }
        // Another choice of tracks begins another file.
        if streams[selection.stream]?.isRecorded == true { remove(selection.stream, &context) }
        context.record(
            .note(
                record.id,
                .include(selection.stream, audio: selection.hasAudio, video: selection.hasVideo)))
        update(&context)
    }

    private mutating func deselect(_ stream: StreamID, _ context: inout Context) throws(WireError) {
        try permitSelection(context)
        guard record.selection.contains(where: { $0.stream == stream }) else {
            throw WireError(.notFound, "This stream is not in the archive.")
        }
        change { record in record.selection.removeAll { $0.stream == stream } }
        store(&context)
        guard phase == .recording else { return }
        context.record(.note(record.id, .include(stream, audio: false, video: false)))
        update(&context)
    }

    private func permitSelection(_ context: Context) throws(WireError) {
        guard record.request.streamMode == .manual else {
            throw WireError(
                .archiveConflict,
                "This archive records all streams. Start one with streamMode \"manual\" to choose them.")
        }
    }
}

extension Context {
    /// Answers a request that has changed an archive.
    fileprivate mutating func answer(_ requester: ArchiveRequester, _ record: ArchiveRecord) {
        switch requester {
        case .application(let socket): answer(socket, .archive(record))
        case .member(let client, let re): send(.ok(.init(re: re)), to: client)
        }
    }

    /// Refuses a request to change an archive.
    mutating func refuse(_ requester: ArchiveRequester, _ error: WireError) {
        switch requester {
        case .application(let socket): answer(socket, .refused(error))
        case .member(let client, let re): fail(error, re: re, to: client)
        }
    }
}

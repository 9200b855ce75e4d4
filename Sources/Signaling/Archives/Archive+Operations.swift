import Wire

/// Performs the operations that applications' servers and moderators request.
extension Archive {
    mutating func perform(_ operation: CompositionOperation, _ requester: ArchiveRequester, _ context: inout Context) {
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

    private mutating func setLayout(_ layout: CompositionLayout, _ context: inout Context) throws(WireError) {
        guard record.request.output == .composed else {
            throw WireError(.malformed, "An individual archive has no layout. Only composed archives have one.")
        }
        change { $0.request.layout = layout }
        store(&context)
        if phase == .recording { noteLayout(&context) }
    }

    private mutating func add(_ selected: SelectedStream, _ context: inout Context) throws(WireError) {
        var changed = record
        guard try changed.select(selected, of: streams, max: context.rules.streamsPerArchive) else { return }
        change { $0 = changed }
        store(&context)
        guard phase == .recording else { return }
        // Another choice of tracks begins another file.
        if streams.isIncluded(selected.stream) { remove(selected.stream, &context) }
        context.record(
            .note(record.id, .include(selected.stream, audio: selected.hasAudio, video: selected.hasVideo)))
        update(&context)
    }

    private mutating func deselect(_ stream: StreamID, _ context: inout Context) throws(WireError) {
        var changed = record
        try changed.deselect(stream)
        change { $0 = changed }
        store(&context)
        guard phase == .recording else { return }
        context.record(.note(record.id, .include(stream, audio: false, video: false)))
        update(&context)
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

import Wire

/// Performs the operations that applications' servers request.
extension Archive {
    mutating func perform(_ operation: ArchiveOperation, _ socket: SocketID, _ context: inout Context) {
        do throws(WireError) {
            guard record.status.isRunning else { throw .archiveNotRunning }
            switch operation {
            case .stop: stop(.requested, &context)
            case .setLayout(let layout): try setLayout(layout, &context)
            case .addStream(let selection): try add(selection, &context)
            case .removeStream(let stream): try deselect(stream, &context)
            }
            context.answer(socket, .archive(record))
        } catch {
            context.answer(socket, .refused(error))
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

import Wire

/// How a session is always recorded (OpenTok's `archiveMode` `always`).
struct AutomaticArchive: Equatable, Sendable {
    var resolution: CompositionResolution
    /// When to try again after an archive could not start or has failed; nil if none is due.
    var retryAt: Timestamp?
    /// Whether a refused start was stored after the last one that succeeded.
    var isRefusalStored = false
}

/// Starts the archives of a session that is always recorded: with the first member, and again after an archive has ended. The
/// session has at most one at a time.
extension Session {
    /// Starts an archive if the session is always recorded, has members, and has no archive yet.
    mutating func recordAutomatically(_ context: inout Context) {
        guard let automatic, automatic.retryAt.map({ $0 <= context.now }) ?? true else { return }
        self.automatic?.retryAt = nil
        guard !archives.contains(where: { $0.tag.isEmpty }) else { return }
        var request = ArchiveRequest()
        (request.resolution, request.isAutomatic) = (automatic.resolution.rawValue, true)
        do throws(WireError) {
            _ = try startArchive(request, by: .client, &context)
            self.automatic?.isRefusalStored = false
        } catch {
            self.automatic?.retryAt = context.now + context.rules.archiveRetry
            storeRefusal(of: request, error, &context)
        }
    }

    /// The archive of a session that is always recorded has ended.
    ///
    /// - Parameter reason: nil after an error.
    mutating func continueAutomatically(after reason: RecordingEnd?, _ context: inout Context) {
        switch reason {
        // Begins before the members are notified of the end, so that their consent still applies.
        case .maxDuration: recordAutomatically(&context)
        // The next published stream starts another one.
        case .idle, .sessionEnded, .requested, .serverRestarted: break
        case .diskFull, nil: automatic?.retryAt = context.now + context.rules.archiveRetry
        }
    }

    /// Stores and reports that the session is not recorded, once, because no request gets the error.
    private mutating func storeRefusal(of request: ArchiveRequest, _ error: WireError, _ context: inout Context) {
        guard automatic?.isRefusalStored == false, (try? context.takeRecording(of: apiKey)) != nil else { return }
        automatic?.isRefusalStored = true
        var record = archiveRecord(request, &context)
        record.status = .failed
        record.reason = RecordingFailure(refusal: error).phrase
        context.persist(.archiveStored(record))
        report(.archive(record), &context)
    }
}

extension RecordingFailure {
    fileprivate init(refusal: WireError) {
        self =
            switch refusal.code {
            case .mediaUnavailable, .rateLimited: .tooMany
            case .storageFull: .diskFull
            default: refusal == .composingUnavailable ? .cannotCompose : .disabled
            }
    }
}

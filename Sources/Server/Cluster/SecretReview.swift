import Wire

/// Decides which secrets of a project file are valid. The previous secret expires without an event, so the secrets are checked with
/// each renewal of the lease, at most once a minute.
struct SecretReview {
    /// The least time between two looks. A former secret opens entries at most that much longer than tokens with it are accepted,
    /// which is little against an overlap of hours.
    static let interval = Duration.seconds(60)

    private var project: ProjectFile
    private var reviewedAt: Timestamp
    private(set) var secrets: SealingSecrets

    init(_ project: ProjectFile, at now: Timestamp) {
        (self.project, reviewedAt) = (project, now)
        secrets = SealingSecrets(project, at: now)
    }

    /// Looks at a project file that has changed. Returns the secrets that count now if they are others than before.
    mutating func use(_ project: ProjectFile, at now: Timestamp) -> SealingSecrets? {
        (self.project, reviewedAt) = (project, now)
        let found = SealingSecrets(project, at: now)
        guard found != secrets else { return nil }
        secrets = found
        return found
    }

    /// Looks again if the last look was at least ``interval`` ago, or if the clock was set back since. Returns the secrets that count
    /// now if they are others than before.
    mutating func review(at now: Timestamp) -> SealingSecrets? {
        guard now < reviewedAt || now >= reviewedAt + Self.interval else { return nil }
        return use(project, at: now)
    }
}

extension SealingSecrets {
    /// The secrets of a project file. That of before the last rotation counts for as long as tokens with it do.
    init(_ project: ProjectFile, at now: Timestamp) {
        let previous = project.previous.flatMap { $0.acceptedUntil > now ? $0.secret.revealed : nil }
        self.init(current: project.apiSecret.revealed, former: previous)
    }
}

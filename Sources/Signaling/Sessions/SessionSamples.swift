import Wire

/// The latest sample of each camera in a chat. It is in memory as long as the lines of the text chat, and stored only with a report.
struct SessionSamples: Equatable, Sendable {
    /// A chat has two people.
    private static let maxPeople = 2

    private var samples: [IdentityID: ReportedSample] = [:]

    subscript(person: IdentityID) -> ReportedSample? { samples[person] }

    mutating func keep(_ jpeg: [UInt8], of person: IdentityID, at now: Timestamp) {
        if var sample = samples[person] {
            (sample.jpeg, sample.at) = (jpeg, now)
            samples[person] = sample
        } else if samples.count < Self.maxPeople {
            samples[person] = ReportedSample(jpeg: jpeg, at: now)
        }
    }

    mutating func note(_ verdict: SampleVerdict, about person: IdentityID) {
        guard var sample = samples[person] else { return }
        sample.verdict = verdict
        switch verdict {
        case .warn: sample.warnings += 1
        case .blur: sample.blurs += 1
        case .ok, .end: break
        }
        samples[person] = sample
    }
}

import Signaling

extension Setting {
    static let broadcasts: [Setting] = [
        Setting(
            "broadcast.maxBroadcasts", \.rules.maxBroadcasts, count,
            "Maximum live broadcasts at the same time. Plan one processor core for each.",
            "Consent and notice are those of recordings (recording.consent, recording.notice).", applies: .atReload)
    ]
}

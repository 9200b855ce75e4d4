import Signaling
import Wire

extension Setting {
    static let archives: [Setting] = [
        Setting(
            "recording.consent", \.rules.recordingConsent, .choice,
            "notify: everyone in a recorded session is notified. ask: only the streams of people who accept are recorded.",
            "With ask, clients that cannot ask are left out, such as WHIP clients and old ones.", applies: .atReload),
        Setting(
            "recording.moderatorsMayRecord", \.rules.moderatorsMayRecord, .boolean,
            "Whether moderators of a session may start and stop recordings.", applies: .atReload),
        Setting(
            "recording.notice", \.rules.recordingNotice, .duration(.zero ... .seconds(60)),
            "How long before a recording begins the people in the session are notified.", applies: .atReload),
        Setting(
            "recording.maxArchives", \.rules.maxRunningArchives, count, "Maximum sessions recorded at the same time.",
            "Each stream of a recorded session takes about 1 GB per hour.", applies: .atReload),
        Setting(
            "recording.maxDuration", \.rules.maxArchiveTime, .duration(.seconds(1) ... .seconds(30 * 86400)),
            "Maximum recorded time of an archive. Pauses do not count.", applies: .atReload),
        Setting(
            "recording.maxAge", \.rules.maxArchiveAge, .duration(.seconds(1) ... .seconds(30 * 86400)),
            "Maximum time from the start of an archive to its end, with pauses.", applies: .atReload),
        Setting(
            "recording.maxPause", \.rules.maxArchivePause, .duration(.seconds(1) ... .seconds(30 * 86400)),
            "How long an archive waits for another stream when nobody publishes.", applies: .atReload),
        Setting(
            "recording.retention", \.archives.retention, .duration(.zero ... .seconds(3650 * 86400)),
            "How long an archive can be downloaded before its files are deleted. 0: forever.", applies: .atReload),
        Setting(
            "recording.downloadLifetime", \.archives.downloadLifetime, .duration(.seconds(1) ... .seconds(86400)),
            "How long the URL of a download is valid.", "Each request for an archive returns a new one.",
            applies: .atReload),
        Setting(
            "compose.ffmpeg", \.archives.ffmpeg, .path,
            "The path of ffmpeg 5.1 or later, which composes archives, or the name of a command in PATH.",
            "Without it, only individual archives can be recorded."),
    ]
}

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
            "recording.bucket", \.archives.bucket.name,
            .optional(
                .word("a bucket's name", where: ConfabConfiguration.ArchiveBucket.isName),
                empty: "archives stay on this machine"),
            "The bucket of an S3-compatible service to which archives are moved when they are complete.",
            "The files on this machine are deleted after the bucket has confirmed the size. Archives in the bucket do not "
                + "expire. Set a lifecycle rule there, also for unfinished multipart uploads."),
        Setting(
            "recording.bucketEndpoint", \.archives.bucket.endpoint,
            .optional(.webURL("an HTTP or HTTPS URL", allowsPath: true)),
            "The URL of the service, such as https://s3.eu-central-1.amazonaws.com."),
        Setting(
            "recording.bucketRegion", \.archives.bucket.region,
            .word("a region's name", where: ConfabConfiguration.ArchiveBucket.isName),
            "The region of the bucket. Many services that are compatible with S3 accept any."),
        Setting(
            "recording.bucketPrefix", \.archives.bucket.prefix,
            .optional(
                .word("letters, digits, and -._/ between them", where: ConfabConfiguration.ArchiveBucket.isPrefix)),
            "What the keys of archives begin with.", "The rest is the API key, the archive's ID and the file's name."),
        Setting(
            "recording.bucketAccessKey", \.archives.bucket.accessKey, .optional(.word("text without spaces")),
            "The ID of the access key.",
            "It must permit GetObject, PutObject, DeleteObject, AbortMultipartUpload and ListBucket."),
        Setting(
            "recording.bucketSecretKey", \.archives.bucket.secretKey,
            .optional(.secret("8 to 1024 bytes", where: { (8...1024).contains($0.utf8.count) })),
            "The secret of the access key.", isSecret: true),
        Setting(
            "recording.bucketPathStyle", \.archives.bucket.pathStyle, .boolean,
            "Whether the bucket's name is in the path of URLs. Otherwise it is the first part of the host."),
        Setting(
            "recording.bucketPrivateAddresses", \.archives.bucket.allowPrivateAddresses, .boolean,
            "Allow a service on this machine or a private network."),
        Setting(
            "recording.bucketAuthorities", \.archives.bucket.authorities, .optional(.path),
            "PEM file of CA certificates to trust for the service, in addition to the system's."),
        Setting(
            "compose.ffmpeg", \.archives.ffmpeg, .path,
            "The path of ffmpeg 5.1 or later, which composes archives, or the name of a command in PATH.",
            "It needs libx264, aac and libopus. Without it, only individual archives can be recorded."),
    ]
}

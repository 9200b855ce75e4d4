import Signaling

extension Setting {
    static let recording: [Setting] = [
        Setting(
            "recording.enabled", \.recording.enabled, .boolean, "Whether sessions can be recorded.",
            "Only holders of an API secret can start a recording. While nothing is recorded, this costs nothing."),
        Setting(
            "recording.folder", \.recording.folder, .optional(.path, empty: "recordings in the data directory"),
            "Folder of the recordings.",
            "A recording needs about 1.1 GB per hour for each video of 2.5 Mbit/s. If the folder is not in the data "
                + "directory, the systemd unit must allow it in ReadWritePaths."),
        Setting(
            "recording.maxHeight", \.recording.maxHeight, .integer(90...8192),
            "Maximum height of recorded video in pixels.",
            "If a publisher sends several layers, the largest one that fits is recorded. A video with one layer is "
                + "recorded as it is."),
        Setting(
            "recording.minFreeSpace", \.recording.minFreeSpace, .size(ByteCount(bytes: 0) ... .mebibytes(1 << 20)),
            "Free space below which no recording starts, and no broadcast with DVR.",
            "Below half of it, all of them end, so that the disk does not become full."),
        Setting(
            "recording.syncInterval", \.recording.syncInterval, interval,
            "How often recordings are synced to the disk.",
            "A power failure loses what was recorded since. A crash of the server loses at most two seconds."),
    ]
}

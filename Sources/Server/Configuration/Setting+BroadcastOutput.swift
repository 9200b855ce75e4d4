import Signaling

extension Setting {
    /// What composes broadcasts, and what viewers and RTMP targets get.
    static let broadcastOutput: [Setting] = [
        Setting(
            "broadcast.compositor", \.broadcasts.compositor,
            .optional(.path, empty: "confab-compositor beside this program, then in PATH"),
            "The path of confab-compositor, or the name of a command in PATH.",
            "Without it, sessions cannot be broadcast. scripts/compositor builds it."),
        Setting(
            "broadcast.folder", \.broadcasts.folder, .optional(.path, empty: "broadcasts in the data directory"),
            "Folder of the broadcasts whose viewers can go back (DVR). Each start of the server deletes what broadcasts have left in it.",
            "A broadcast of 2 Mbit/s needs 1 GB per hour. Other broadcasts are in memory only."),
        Setting(
            "broadcast.bitrate", \.broadcasts.bitrate, .ofCompositor,
            "Bitrate of the video of a broadcast, if the application requests none.",
            "Each viewer takes as much, and each RTMP target."),
        Setting(
            "broadcast.dvrWindow", \.broadcasts.dvrWindow, .duration(.seconds(1) ... .seconds(36_000)),
            "How far viewers can go back at most, if the broadcast lets them (DVR)."),
        Setting(
            "broadcast.linger", \.broadcasts.linger, .duration(.zero ... .seconds(86_400)),
            "How long viewers can load a broadcast after its end. Its last minute stays in memory until then."),
        Setting(
            "broadcast.keep", \.broadcasts.keep, .duration(.zero ... .seconds(30 * 86_400)),
            "How long viewers can load a broadcast with DVR after its end. Its files are deleted then."),
        Setting(
            "broadcast.stopTimeout", \.broadcasts.stopTimeout, .duration(.zero ... .seconds(10)),
            "How long a server that stops waits at most for viewers to load the end of broadcasts.",
            "It waits only if there are viewers. Players load the playlist every 4 s, so with less they may not see the "
                + "end."),
        Setting(
            "broadcast.allowPrivateAddresses", \.broadcasts.allowPrivateAddresses, .boolean,
            "Allow RTMP targets on this machine or a private network."),
    ]
}

extension Format<Bitrate> {
    /// The bitrates that the compositor can make (`CompositorConfiguration.bitrates`).
    fileprivate static let ofCompositor = Format.single(
        "a whole number and a unit (kbit/s or Mbit/s), from 100kbit/s to 10Mbit/s",
        parse: { text in
            Bitrate(text).flatMap { (100_000...10_000_000).contains($0.bitsPerSecond) ? $0 : nil }
        }, write: \.description)
}

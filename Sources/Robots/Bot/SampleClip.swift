import Peers

extension MediaClip {
    /// The built-in sample: a teal video with bars at its edges, and a soft tone.
    public static let sample: MediaClip = {
        var clip = MediaClip()
        // Both files are compiled in and tested. If one of them cannot be parsed, the clip contains only the other.
        try? clip.add(PackageResources.picture_ivf)
        try? clip.add(PackageResources.sound_ogg)
        return clip
    }()
}

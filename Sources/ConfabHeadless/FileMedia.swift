import Confab
import Foundation
import MediaFiles
import Peers
import RTC
import Synchronization

/// Files that are published in a loop, in real time: VP8 in IVF, Opus in Ogg, or both.
///
/// If a video and an audio file are about equally long, each repetition starts them together. Otherwise each repeats
/// separately.
public final class FileMedia: PeerMedia {
    /// The state that the lock protects.
    private struct State {
        var isAudioOn = true
        var isVideoOn = true
        var isStopped = false
        /// The feed whose frames the preview shows; nil if there is none.
        var previewer: ObjectIdentifier?
        /// The time of the first frame that the preview showed; nil before that frame.
        var previewBegan: MediaTime?
    }

    private let clip: MediaClip
    private let preview: EncodedSource?
    private let state = Mutex(State())

    /// Reads files.
    ///
    /// - Throws: an error with the code `media_failed` if a file cannot be read or its format is not supported.
    convenience init(_ files: [URL], withAudio: Bool = true, withVideo: Bool = true) throws(ConfabError) {
        var clip = MediaClip()
        for file in files {
            do {
                try clip.add(Self.bytes(of: file))
            } catch let error as MediaFileError {
                throw ConfabError(.mediaFailed, "\(file.lastPathComponent) \(error.message).", cause: error)
            } catch {
                throw ConfabError(
                    .mediaFailed, "\(file.lastPathComponent) cannot be read. Check its path and permissions.",
                    cause: error)
            }
        }
        if !withAudio { clip.removeAudio() }
        if !withVideo { clip.removeVideo() }
        self.init(clip)
    }

    package init(_ clip: MediaClip) {
        self.clip = clip
        preview = clip.hasVideo ? EncodedSource(askForKeyframe: {}) : nil
    }

    private static func bytes(of file: URL) throws -> [UInt8] {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        let bytes = try handle.read(upToCount: MediaClip.maxFile + 1) ?? Data()
        guard bytes.count <= MediaClip.maxFile else {
            throw MediaFileError(.tooLarge, "is larger than \(MediaClip.maxFile >> 20) MB; use a shorter file")
        }
        return Array(bytes)
    }

    /// Whether a file has audio.
    public var hasAudio: Bool { clip.hasAudio }
    /// The video, an ``EncodedSource`` with the frames of the largest layer while they are sent; nil without video.
    public var video: (any VideoSource)? { preview }
    /// The size of the largest video in pixels; nil without video.
    public var size: VideoSize? {
        guard let width = clip.width, let height = clip.height else { return nil }
        return VideoSize(width: width, height: height)
    }

    /// The files' layers, the largest first; empty for one encoding.
    public var layers: [Layer]? {
        guard let width = clip.width, !clip.rids.isEmpty else { return [] }
        return zip(clip.rids, clip.widths).map { Layer(rid: $0, scale: Double(width) / Double(max($1, 1))) }
    }

    /// Sets whether audio and video are sent or paused; nil leaves a kind unchanged. After a pause, playback continues
    /// where it would be without the pause.
    public func setEnabled(audio: Bool?, video: Bool?) async {
        state.withLock { state in
            if let audio { state.isAudioOn = audio }
            if let video { state.isVideoOn = video }
        }
    }

    /// Ends the media permanently.
    public func stop() async {
        state.withLock { $0.isStopped = true }
        preview?.finish()
    }

    // MARK: Sending

    var rids: [String] { clip.rids }
    var hasVideo: Bool { clip.hasVideo }

    func makeFeed(_ start: FeedStart) -> any PeerFeed {
        FileFeed(self, start.isLayered ? clip : clip.layer(0), start)
    }

    /// Whether to send audio and video; nil if the media has stopped.
    fileprivate var isOn: (audio: Bool, video: Bool)? {
        state.withLock { $0.isStopped ? nil : ($0.isAudioOn, $0.isVideoOn) }
    }

    fileprivate func show(_ frame: UnsafeRawBufferPointer, _ isKeyframe: Bool, at now: MediaTime, by feed: FileFeed) {
        let number = ObjectIdentifier(feed)
        let began = state.withLock { state -> MediaTime? in
            state.previewer = state.previewer ?? number
            guard state.previewer == number else { return nil }
            state.previewBegan = state.previewBegan ?? now
            return state.previewBegan
        }
        guard let began, let preview, preview.wants(isKeyframe: isKeyframe) else { return }
        preview.yield(
            EncodedFrame(.vp8, Array(frame), at: .nanoseconds((now - began).nanoseconds), isKeyframe: isKeyframe))
    }

    fileprivate func ended(_ feed: FileFeed) {
        state.withLock { if $0.previewer == ObjectIdentifier(feed) { $0.previewer = nil } }
    }
}

/// Plays files over one connection.
private final class FileFeed: PeerFeed {
    private let file: FileMedia
    private let player: ClipPlayer

    init(_ file: FileMedia, _ clip: MediaClip, _ start: FeedStart) {
        self.file = file
        player = ClipPlayer(clip, from: start.timestamps, using: &start.connection.random)
        player.sections = start.sections
        player.onFrame = { [unowned self] in self.file.show($0, $1, at: $2, by: self) }
    }

    var media: any PeerMedia { file }
    var sections: ClipPlayer.Sections {
        get { player.sections ?? ClipPlayer.Sections() }
        set { player.sections = newValue }
    }
    var activeRIDs: Set<String>? {
        get { player.activeRIDs }
        set { player.activeRIDs = newValue }
    }
    var nextDue: MediaTime? { file.isOn == nil ? nil : player.nextDue }

    func produce(over connection: RobotConnection, now: MediaTime) {
        guard let isOn = file.isOn else { return }
        if player.isAudioOn != isOn.audio { player.isAudioOn = isOn.audio }
        if player.isVideoOn != isOn.video { player.isVideoOn = isOn.video }
        player.produce(over: connection, now: now)
    }

    func keyframeWanted(of track: RobotTrack) { player.keyframeWanted(of: track) }
    // Nothing to do: playback begins with a keyframe, and each repetition contains one.
    func connected() {}
    func end() { file.ended(self) }
}

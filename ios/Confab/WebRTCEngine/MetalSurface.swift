import AppModel
import ConfabUI
import CoreGraphics
import Foundation
import UIKit
import WebRTC

/// Shows a track in WebRTC's Metal view, which also applies the rotation. It renders nothing in the background.
@MainActor final class MetalSurface: VideoSurface {
    private let track: RTCVideoTrack
    private let display = RTCMTLVideoView(frame: .zero)
    private var watcher: PictureWatcher?
    var onFirstFrame: (() -> Void)?
    var onSize: ((CGSize) -> Void)?
    var fit = VideoFit.fill {
        didSet { display.videoContentMode = fit == .fill ? .scaleAspectFill : .scaleAspectFit }
    }
    var isMirrored = false {
        didSet { display.transform = CGAffineTransform(scaleX: isMirrored ? -1 : 1, y: 1) }
    }

    init(_ track: RTCVideoTrack) {
        self.track = track
        display.clipsToBounds = true
        display.videoContentMode = .scaleAspectFill
        let watcher = PictureWatcher { [weak self] in self?.tell($0) }
        self.watcher = watcher
        track.add(display)
        track.add(watcher)
    }

    var view: UIView { display }

    func close() {
        guard let watcher else { return }
        track.remove(display)
        track.remove(watcher)
        self.watcher = nil
        (onFirstFrame, onSize) = (nil, nil)
    }
}

/// Reports the first frame and size changes on the main thread. WebRTC calls it on a decoder's thread.
private final class PictureWatcher: NSObject, Sendable {
    private let news = Locked(FrameSizeChange())
    private let changed: @MainActor @Sendable (FrameSizeChange.Change) -> Void

    init(_ changed: @escaping @MainActor @Sendable (FrameSizeChange.Change) -> Void) {
        self.changed = changed
        super.init()
    }
}

extension PictureWatcher: RTCVideoRenderer {
    func setSize(_ size: CGSize) {}

    func renderFrame(_ frame: RTCVideoFrame?) {
        guard let size = frame?.uprightSize else { return }
        let change = news.withValue { $0.shown(size) }
        if !change.isNothing { Task { @MainActor [changed] in changed(change) } }
    }
}

extension VideoSurface {
    /// Notifies the view of a first frame or a new size.
    func tell(_ change: FrameSizeChange.Change) {
        if let size = change.size { onSize?(CGSize(width: size.width, height: size.height)) }
        if change.isFirst { onFirstFrame?() }
    }
}

import AppModel
import ConfabUI
import CoreGraphics
import Foundation
import UIKit
import WebRTC

/// Shows a track in WebRTC's view for Metal, which turns the pictures itself. It draws nothing in the background.
@MainActor final class MetalSurface: VideoSurface {
    private let track: RTCVideoTrack
    private let display = RTCMTLVideoView(frame: .zero)
    private var watcher: SizeWatcher?
    private var hasFrame = false
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
        let watcher = SizeWatcher { [weak self] in self?.show($0) }
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

    private func show(_ size: PixelSize) {
        onSize?(CGSize(width: size.width, height: size.height))
        if !hasFrame {
            hasFrame = true
            onFirstFrame?()
        }
    }
}

/// Tells the sizes of the frames, on the main thread. WebRTC calls it on a decoder's thread.
private final class SizeWatcher: NSObject, Sendable {
    private let last = Locked<PixelSize?>(nil)
    private let changed: @MainActor @Sendable (PixelSize) -> Void

    init(_ changed: @escaping @MainActor @Sendable (PixelSize) -> Void) {
        self.changed = changed
        super.init()
    }
}

extension SizeWatcher: RTCVideoRenderer {
    func setSize(_ size: CGSize) {}

    func renderFrame(_ frame: RTCVideoFrame?) {
        guard let size = frame?.uprightSize else { return }
        let isNew = last.withValue { last in
            defer { last = size }
            return last != size
        }
        if isNew { Task { @MainActor [changed] in changed(size) } }
    }
}

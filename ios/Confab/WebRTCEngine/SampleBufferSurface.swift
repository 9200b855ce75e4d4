import AVFoundation
import AppModel
import ConfabUI
import CoreGraphics
import CoreMedia
import Foundation
import QuartzCore
import UIKit
import WebRTC

/// Shows a track in a sample-buffer layer. Metal layers render nothing in the background, so Picture in Picture needs
/// this surface.
@MainActor final class SampleBufferSurface: VideoSurface {
    private let track: RTCVideoTrack
    private let display = SampleBufferView(frame: .zero)
    private var receiver: FrameReceiver?
    private var news = FrameSizeChange()
    var onFirstFrame: (() -> Void)?
    var onSize: ((CGSize) -> Void)?

    init(_ track: RTCVideoTrack) {
        self.track = track
        let receiver = FrameReceiver { [weak self] picture in self?.show(picture) }
        self.receiver = receiver
        track.add(receiver)
    }

    var view: UIView { display }
    var fit: VideoFit {
        get { display.fit }
        set { display.fit = newValue }
    }
    var isMirrored: Bool {
        get { display.isMirrored }
        set { display.isMirrored = newValue }
    }

    func close() {
        if let receiver { track.remove(receiver) }
        receiver = nil
        (onFirstFrame, onSize) = (nil, nil)
    }

    private func show(_ picture: Picture) {
        display.show(picture)
        tell(news.shown(picture.uprightSize))
    }
}

/// A view with a sample-buffer layer, which it rotates and mirrors.
final class SampleBufferView: UIView {
    private let display = AVSampleBufferDisplayLayer()
    private var degrees = 0 { didSet { if degrees != oldValue { setNeedsLayout() } } }
    var fit = VideoFit.fill { didSet { if fit != oldValue { setNeedsLayout() } } }
    var isMirrored = false { didSet { if isMirrored != oldValue { setNeedsLayout() } } }

    override init(frame: CGRect) {
        super.init(frame: frame)
        layer.addSublayer(display)
        clipsToBounds = true
    }

    required init?(coder: NSCoder) { nil }

    fileprivate func show(_ picture: Picture) {
        degrees = picture.degrees
        let renderer = display.sampleBufferRenderer
        // After the app was in the background, the renderer needs a flush before it shows frames again.
        if renderer.requiresFlushToResumeDecoding || renderer.status == .failed { renderer.flush() }
        renderer.enqueue(picture.sample)
    }

    override func layoutSubviews() {
        super.layoutSubviews()
        let turned = RotatedLayer(
            width: bounds.size.width, height: bounds.size.height, degrees: degrees, isMirrored: isMirrored)
        CATransaction.begin()
        CATransaction.setDisableActions(true)
        display.videoGravity = fit == .fill ? .resizeAspectFill : .resizeAspect
        display.setAffineTransform(
            CGAffineTransform(scaleX: turned.horizontalScale, y: 1).rotated(by: turned.angle))
        display.bounds = CGRect(x: 0, y: 0, width: turned.width, height: turned.height)
        display.position = CGPoint(x: turned.x, y: turned.y)
        CATransaction.commit()
    }
}

import CoreMedia
import CoreVideo
import Foundation
import OpenTokCompat
import UIKit

/// Shares a drawing of this application as a screen, in a session that another part of the application has connected.
final class ScreenSharing: UIViewController {
    private var session: OTSession?
    private var publisher: OTPublisher?
    private var capturer: DrawingCapturer?

    func share(in session: OTSession) {
        self.session = session
        let settings = OTPublisherSettings()
        settings.name = "Screen"
        settings.audioTrack = false
        publisher = OTPublisher(delegate: self, settings: settings)
        publisher?.videoType = .screen
        publisher?.audioFallbackEnabled = false
        capturer = DrawingCapturer()
        publisher?.videoCapture = capturer
        publisher?.videoCapture?.videoContentHint = .text
        guard let publisher else { return }
        var error: OTError?
        session.publish(publisher, error: &error)
        if let error { print(error.localizedDescription) }
    }

    /// Sends the changed drawing as the next frame.
    func draw(_ pixels: [UInt32], width: Int) { capturer?.show(pixels, width: width) }

    override func viewWillDisappear(_ animated: Bool) {
        super.viewWillDisappear(animated)
        if let publisher { session?.unpublish(publisher, error: nil) }
    }
}

extension ScreenSharing: OTPublisherKitDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) {
        let isMedia = OTPublisherErrorCode(rawValue: error.code) == .publisherWebRTCError
        print(isMedia ? "The screen cannot be captured" : error.localizedDescription)
    }

    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {
        let isScreen = stream.videoType == .screen && stream.hasVideo && !stream.hasAudio
        print("\(stream.name ?? "") \(stream.videoDimensions) \(isScreen)")
    }
}

/// Supplies the pixels of a drawing as frames.
final class DrawingCapturer: NSObject, OTVideoCapture {
    var videoCaptureConsumer: (any OTVideoCaptureConsumer)?
    var videoContentHint = OTVideoContentHint.none
    private var isCapturing = false
    private let frame = OTVideoFrame(format: OTVideoFormat(argbWithWidth: 0, height: 0))

    func show(_ pixels: [UInt32], width: Int) {
        guard isCapturing, width > 0 else { return }
        frame.format?.bytesPerRow.removeAllObjects()
        frame.format?.bytesPerRow.add(NSNumber(value: width * 4))
        frame.format?.imageWidth = UInt32(width)
        frame.format?.imageHeight = UInt32(pixels.count / width)
        frame.format?.estimatedCaptureDelay = 100
        frame.orientation = .up
        frame.timestamp = CMTime.zero
        var copy = pixels
        copy.withUnsafeMutableBytes { bytes in
            frame.clearPlanes()
            frame.planes?.addPointer(bytes.baseAddress)
            videoCaptureConsumer?.consumeFrame(frame)
        }
    }

    func initCapture() {}
    func releaseCapture() {}
    func start() -> Int32 {
        isCapturing = true
        return 0
    }
    func stop() -> Int32 {
        isCapturing = false
        return 0
    }
    func isCaptureStarted() -> Bool { isCapturing }
    func captureSettings(_ videoFormat: OTVideoFormat) -> Int32 {
        videoFormat.pixelFormat = .ARGB
        return 0
    }
}

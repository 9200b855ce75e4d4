import AVFoundation
import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import OpenTokShapes
import WebRTC

// What OpenTok's classes need of the media engine in ios/Confab/WebRTCEngine. Copy this file too.

extension WebRTCMedia: OTSwitchableCamera {
    func use(_ position: AVCaptureDevice.Position) async throws(ConfabError) {
        try await use(position == .back ? CameraFacing.back : .front)
    }
}

extension WebRTCEngine: OTFrameEngine {
    func makeFrameMedia(isScreen: Bool, withMicrophone: Bool) async throws(ConfabError) -> any OTFrameMedia {
        let source = Self.factory.videoSource(forScreenCast: isScreen)
        return media(source, FrameCapture(source), withMicrophone: withMicrophone)
    }
}

extension WebRTCMedia: OTFrameMedia {
    func send(_ frame: OTVideoFrame) {
        if let image = frame.image { _ = send(image, orientation: frame.orientation, at: frame.timestamp) }
    }

    func send(_ image: CVImageBuffer, orientation: OTVideoOrientation, at time: CMTime) -> Bool {
        (capture.video as? FrameCapture)?.send(image, orientation.rotation) ?? false
    }
}

/// Hands the frames of a capturer to WebRTC, on the thread of the capturer.
private actor FrameCapture: VideoCapture {
    private struct Native: @unchecked Sendable {
        let source: RTCVideoSource
        let capturer: RTCVideoCapturer
    }

    nonisolated let changes: AsyncStream<CaptureChange>
    nonisolated private let native: Locked<Native?>
    nonisolated private let isPaused = Locked(false)
    /// The frames have any size.
    nonisolated var size: VideoSize? { nil }

    init(_ source: RTCVideoSource) {
        changes = AsyncStream { $0.finish() }
        native = Locked(Native(source: source, capturer: RTCVideoCapturer(delegate: source)))
    }

    func setEnabled(_ enabled: Bool) { isPaused.value = !enabled }
    func stop() { native.value = nil }

    nonisolated func send(_ image: CVImageBuffer, _ rotation: RTCVideoRotation) -> Bool {
        guard let native = native.value else { return false }
        guard !isPaused.value else { return true }
        // Capturers count in units of their own. WebRTC needs a clock that goes on.
        guard let time = FramePacer.nanoseconds(ProcessInfo.processInfo.systemUptime) else { return false }
        let frame = RTCVideoFrame(buffer: RTCCVPixelBuffer(pixelBuffer: image), rotation: rotation, timeStampNs: time)
        native.source.capturer(native.capturer, didCapture: frame)
        return true
    }
}

extension OTVideoOrientation {
    /// How far to turn the picture clockwise.
    fileprivate var rotation: RTCVideoRotation {
        switch self {
        case .up: ._0
        case .left: ._90
        case .down: ._180
        case .right: ._270
        }
    }
}

extension OTVideoFrame {
    /// A copy of an ARGB frame; nil for other formats. Give those as image buffers.
    fileprivate var image: CVImageBuffer? {
        guard let format, format.pixelFormat == .ARGB, let planes, planes.count == 1,
            let from = planes.pointer(at: 0), let stride = (format.bytesPerRow.firstObject as? NSNumber)?.intValue
        else { return nil }
        let (width, height) = (Int(format.imageWidth), Int(format.imageHeight))
        guard width > 0, stride >= width * 4 else { return nil }
        var image: CVPixelBuffer?
        _ = CVPixelBufferCreate(nil, width, height, kCVPixelFormatType_32BGRA, nil, &image)
        guard let image, CVPixelBufferLockBaseAddress(image, []) == kCVReturnSuccess else { return nil }
        defer { _ = CVPixelBufferUnlockBaseAddress(image, []) }
        guard let to = CVPixelBufferGetBaseAddress(image) else { return nil }
        for row in 0..<height {
            let start = to + row * CVPixelBufferGetBytesPerRow(image)
            start.copyMemory(from: from + row * stride, byteCount: width * 4)
        }
        return image
    }
}

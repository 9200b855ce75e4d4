import AVFoundation
import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import OpenTokCompat
import WebRTC

// Adds to the media engine in ios/Confab/WebRTCEngine what only OpenTok's classes need. An application that uses those
// classes copies this file together with that folder.

extension WebRTCMedia: OTSwitchableCamera {
    func use(_ position: AVCaptureDevice.Position) async throws(ConfabError) {
        try await use(position.facing ?? .usual)
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
        (captured.capture as? FrameCapture)?.send(image, orientation.rotation) ?? false
    }
}

/// Passes the frames of a capturer to WebRTC, on the capturer's thread.
private actor FrameCapture: VideoCapture {
    /// WebRTC's source and capturer, marked as `Sendable` so that `Locked` can store them.
    private struct Native: @unchecked Sendable {
        let source: RTCVideoSource
        let capturer: RTCVideoCapturer
    }

    nonisolated let changes: AsyncStream<CaptureChange>
    nonisolated private let native: Locked<Native>
    nonisolated private let frames = Locked(CustomFrameInput())
    /// Nil, because the frames may have any size.
    nonisolated var size: VideoSize? { nil }

    init(_ source: RTCVideoSource) {
        changes = AsyncStream { $0.finish() }
        native = Locked(Native(source: source, capturer: RTCVideoCapturer(delegate: source)))
    }

    func setEnabled(_ enabled: Bool) { frames.withValue { $0.isPaused = !enabled } }
    func stop() { frames.withValue { $0.stop() } }

    nonisolated func send(_ image: CVImageBuffer, _ rotation: RTCVideoRotation) -> Bool {
        switch frames.withValue({ $0.received(uptime: ProcessInfo.processInfo.systemUptime) }) {
        case .refuse: return false
        case .drop: break
        case .send(let time): send(image, rotation, time)
        }
        return true
    }

    nonisolated private func send(_ image: CVImageBuffer, _ rotation: RTCVideoRotation, _ time: Int64) {
        let frame = RTCVideoFrame(buffer: RTCCVPixelBuffer(pixelBuffer: image), rotation: rotation, timeStampNs: time)
        let native = native.value
        native.source.capturer(native.capturer, didCapture: frame)
    }
}

extension OTVideoOrientation {
    /// The clockwise rotation of the video.
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
    /// A copy of an ARGB frame. Nil for other formats, which must be passed as image buffers, and for a frame that
    /// cannot be copied.
    fileprivate var image: CVImageBuffer? {
        guard let format, let planes else { return nil }
        let (width, height) = (Int(format.imageWidth), Int(format.imageHeight))
        let picture = PackedPicture(
            isPacked: format.pixelFormat == .ARGB, width: width, height: height,
            strides: format.bytesPerRow.map { ($0 as? NSNumber)?.intValue }, planes: planes.count)
        guard let picture, let from = planes.pointer(at: 0) else { return nil }
        var image: CVPixelBuffer?
        _ = CVPixelBufferCreate(nil, width, height, kCVPixelFormatType_32BGRA, nil, &image)
        guard let image, CVPixelBufferLockBaseAddress(image, []) == kCVReturnSuccess else { return nil }
        defer { _ = CVPixelBufferUnlockBaseAddress(image, []) }
        guard let to = CVPixelBufferGetBaseAddress(image) else { return nil }
        let rowBytes = CVPixelBufferGetBytesPerRow(image)
        // Frames do not contain the length of their planes, so compute it from the format.
        let bytes = UnsafeRawBufferPointer(start: from, count: picture.byteCount)
        let plane = MutablePlane(
            bytes: UnsafeMutableRawBufferPointer(start: to, count: rowBytes * height), stride: rowBytes)
        return picture.copy(bytes, to: plane) ? image : nil
    }
}

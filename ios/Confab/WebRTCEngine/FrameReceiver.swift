import AppModel
import CoreMedia
import CoreVideo
import Foundation
import WebRTC

/// A frame that is ready to be shown.
struct Picture: @unchecked Sendable {
    let sample: CMSampleBuffer
    /// The clockwise rotation in degrees.
    let degrees: Int
    /// The size after the rotation.
    let uprightSize: PixelSize
}

/// Receives frames on a decoder's thread and shows them on the main thread, one at a time. Of the frames that arrive
/// before the main thread takes one, only the newest is shown.
final class FrameReceiver: NSObject, Sendable {
    private let newest = Locked(NewestValue<Picture>())
    /// The buffers for converted frames. Their lock is separate, so that the main thread does not wait for
    /// conversions.
    private let pool = Locked(PixelBufferPool())
    private let show: @MainActor @Sendable (Picture) -> Void

    init(_ show: @escaping @MainActor @Sendable (Picture) -> Void) {
        self.show = show
        super.init()
    }

    private func showNewest() {
        Task { @MainActor [weak self] in
            guard let self else { return }
            if let picture = newest.withValue({ $0.take() }) { show(picture) }
        }
    }
}

extension FrameReceiver: RTCVideoRenderer {
    func setSize(_ size: CGSize) {}

    func renderFrame(_ frame: RTCVideoFrame?) {
        guard let frame, let picture = pool.withValue({ Picture(frame, &$0) }) else { return }
        if newest.withValue({ $0.put(picture) }) { showNewest() }
    }
}

extension Picture {
    /// Creates a frame; nil if there is no memory for it, or if its buffer is invalid.
    fileprivate init?(_ frame: RTCVideoFrame, _ pool: inout PixelBufferPool) {
        guard let pixels = frame.buffer.wholePixels ?? pool.nv12(frame.buffer.toI420()),
            let sample = CMSampleBuffer.shownAtOnce(pixels)
        else { return nil }
        self.init(sample: sample, degrees: frame.degrees, uprightSize: frame.uprightSize)
    }
}

extension RTCVideoFrameBuffer {
    /// The pixel buffer, if it can be shown without a copy: a system buffer that needs no cropping. Otherwise nil.
    fileprivate var wholePixels: CVPixelBuffer? {
        guard let native = self as? RTCCVPixelBuffer, !native.requiresCropping() else { return nil }
        return native.pixelBuffer
    }
}

extension RTCVideoFrame {
    /// The clockwise rotation in degrees.
    fileprivate var degrees: Int {
        switch rotation {
        case ._0: 0
        case ._90: 90
        case ._180: 180
        case ._270: 270
        @unknown default: 0
        }
    }

    /// The size after the rotation.
    var uprightSize: PixelSize { PixelSize(width: Int(width), height: Int(height)).turned(by: degrees) }
}

extension CMSampleBuffer {
    /// Creates a sample that is shown immediately, whatever its presentation time, because the frames of a call are
    /// shown when they arrive. Nil if the system fails to create it.
    fileprivate static func shownAtOnce(_ pixels: CVPixelBuffer) -> CMSampleBuffer? {
        var format: CMVideoFormatDescription?
        _ = CMVideoFormatDescriptionCreateForImageBuffer(
            allocator: nil, imageBuffer: pixels, formatDescriptionOut: &format)
        guard let format else { return nil }
        var timing = CMSampleTimingInfo(
            duration: .invalid, presentationTimeStamp: .zero, decodeTimeStamp: .invalid)
        var sample: CMSampleBuffer?
        _ = CMSampleBufferCreateReadyWithImageBuffer(
            allocator: nil, imageBuffer: pixels, formatDescription: format, sampleTiming: &timing,
            sampleBufferOut: &sample)
        guard let sample, !sample.sampleAttachments.isEmpty else { return nil }
        sample.sampleAttachments[0][.displayImmediately] = true
        return sample
    }
}

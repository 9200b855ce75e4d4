import AppModel
import CoreVideo
import Foundation
import WebRTC

/// Pixel buffers for frames that a decoder in software made. At most six exist at a time: a frame for which there is none is
/// dropped.
struct PixelBufferPool: @unchecked Sendable {
    private static let maxBuffers = 6

    private var pool: CVPixelBufferPool?
    private var size = (width: 0, height: 0)

    /// Converts a frame to the format of the display; nil if there is no buffer for it.
    mutating func nv12(_ frame: any RTCI420Buffer) -> CVPixelBuffer? {
        guard let pixels = buffer(width: Int(frame.width), height: Int(frame.height)) else { return nil }
        guard CVPixelBufferLockBaseAddress(pixels, []) == kCVReturnSuccess else { return nil }
        defer { _ = CVPixelBufferUnlockBaseAddress(pixels, []) }
        guard let luma = MutablePlane(pixels, 0), let chroma = MutablePlane(pixels, 1) else { return nil }
        return I420Picture(frame).write(luma: luma, chroma: chroma) ? pixels : nil
    }

    private mutating func buffer(width: Int, height: Int) -> CVPixelBuffer? {
        if pool == nil || size != (width, height) {
            let attributes = NSDictionary(dictionary: [
                kCVPixelBufferPixelFormatTypeKey as String: kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange,
                kCVPixelBufferWidthKey as String: width, kCVPixelBufferHeightKey as String: height,
                kCVPixelBufferIOSurfacePropertiesKey as String: [String: Any](),
            ])
            pool = nil
            size = (width, height)
            _ = CVPixelBufferPoolCreate(nil, nil, attributes as CFDictionary, &pool)
        }
        guard let pool else { return nil }
        let limit = NSDictionary(dictionary: [kCVPixelBufferPoolAllocationThresholdKey as String: Self.maxBuffers])
        var pixels: CVPixelBuffer?
        _ = CVPixelBufferPoolCreatePixelBufferWithAuxAttributes(nil, pool, limit as CFDictionary, &pixels)
        return pixels
    }
}

extension MutablePlane {
    fileprivate init?(_ pixels: CVPixelBuffer, _ index: Int) {
        guard let start = CVPixelBufferGetBaseAddressOfPlane(pixels, index) else { return nil }
        let stride = CVPixelBufferGetBytesPerRowOfPlane(pixels, index)
        let count = stride * CVPixelBufferGetHeightOfPlane(pixels, index)
        self.init(bytes: UnsafeMutableRawBufferPointer(start: start, count: count), stride: stride)
    }
}

extension I420Picture {
    fileprivate init(_ frame: any RTCI420Buffer) {
        let (rows, chromaRows) = (Int(frame.height), Int(frame.chromaHeight))
        self.init(
            width: Int(frame.width), height: rows,
            y: Plane(frame.dataY, stride: Int(frame.strideY), rows: rows),
            u: Plane(frame.dataU, stride: Int(frame.strideU), rows: chromaRows),
            v: Plane(frame.dataV, stride: Int(frame.strideV), rows: chromaRows))
    }
}

extension Plane {
    fileprivate init(_ start: UnsafePointer<UInt8>, stride: Int, rows: Int) {
        self.init(bytes: UnsafeRawBufferPointer(start: start, count: stride * rows), stride: stride)
    }
}

import AppModel
import CoreVideo
import Foundation
import WebRTC

/// Provides pixel buffers for frames of software decoders.
struct PixelBufferPool: @unchecked Sendable {
    private var pools = SizedBufferPool<CVPixelBufferPool>()

    /// Converts a frame to NV12, which the display layer shows. Nil if no buffer is available or the frame is invalid.
    mutating func nv12(_ frame: any RTCI420Buffer) -> CVPixelBuffer? {
        guard let pixels = buffer(PixelSize(width: Int(frame.width), height: Int(frame.height))) else { return nil }
        guard CVPixelBufferLockBaseAddress(pixels, []) == kCVReturnSuccess else { return nil }
        defer { _ = CVPixelBufferUnlockBaseAddress(pixels, []) }
        guard let luma = MutablePlane(pixels, 0), let chroma = MutablePlane(pixels, 1) else { return nil }
        return I420Picture(frame).write(luma: luma, chroma: chroma) ? pixels : nil
    }

    private mutating func buffer(_ size: PixelSize) -> CVPixelBuffer? {
        guard let pool = pools.pool(for: size, make: Self.pool) else { return nil }
        let limit = NSDictionary(dictionary: [
            kCVPixelBufferPoolAllocationThresholdKey as String: EngineRules.maxDecodedPictures
        ])
        var pixels: CVPixelBuffer?
        _ = CVPixelBufferPoolCreatePixelBufferWithAuxAttributes(nil, pool, limit as CFDictionary, &pixels)
        return pixels
    }

    private static func pool(_ size: PixelSize) -> CVPixelBufferPool? {
        let attributes = NSDictionary(dictionary: [
            kCVPixelBufferPixelFormatTypeKey as String: kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange,
            kCVPixelBufferWidthKey as String: size.width, kCVPixelBufferHeightKey as String: size.height,
            kCVPixelBufferIOSurfacePropertiesKey as String: [String: Any](),
        ])
        var pool: CVPixelBufferPool?
        _ = CVPixelBufferPoolCreate(nil, nil, attributes as CFDictionary, &pool)
        return pool
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

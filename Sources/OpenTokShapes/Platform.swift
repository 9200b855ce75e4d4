import Foundation

// Types of Apple's frameworks that OpenTok's declarations mention, and what stands for them on Linux, where this module is tested.
#if canImport(CoreMedia)
import AVFoundation
import CoreMedia
import CoreVideo

/// On which side of the device a camera is.
public typealias OTCameraPosition = AVCaptureDevice.Position
/// When a frame was captured.
public typealias OTFrameTime = CMTime
/// A picture in the system's memory.
public typealias OTImageBuffer = CVImageBuffer
/// The addresses of a frame's planes.
public typealias OTPointerArray = NSPointerArray

extension OTPointerArray {
    static var empty: OTPointerArray { OTPointerArray(options: .opaqueMemory) }
}
#else
/// On which side of the device a camera is.
public enum OTCameraPosition: Int, Sendable {
    /// Not known.
    case unspecified = 0
    /// Away from the person.
    case back = 1
    /// Toward the person.
    case front = 2
}

/// When a frame was captured.
public typealias OTFrameTime = Duration
/// A picture in the system's memory.
public typealias OTImageBuffer = AnyObject

/// The addresses of a frame's planes.
public final class OTPointerArray: NSObject {
    private var pointers: [UnsafeMutableRawPointer?] = []

    static var empty: OTPointerArray { OTPointerArray() }

    /// The number of addresses.
    public var count: Int { pointers.count }
    /// Adds an address.
    public func addPointer(_ pointer: UnsafeMutableRawPointer?) { pointers.append(pointer) }
    /// The address at an index below ``count``.
    public func pointer(at index: Int) -> UnsafeMutableRawPointer? { pointers[index] }
}
#endif

import Foundation

// Types of Apple's frameworks that OpenTok's declarations use, and their substitutes on Linux, where this module is
// tested.
#if canImport(CoreMedia)
import AVFoundation
import CoreMedia
import CoreVideo

/// The position of a camera on the device.
public typealias OTCameraPosition = AVCaptureDevice.Position
/// The capture time of a frame.
public typealias OTFrameTime = CMTime
/// An image buffer of the system.
public typealias OTImageBuffer = CVImageBuffer
/// The addresses of a frame's planes.
public typealias OTPointerArray = NSPointerArray

extension OTPointerArray {
    static var empty: OTPointerArray { OTPointerArray(options: .opaqueMemory) }
}
#else
/// The position of a camera on the device.
public enum OTCameraPosition: Int, Sendable {
    /// Not known.
    case unspecified = 0
    /// Away from the person.
    case back = 1
    /// Toward the person.
    case front = 2
}

/// The capture time of a frame.
public typealias OTFrameTime = Duration
/// An image buffer of the system.
public typealias OTImageBuffer = AnyObject

/// The addresses of a frame's planes.
public final class OTPointerArray: NSObject {
    private var pointers: [UnsafeMutableRawPointer?] = []

    static var empty: OTPointerArray { OTPointerArray() }

    /// The number of addresses.
    public var count: Int { pointers.count }
    /// Adds an address.
    public func addPointer(_ pointer: UnsafeMutableRawPointer?) { pointers.append(pointer) }
    /// Returns the address at an index, which must be below ``count``.
    public func pointer(at index: Int) -> UnsafeMutableRawPointer? { pointers[index] }
}
#endif

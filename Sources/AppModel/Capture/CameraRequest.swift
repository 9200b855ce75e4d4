/// A video size that the camera can capture. The settings list the sizes in this order. The web's `settings.js` has
/// the same sizes and also 1920x1080.
public enum PictureSize: String, Codable, CaseIterable, Sendable {
    case size352x288 = "352x288"
    case size480x360 = "480x360"
    case size640x480 = "640x480"
    case size960x540 = "960x540"
    case size1280x720 = "1280x720"
    case size1280x960 = "1280x960"

    public static let usual = size640x480

    public var width: Int { Int(rawValue.prefix { $0 != "x" }) ?? 0 }
    public var height: Int { Int(rawValue.drop { $0 != "x" }.dropFirst()) ?? 0 }
}

/// How hot the device is, as reported by the system.
public enum ThermalState: Int, Comparable, CaseIterable, Sendable {
    case nominal, fair, serious, critical

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The conditions that limit the camera: the device's state and the other people in the conversation.
public struct CameraConditions: Equatable, Sendable {
    public var thermal = ThermalState.nominal
    public var isLowPower = false
    /// The number of other people who receive the video.
    public var remotes = 1
    /// Whether the video is sent in layers, so that each subscriber can receive a different size.
    public var hasLayers = false

    public init() {}
}

/// The size and frame rate requested from the camera.
public struct CameraRequest: Equatable, Sendable {
    public var width: Int
    public var height: Int
    public var frameRate: Int

    public init(width: Int, height: Int, frameRate: Int) {
        (self.width, self.height, self.frameRate) = (width, height, frameRate)
    }

    /// Chooses the size and the rate of the camera. With three or more people, the camera uses the smallest size,
    /// unless layers let each subscriber receive a different one. A device that is hot or saves power captures fewer
    /// frames.
    public init(size: PictureSize, conditions: CameraConditions) {
        let isRoom = conditions.remotes >= 2 && !conditions.hasLayers
        let size = isRoom ? .size352x288 : size
        let rate =
            switch conditions.thermal {
            case .critical: 15
            case .serious: conditions.isLowPower ? 15 : 20
            case .nominal, .fair: conditions.isLowPower ? 20 : 30
            }
        self.init(width: size.width, height: size.height, frameRate: rate)
    }
}

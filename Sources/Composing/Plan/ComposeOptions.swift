import Layout
import MediaFiles

/// How an archive is composed. What is nil is as the archive's event log says.
public struct ComposeOptions: Hashable, Sendable {
    /// How the video is encoded.
    public enum Quality: Hashable, Sendable {
        /// A constant quality (x264's CRF), 0…51. Lower is better.
        case constant(Int)
        /// OpenTok's `quantizationParameter`, 15…40.
        case quantization(Int)
        /// OpenTok's `maxBitrate` in bits per second, 100,000…6,000,000.
        case bitrate(Int)

        /// Whether the number is in the documented range.
        public var isValid: Bool {
            switch self {
            case .constant(let factor): (0...51).contains(factor)
            case .quantization(let parameter): (15...40).contains(parameter)
            case .bitrate(let rate): (100_000...6_000_000).contains(rate)
            }
        }
    }

    /// How much time x264 takes: a faster preset makes larger files.
    public enum Preset: String, Hashable, Sendable, CaseIterable {
        /// x264's presets, from the fastest to the one with the smallest files.
        case ultrafast, superfast, veryfast, faster, fast, medium
    }

    /// The size of the video in pixels.
    public var canvas: ArchiveCanvas?
    /// One layout for the whole time.
    public var layout: ArchiveLayout?
    /// The classes of streams for the whole time, by the streams' ids.
    public var classes: [String: [String]] = [:]
    /// Whether the file has audio.
    public var hasAudio: Bool?
    /// Whether the file has video.
    public var hasVideo: Bool?
    /// How the video is encoded.
    public var quality = Quality.constant(21)
    /// How much time that takes.
    public var preset = Preset.veryfast

    public init() {}
}

extension ArchiveCanvas {
    /// Whether video of this size can be composed: both sides are even, and in the range of `ComposedLayout`.
    public var isPossible: Bool { ComposedLayout(.bestFit, width: width, height: height) != nil }
}

/// The fixed properties of composed files, which are those of OpenTok's.
public enum ComposedFormat {
    /// Frames per second.
    public static let frameRate = 25
    /// The length of a frame in milliseconds, which is whole. All changes of the layout are on this grid.
    public static let frame: Int64 = 40
    /// The maximum number of streams that are heard at the same time.
    public static let maxHeard = 50
}

extension ArchiveLayout {
    /// Whether composing can draw this layout.
    public var isSupported: Bool { DrawnLayout(self, on: ArchiveCanvas()) != nil }
}

/// A layout that can be drawn.
package enum DrawnLayout: Sendable {
    /// One of OpenTok's layouts.
    case predefined(ComposedLayout)
    /// A style sheet of the application, for this canvas.
    case custom(Stylesheet, ArchiveCanvas)
    /// The layout of rooms.
    case room(RoomCanvas)

    /// Returns nil if the type, the combination of types, the style sheet or the canvas is not supported.
    package init?(_ layout: ArchiveLayout, on canvas: ArchiveCanvas) {
        if layout.type == "custom" {
            guard layout.screenshareType == nil, let sheet = try? Stylesheet(layout.stylesheet ?? "") else {
                return nil
            }
            self = .custom(sheet, canvas)
            return
        }
        if layout.type == RoomCanvas.type {
            guard layout.screenshareType == nil, layout.stylesheet == nil,
                let room = RoomCanvas(width: canvas.width, height: canvas.height)
            else { return nil }
            self = .room(room)
            return
        }
        guard let kind = ComposedLayout.Kind(rawValue: layout.type), layout.stylesheet == nil else { return nil }
        let whileSharing = layout.screenshareType.map(ComposedLayout.Kind.init)
        // An unknown type while a screen is shared.
        if case .some(.none) = whileSharing { return nil }
        guard
            let composed = ComposedLayout(
                kind, screenshareKind: whileSharing ?? nil, width: canvas.width, height: canvas.height)
        else { return nil }
        self = .predefined(composed)
    }

    /// - Parameter streams: the streams that have video, in the order in which they were included.
    package func cells(_ streams: [LayoutStream]) -> [LayoutCell] {
        switch self {
        case .predefined(let layout): layout.cells(streams)
        case .custom(let sheet, let canvas): sheet.cells(streams, width: canvas.width, height: canvas.height)
        case .room(let room): room.cells(streams)
        }
    }
}

import CLibAV
import Layout
import LiveComposing

/// The image that is encoded, in YUV 4:2:0.
final class Canvas {
    /// Black in the range of video.
    private static let black: (luma: Int32, chroma: Int32) = (16, 128)

    let frame: FrameBox

    init(width: Int, height: Int) throws(LibAVError) { frame = try FrameBox(width: width, height: height) }

    /// Makes the whole canvas black.
    func clear() throws(LibAVError) {
        // The encoder may still have a reference.
        try LibAVError.check(av_frame_make_writable(frame.pointer), "Drawing")
        for (index, plane) in frame.planes.enumerated() {
            memset(plane.bytes, index == 0 ? Self.black.luma : Self.black.chroma, plane.stride * plane.height)
        }
    }

    /// Draws a cell. Its rectangle must be inside.
    func draw(_ image: CellImage, in cell: CompositorCell) {
        fill(cell)
        guard let target = image.target, let scaled = image.scaled else { return }
        for (index, (from, to)) in zip(scaled.planes, frame.planes).enumerated() {
            let scale = index == 0 ? 1 : 2
            let (x, y) = (target.x / scale, target.y / scale)
            for row in 0..<min(from.height, to.height - y) {
                memcpy(
                    to.bytes + (y + row) * to.stride + x, from.bytes + row * from.stride, min(from.width, to.width - x))
            }
        }
    }

    /// Makes a cell black, because it may cover another one.
    private func fill(_ cell: CompositorCell) {
        for (index, plane) in frame.planes.enumerated() {
            let scale = index == 0 ? 1 : 2
            let color = index == 0 ? Self.black.luma : Self.black.chroma
            for row in cell.y / scale..<min((cell.y + cell.height) / scale, plane.height) {
                memset(plane.bytes + row * plane.stride + cell.x / scale, color, min(cell.width / scale, plane.width))
            }
        }
    }
}

/// The image of one stream, scaled to its cell. It is scaled into memory of its own, because libswscale may write beyond the width
/// of a row.
final class CellImage {
    private let cell: CompositorCell
    private var scaler: OpaquePointer?
    private(set) var scaled: FrameBox?
    private(set) var target: Rectangle?

    init(_ cell: CompositorCell) { self.cell = cell }

    deinit { sws_freeContext(scaler) }

    /// Whether this is an image for a cell of this size and place.
    func fits(_ cell: CompositorCell) -> Bool { self.cell == cell }

    /// Scales an image into the cell.
    func update(_ image: FrameBox) throws(LibAVError) {
        let (width, height) = (Int(image.pointer.pointee.width), Int(image.pointer.pointee.height))
        guard width > 0, height > 0 else { throw LibAVError("Scaling a frame without a size") }
        let place = Placement(width: width, height: height, in: cell)
        let visible = try Self.crop(image, to: place.source)
        let (from, to) = (visible.pointer.pointee, place.target)
        // libswscale has a static function that keeps the context if nothing changed.
        scaler = sws_getCachedContext(
            scaler, from.width, from.height, AVPixelFormat(from.format), Int32(to.width), Int32(to.height),
            AV_PIX_FMT_YUV420P, Int32(SWS_BILINEAR), nil, nil, nil)
        guard let scaler else { throw LibAVError("Scaling a frame") }
        let output: FrameBox
        if let scaled, target == to {
            output = scaled
        } else {
            output = try FrameBox(width: to.width, height: to.height)
        }
        let rows = sws_scale(
            scaler, Self.planes(from), Self.strides(from), 0, from.height,
            Self.planes(output.pointer.pointee).map { UnsafeMutablePointer(mutating: $0) },
            Self.strides(output.pointer.pointee))
        guard rows == Int32(to.height) else { throw LibAVError("Scaling a frame") }
        (scaled, target) = (output, to)
    }

    /// Returns a reference to a part of an image.
    private static func crop(_ image: FrameBox, to area: Rectangle) throws(LibAVError) -> FrameBox {
        let (width, height) = (Int(image.pointer.pointee.width), Int(image.pointer.pointee.height))
        guard area.width < width || area.height < height else { return image }
        let part = try FrameBox()
        try LibAVError.check(av_frame_ref(part.pointer, image.pointer), "Cropping a frame")
        part.pointer.pointee.crop_left = area.x
        part.pointer.pointee.crop_top = area.y
        part.pointer.pointee.crop_right = width - area.x - area.width
        part.pointer.pointee.crop_bottom = height - area.y - area.height
        try LibAVError.check(
            av_frame_apply_cropping(part.pointer, Int32(AV_FRAME_CROP_UNALIGNED)), "Cropping a frame")
        return part
    }

    private static func planes(_ frame: AVFrame) -> [UnsafePointer<UInt8>?] {
        [frame.data.0, frame.data.1, frame.data.2, frame.data.3].map { $0.map { UnsafePointer($0) } }
    }

    private static func strides(_ frame: AVFrame) -> [Int32] {
        [frame.linesize.0, frame.linesize.1, frame.linesize.2, frame.linesize.3]
    }
}

#if canImport(SwiftUI)
import Confab
import Foundation
import UIKit

/// A video source that can be shown in a view. The sources of a media engine conform to this protocol, so that
/// ``VideoView`` does not depend on the engine.
public protocol SurfaceSource: VideoSource {
    /// Creates a surface that shows the video.
    ///
    /// - Parameter inBackground: whether the surface must also show the video while the app is in the background, in
    ///   Picture in Picture.
    @MainActor func makeSurface(inBackground: Bool) -> any VideoSurface
}

/// Shows one video source in a UIKit view. Close it exactly once, and do not use it afterwards.
@MainActor public protocol VideoSurface: AnyObject {
    /// The view to place on the screen.
    var view: UIView { get }
    /// How the video fills the view.
    var fit: VideoFit { get set }
    /// Whether the video is mirrored.
    var isMirrored: Bool { get set }
    /// Called once, when the first frame is shown.
    var onFirstFrame: (() -> Void)? { get set }
    /// Called when the size of the frames changes, in pixels after rotation.
    var onSize: ((CGSize) -> Void)? { get set }
    /// Stops showing the video, and releases the source.
    func close()
}

/// How a video fills its view.
public enum VideoFit: Hashable, Sendable {
    /// The whole frame is visible.
    case fit
    /// The video fills the view and may be cropped.
    case fill
}
#endif

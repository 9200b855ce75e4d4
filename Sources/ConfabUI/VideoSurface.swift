#if canImport(SwiftUI)
import Confab
import Foundation
import UIKit

/// Pictures that can be shown in a view. The sources of a media engine conform to this protocol, so that ``VideoView`` shows
/// them without knowing the engine.
public protocol SurfaceSource: VideoSource {
    /// Makes a surface that shows the pictures from now on.
    ///
    /// - Parameter inBackground: whether it has to show them while the app is not on the screen, in Picture in Picture.
    @MainActor func makeSurface(inBackground: Bool) -> any VideoSurface
}

/// A view that shows one source. It is closed once and not used afterwards.
@MainActor public protocol VideoSurface: AnyObject {
    /// The view to place on the screen.
    var view: UIView { get }
    /// How the pictures fill the view.
    var fit: VideoFit { get set }
    /// Whether left and right are exchanged, as in a mirror.
    var isMirrored: Bool { get set }
    /// Called once, when the first picture is shown.
    var onFirstFrame: (() -> Void)? { get set }
    /// Called when the size of the pictures changes, in pixels after rotation.
    var onSize: ((CGSize) -> Void)? { get set }
    /// Stops showing pictures, and releases the source.
    func close()
}

/// How a picture fills its view.
public enum VideoFit: Hashable, Sendable {
    /// The whole picture is visible.
    case fit
    /// The picture fills the view and may be cropped.
    case fill
}
#endif

#if canImport(SwiftUI)
import Confab
import Foundation
import SwiftUI
import UIKit

/// Shows a video source, such as a subscriber's video or the local preview.
///
/// ```swift
/// VideoView(model.partner)
/// VideoView(model.own, mirrored: true)
/// ```
///
/// Without a source, or with one that cannot be shown in a view, the view is black.
public struct VideoView: View {
    private let source: (any VideoSource)?
    private let fit: VideoFit
    private let mirrored: Bool
    private let onFirstFrame: @MainActor () -> Void
    private let onSize: @MainActor (CGSize) -> Void

    /// Creates a view.
    ///
    /// - Parameters:
    ///   - source: the video; nil for none.
    ///   - fit: how the video fills the view.
    ///   - mirrored: whether the video is mirrored, as people expect of their own video.
    ///   - onFirstFrame: called when the first frame of a source is shown.
    ///   - onSize: called when the size of the frames changes, in pixels.
    public init(
        _ source: (any VideoSource)?, fit: VideoFit = .fill, mirrored: Bool = false,
        onFirstFrame: @escaping @MainActor () -> Void = {}, onSize: @escaping @MainActor (CGSize) -> Void = { _ in }
    ) {
        (self.source, self.fit, self.mirrored) = (source, fit, mirrored)
        (self.onFirstFrame, self.onSize) = (onFirstFrame, onSize)
    }

    /// The video, on a black background.
    public var body: some View {
        ZStack {
            Color.black
            if let source = source as? any SurfaceSource {
                SurfaceHost(
                    source: source, fit: fit, isMirrored: mirrored, onFirstFrame: onFirstFrame, onSize: onSize)
            }
        }
    }
}

/// Places a surface in SwiftUI's view hierarchy, and replaces it when the source changes.
struct SurfaceHost: UIViewRepresentable {
    let source: any SurfaceSource
    let fit: VideoFit
    let isMirrored: Bool
    let onFirstFrame: @MainActor () -> Void
    let onSize: @MainActor (CGSize) -> Void

    func makeUIView(context: Context) -> SurfaceContainer { SurfaceContainer(frame: .zero) }

    func updateUIView(_ container: SurfaceContainer, context: Context) {
        (container.fit, container.isMirrored) = (fit, isMirrored)
        container.show(source)
        guard let surface = container.surface else { return }
        (surface.onFirstFrame, surface.onSize) = (onFirstFrame, onSize)
    }

    static func dismantleUIView(_ container: SurfaceContainer, coordinator: Void) { container.show(nil) }
}

/// A UIKit view that shows one source, like ``VideoView`` in SwiftUI. Without a source, or with one that cannot be
/// shown in a view, the view is empty.
public final class SurfaceContainer: UIView {
    /// How the video fills the view.
    public var fit = VideoFit.fill { didSet { surface?.fit = fit } }
    /// Whether the video is mirrored.
    public var isMirrored = false { didSet { surface?.isMirrored = isMirrored } }
    private(set) var surface: (any VideoSurface)?
    private var source: (any VideoSource)?

    /// Shows this source instead of the previous one; nil for none.
    public func show(_ source: (any VideoSource)?) {
        guard source !== self.source else { return }
        surface?.close()
        surface?.view.removeFromSuperview()
        self.source = source
        surface = (source as? any SurfaceSource)?.makeSurface(inBackground: false)
        guard let surface else { return }
        // Set the frame before mirroring: the frame of a transformed view must not be set.
        surface.view.frame = bounds
        surface.view.autoresizingMask = [.flexibleWidth, .flexibleHeight]
        (surface.fit, surface.isMirrored) = (fit, isMirrored)
        addSubview(surface.view)
    }
}
#endif

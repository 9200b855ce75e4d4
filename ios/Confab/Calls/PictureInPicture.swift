import AVKit
import AppModel
import Confab
import ConfabUI
import Foundation
import SwiftUI
import UIKit

/// Shows a video in a small window when the app leaves the foreground. Place it behind the video, because the window
/// appears to grow out of this view.
struct PictureInPicture: UIViewRepresentable {
    let window: SmallWindow?
    /// Called with true when the window was shown, and with false when it was hidden.
    var shown: @MainActor (Bool) -> Void = { _ in }

    func makeUIView(context: Context) -> UIView { UIView(frame: .zero) }

    func updateUIView(_ view: UIView, context: Context) {
        context.coordinator.tell = shown
        context.coordinator.show(window?.source as? any SurfaceSource, window?.size ?? .usual, from: view)
    }

    static func dismantleUIView(_ view: UIView, coordinator: Window) { coordinator.close() }

    func makeCoordinator() -> Window { Window() }

    /// Opens, fills and closes the system's window.
    @MainActor final class Window: NSObject {
        var tell: @MainActor (Bool) -> Void = { _ in }
        private var window = PictureWindow()
        /// The source shown in the window. Retained, because otherwise a new source could get the same address and be
        /// mistaken for this one.
        private var source: (any SurfaceSource)?
        private var surface: (any VideoSurface)?
        private var content: AVPictureInPictureVideoCallViewController?
        private var controller: AVPictureInPictureController?

        func show(_ source: (any SurfaceSource)?, _ size: PixelSize, from view: UIView) {
            let isSupported = AVPictureInPictureController.isPictureInPictureSupported()
            let effects = window.show(source.map { ObjectIdentifier($0) }, size, isSupported: isSupported)
            perform(effects, source, from: view)
        }

        func close() { perform(window.close()) }

        fileprivate func isShown(_ isShown: Bool) { perform(window.shown(isShown)) }

        private func perform(
            _ effects: [PictureWindow.Effect], _ source: (any SurfaceSource)? = nil, from view: UIView? = nil
        ) {
            for effect in effects {
                switch effect {
                case .resize(let size): content?.preferredContentSize = CGSize(size)
                case .exchange(let size): if let source { fill(source, CGSize(size)) }
                case .close: closeWindow()
                case .open(let size): if let source, let view { openWindow(source, CGSize(size), from: view) }
                // Report the change asynchronously, because a view that is being updated must not change the model.
                case .tell(let isShown): Task { [tell] in tell(isShown) }
                }
            }
        }

        private func openWindow(_ source: any SurfaceSource, _ size: CGSize, from view: UIView) {
            let content = AVPictureInPictureVideoCallViewController()
            let controller = AVPictureInPictureController(
                contentSource: AVPictureInPictureController.ContentSource(
                    activeVideoCallSourceView: view, contentViewController: content))
            controller.canStartPictureInPictureAutomaticallyFromInline = true
            controller.delegate = self
            (self.content, self.controller) = (content, controller)
            fill(source, size)
        }

        private func closeWindow() {
            if controller?.isPictureInPictureActive == true { controller?.stopPictureInPicture() }
            surface?.close()
            (source, surface, content, controller) = (nil, nil, nil, nil)
        }

        /// Replaces the source shown in the window.
        private func fill(_ source: any SurfaceSource, _ size: CGSize) {
            guard let content else { return }
            surface?.close()
            surface?.view.removeFromSuperview()
            let surface = source.makeSurface(inBackground: true)
            surface.view.frame = content.view.bounds
            surface.view.autoresizingMask = [.flexibleWidth, .flexibleHeight]
            content.view.addSubview(surface.view)
            content.preferredContentSize = size
            (self.source, self.surface) = (source, surface)
        }
    }
}

extension PictureInPicture.Window: @preconcurrency AVPictureInPictureControllerDelegate {
    func pictureInPictureControllerDidStartPictureInPicture(_ pictureInPictureController: AVPictureInPictureController)
    {
        isShown(true)
    }

    func pictureInPictureControllerDidStopPictureInPicture(_ pictureInPictureController: AVPictureInPictureController) {
        isShown(false)
    }

    /// Confirms that the window can return into the app. The view from which it opened still exists, because the
    /// window is closed together with that view.
    func pictureInPictureController(
        _ pictureInPictureController: AVPictureInPictureController,
        restoreUserInterfaceForPictureInPictureStopWithCompletionHandler completionHandler: @escaping (Bool) -> Void
    ) {
        completionHandler(true)
    }
}

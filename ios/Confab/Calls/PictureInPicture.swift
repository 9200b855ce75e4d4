import AVKit
import AppModel
import Confab
import ConfabUI
import Foundation
import SwiftUI
import UIKit

/// Shows the partner in a small window when the app is left. Place it behind the partner's picture: the window grows out of it.
struct PictureInPicture: UIViewRepresentable {
    let source: (any VideoSource)?
    let size: PixelSize

    func makeUIView(context: Context) -> UIView { UIView(frame: .zero) }

    func updateUIView(_ view: UIView, context: Context) {
        context.coordinator.show(source as? any SurfaceSource, size, from: view)
    }

    static func dismantleUIView(_ view: UIView, coordinator: Window) { coordinator.close() }

    func makeCoordinator() -> Window { Window() }

    /// The window of one picture.
    @MainActor final class Window: NSObject {
        private var window = PictureWindow()
        /// Kept, so that no other source gets its identity.
        private var source: (any SurfaceSource)?
        private var surface: (any VideoSurface)?
        private var content: AVPictureInPictureVideoCallViewController?
        private var controller: AVPictureInPictureController?

        func show(_ source: (any SurfaceSource)?, _ size: PixelSize, from view: UIView) {
            let isSupported = AVPictureInPictureController.isPictureInPictureSupported()
            for effect in window.show(source.map { ObjectIdentifier($0) }, size, isSupported: isSupported) {
                switch effect {
                case .resize(let size): content?.preferredContentSize = CGSize(size)
                case .close: closeWindow()
                case .open(let size): if let source { openWindow(source, CGSize(size), from: view) }
                }
            }
        }

        func close() { if !window.close().isEmpty { closeWindow() } }

        private func openWindow(_ source: any SurfaceSource, _ size: CGSize, from view: UIView) {
            let surface = source.makeSurface(inBackground: true)
            let content = AVPictureInPictureVideoCallViewController()
            content.preferredContentSize = size
            fill(content.view, with: surface.view)
            let controller = AVPictureInPictureController(
                contentSource: AVPictureInPictureController.ContentSource(
                    activeVideoCallSourceView: view, contentViewController: content))
            controller.canStartPictureInPictureAutomaticallyFromInline = true
            controller.delegate = self
            (self.source, self.surface, self.content, self.controller) = (source, surface, content, controller)
        }

        private func closeWindow() {
            if controller?.isPictureInPictureActive == true { controller?.stopPictureInPicture() }
            surface?.close()
            (source, surface, content, controller) = (nil, nil, nil, nil)
        }

        private func fill(_ view: UIView, with picture: UIView) {
            picture.frame = view.bounds
            picture.autoresizingMask = [.flexibleWidth, .flexibleHeight]
            view.addSubview(picture)
        }
    }
}

extension PictureInPicture.Window: @preconcurrency AVPictureInPictureControllerDelegate {
    /// The window goes back into the app. The view that it came from is still there: without it, the window is closed.
    func pictureInPictureController(
        _ pictureInPictureController: AVPictureInPictureController,
        restoreUserInterfaceForPictureInPictureStopWithCompletionHandler completionHandler: @escaping (Bool) -> Void
    ) {
        completionHandler(true)
    }
}

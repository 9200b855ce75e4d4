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
        context.coordinator.show(source as? any SurfaceSource, CGSize(size), from: view)
    }

    static func dismantleUIView(_ view: UIView, coordinator: Window) { coordinator.close() }

    func makeCoordinator() -> Window { Window() }

    /// The window of one picture.
    @MainActor final class Window: NSObject {
        private var source: (any SurfaceSource)?
        private var surface: (any VideoSurface)?
        private var content: AVPictureInPictureVideoCallViewController?
        private var controller: AVPictureInPictureController?

        func show(_ source: (any SurfaceSource)?, _ size: CGSize, from view: UIView) {
            content?.preferredContentSize = size
            guard source !== self.source else { return }
            close()
            self.source = source
            guard let source, AVPictureInPictureController.isPictureInPictureSupported() else { return }
            let surface = source.makeSurface(inBackground: true)
            let content = AVPictureInPictureVideoCallViewController()
            content.preferredContentSize = size
            fill(content.view, with: surface.view)
            let controller = AVPictureInPictureController(
                contentSource: AVPictureInPictureController.ContentSource(
                    activeVideoCallSourceView: view, contentViewController: content))
            controller.canStartPictureInPictureAutomaticallyFromInline = true
            controller.delegate = self
            (self.surface, self.content, self.controller) = (surface, content, controller)
        }

        func close() {
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

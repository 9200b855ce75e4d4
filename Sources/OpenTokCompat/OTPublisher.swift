import Confab
import Foundation

#if canImport(AVFoundation)
import AVFoundation
#endif
#if canImport(UIKit)
import UIKit
#endif

/// A stream of this client, with a view of the local video.
@preconcurrency @MainActor open class OTPublisher: OTPublisherKit {
    /// The position of the camera that is capturing, and the position that the application requested.
    private var position = (is: OTCameraPosition.front, wanted: OTCameraPosition.front)

    /// Creates a publisher. Capturing begins when it is published, and stops when the stream ends.
    public init?(delegate: (any OTPublisherKitDelegate)?, settings: OTPublisherSettings) {
        super.init(delegate: delegate, settings: settings)
    }

    /// The camera to use, now and in the next stream. The delegate is notified when it is in use. If the media cannot
    /// switch cameras, the delegate receives error 1610, and the property returns to the previous camera.
    public var cameraPosition: OTCameraPosition {
        get { position.wanted }
        set {
            guard newValue != position.wanted else { return }
            position.wanted = newValue
            if let media { turn(media) }
        }
    }

    /// Whether the torch is on. Always false; turning it on reports error 1610 to the delegate.
    public var cameraTorch: Bool {
        get { false }
        set { if newValue { report(.noLight) } }
    }

    /// The zoom factor of the camera. Always 1; setting any other value reports error 1610 to the delegate.
    public var cameraZoomFactor: Float {
        get { 1 }
        set { if newValue != 1 { report(.noLight) } }
    }

    private func turn(_ media: any LocalMedia) {
        requests.add { [weak self] in
            guard let self, position.wanted != position.is else { return }
            let wanted = position.wanted
            do throws(ConfabError) {
                guard let camera = media as? any OTSwitchableCamera else { throw .noCamera }
                try await camera.use(wanted)
                position.is = wanted
                (delegate as? any OTPublisherDelegate)?.publisher(self, didChangeCameraPosition: wanted)
            } catch {
                position.wanted = position.is
                report(error)
            }
        }
    }

    override func captured(_ media: any LocalMedia) {
        // Each capture begins with the front camera.
        position.is = .front
        if position.wanted != .front { turn(media) }
    }

    #if canImport(UIKit)
    private let picture = VideoPicture()

    /// The view of the local video. It is empty while nothing is captured.
    public var view: UIView? { picture.view }
    /// How the video fills the view.
    public var viewScaleBehavior: OTVideoViewScaleBehavior {
        get { picture.behavior }
        set { picture.behavior = newValue }
    }

    override func show(_ source: (any VideoSource)?) {
        picture.show(source, isMirrored: videoType == .camera)
    }
    #endif
}

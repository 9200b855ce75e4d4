import Confab

#if canImport(UIKit)
import UIKit
#endif

/// A stream of another client, with a view of its video.
@preconcurrency @MainActor open class OTSubscriber: OTSubscriberKit {
    override func arrived() { (delegate as? any OTSubscriberDelegate)?.subscriberVideoDataReceived(self) }

    #if canImport(UIKit)
    private let picture = VideoPicture()

    /// The view of the video. It is empty while there is no video.
    public var view: UIView? { picture.view }
    /// How the video fills the view.
    public var viewScaleBehavior: OTVideoViewScaleBehavior {
        get { picture.behavior }
        set { picture.behavior = newValue }
    }

    override func show(_ source: (any VideoSource)?) {
        picture.show(source, isMirrored: false)
    }
    #endif
}

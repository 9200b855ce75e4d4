#if canImport(UIKit)
import Confab
import ConfabUI
import Foundation
import UIKit

/// The view of a publisher or subscriber, and how the video fills it.
@MainActor final class VideoPicture {
    let view = SurfaceContainer(frame: .zero)
    var behavior = OTVideoViewScaleBehavior.fill {
        didSet { view.fit = behavior == .fill ? .fill : .fit }
    }

    func show(_ source: (any VideoSource)?, isMirrored: Bool) {
        view.isMirrored = isMirrored
        view.show(source)
    }
}
#endif

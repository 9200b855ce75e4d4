// Expect: nearly matches defaulted requirement
import OpenTokCompat
import UIKit

final class Camera: UIViewController {}

extension Camera: OTPublisherDelegate {
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError) {}
    func publisher(_ publisher: OTPublisherKit, streamCreate stream: OTStream) {}
}

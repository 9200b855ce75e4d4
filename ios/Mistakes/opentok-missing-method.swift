// Expect: has different argument labels from those required by protocol 'OTSessionDelegate'
import OpenTokCompat
import UIKit

final class Chat: UIViewController {}

extension Chat: OTSessionDelegate {
    func sessionDidConnect(_ session: OTSession) {}
    func sessionDidDisconnect(_ session: OTSession) {}
    func session(_ session: OTSession, didFailWithError error: OTError) {}
    func session(_ session: OTSession, streamCreated stream: OTStream) {}
}

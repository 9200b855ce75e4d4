import AppModel
import Foundation
import Intents
import UIKit

extension ApplicationModel {
    /// The type of the activity with which the system's list of recent calls opens the app.
    static let recentCallActivity = "INStartCallIntent"

    /// Places the call that the user chose in the system's list of recent calls.
    func callBack(_ activity: NSUserActivity) {
        guard let intent = activity.interaction?.intent as? INStartCallIntent else { return }
        let contacts = (intent.contacts ?? []).map { (id: $0.personHandle?.value, name: $0.displayName) }
        callBack(contacts, video: intent.callCapability.isVideo)
    }
}

extension INCallCapability {
    /// Whether the call is a video call; nil if unknown.
    fileprivate var isVideo: Bool? {
        switch self {
        case .unknown: nil
        case .audioCall: false
        case .videoCall: true
        @unknown default: nil
        }
    }
}

import AppModel
import Foundation
import Intents
import UIKit

extension ApplicationModel {
    /// The activity with which the system's list of recent calls opens the app.
    static let recentCallActivity = "INStartCallIntent"

    /// The person chose a call in that list.
    func callBack(_ activity: NSUserActivity) {
        guard let intent = activity.interaction?.intent as? INStartCallIntent, let person = intent.contacts?.first,
            let id = person.personHandle?.value
        else { return }
        callBack(person: id, name: person.displayName, video: intent.callCapability == .videoCall)
    }
}

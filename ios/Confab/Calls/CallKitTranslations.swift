import AppModel
import Confab
import CallKit
import Foundation

extension SystemEndReason {
    var native: CXCallEndedReason {
        switch self {
        case .failed: .failed
        case .remoteEnded: .remoteEnded
        case .unanswered: .unanswered
        case .answeredElsewhere: .answeredElsewhere
        case .declinedElsewhere: .declinedElsewhere
        }
    }
}

extension SystemReportResult {
    init(_ error: (any Error)?) {
        self.init(errorCode: error.map { ($0 as? CXErrorCodeIncomingCallError)?.code.rawValue ?? 0 })
    }
}

extension CXCallUpdate {
    convenience init(_ person: Person?, hasVideo: Bool) {
        self.init()
        let call = ShownCall(person, hasVideo: hasVideo)
        localizedCallerName = call.name
        if let personID = call.personID { remoteHandle = CXHandle(type: .generic, value: personID) }
        self.hasVideo = call.hasVideo
        supportsHolding = call.canBeHeld
        supportsGrouping = call.canBeGrouped
        supportsUngrouping = call.canBeGrouped
        supportsDTMF = call.hasTones
    }
}

extension CallSystemRequest {
    var action: CXAction {
        switch self {
        case .start(let id, let person, let video):
            let action = CXStartCallAction(call: id, handle: CXHandle(type: .generic, value: "\(person.id)"))
            action.isVideo = video
            return action
        case .answer(let id): return CXAnswerCallAction(call: id)
        case .end(let id): return CXEndCallAction(call: id)
        case .mute(let id, let on): return CXSetMutedCallAction(call: id, muted: on)
        case .hold(let id, let on): return CXSetHeldCallAction(call: id, onHold: on)
        }
    }
}

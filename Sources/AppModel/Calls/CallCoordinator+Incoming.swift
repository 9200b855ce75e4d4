import Confab
import Foundation

/// Handles incoming calls, which arrive in a push or over the socket, and the system's answers when these calls are
/// reported to it.
extension CallCoordinator {
    mutating func pushed(_ text: String, _ push: PushID?) {
        // The system terminates apps that do not report a push. So a push with an unreadable id is reported as a
        // separate call, which ends immediately.
        let callID = CallID(text: text)
        let id = callID.map { SystemCallID($0) } ?? .unreadable
        if let slot = slot(of: id), let call = self[slot] {
            // Each push must be reported. The system will answer that it already has the call.
            if usesSystem { report(call, push: push) } else if let push { out.append(.completePush(push)) }
            return
        }
        var call = CoordinatedCall(id: id, direction: .incoming, person: nil, video: true)
        call.callID = callID
        // If the call cannot ring (unreadable id, unanswered report, or no free slot), report it and end it
        // immediately. Otherwise connect, to receive the server's message about this call.
        guard callID != nil, reports[id] == nil, insert(call), let slot = slot(of: id) else {
            report(call, push: push)
            reportEnded(call, .failed)
            return stopRinging(call)
        }
        report(call, push: push)
        out.append(.send(.openSocket))
        startTimer(slot)
    }

    mutating func reported(_ id: SystemCallID, _ push: PushID?, _ result: SystemReportResult) {
        guard let report = reports[id] else {
            // The report was made before a reset, which completed the push. End the call, so that the system does not
            // keep ringing.
            if result == .ok, slot(of: id) == nil { out.append(.reportEnded(id, .failed)) }
            return
        }
        if report.count > 1 { reports[id]?.count -= 1 } else { reports[id] = nil }
        reports[id]?.pushes.removeAll { $0 == push }
        guard let slot = slot(of: id), let call = self[slot] else {
            if let push { out.append(.completePush(push)) }
            // The call ended before the system answered, so report its end now.
            if result == .ok || result == .known, report.count == 1 {
                out.append(.reportEnded(id, report.ended ?? .failed))
            }
            return
        }
        switch result {
        case .ok, .known:
            change(slot) {
                $0.isKnownToSystem = true
                if $0.phase == .reported, $0.call != nil { $0.phase = .ringing }
            }
        case .filtered, .refused: if !call.isKnownToSystem { decline(slot) }
        }
        if let push { out.append(.completePush(push)) }
    }

    /// Declines a call that the system does not show. The caller is not notified of the reason.
    private mutating func decline(_ slot: Slot) {
        sendEnd(slot)
        remove(slot)
    }

    mutating func incoming(_ news: Call) {
        if let slot = slot(callID: news.id) { return changed(slot, news) }
        // End the new call if no slot is free, or if its id is in use, for example by a merged call, which keeps the
        // system id it started with.
        let id = SystemCallID(news.id)
        var call = CoordinatedCall(id: id, direction: .incoming, person: news.person, video: news.isVideo)
        (call.callID, call.call) = (news.id, news)
        if !usesSystem { call.phase = .ringing }
        guard reports[id] == nil, slot(of: id) == nil, insert(call) else { return out.append(.send(.end(news.id))) }
        report(call)
    }

    /// Sends the user's answer to the server, once. Does nothing until the app is online and the server has reported
    /// the call.
    mutating func sendAccept(_ slot: Slot) {
        guard let call = self[slot], call.phase == .answering, call.call != nil, !call.isSent, isOnline,
            let callID = call.callID
        else { return }
        let video = usesCamera(call)
        change(slot) { ($0.isSent, $0.runsCamera, $0.reportedVideo) = (true, video, video) }
        out.append(.send(.accept(callID, video: video)))
    }

    /// Ends a call on the server, or declines or cancels it before it is accepted. Does this only once, and only if the
    /// server's id for the call is known.
    mutating func sendEnd(_ slot: Slot) {
        guard let call = self[slot], let callID = call.callID, !call.isEndSent else { return }
        change(slot) { $0.isEndSent = true }
        out.append(.send(.end(callID)))
    }
}

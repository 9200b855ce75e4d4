import Foundation

/// Handles incoming calls, from a push or from the socket, and the system's answers to their reports.
extension CallCoordinator {
    /// Replaces call ids that cannot be parsed.
    private static let unreadable = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    mutating func pushed(_ callID: String, _ push: PushID?) {
        // The system terminates apps that do not report a push. So a push with an unreadable id is reported as a
        // separate call, which ends immediately.
        let id = UUID(callID: callID) ?? Self.unreadable
        if let slot = slot(of: id), let call = self[slot] {
            // The system will answer that it already has the call.
            if usesSystem { report(call, push: push) } else if let push { out.append(.completePush(push)) }
            return
        }
        var call = CoordinatedCall(id: id, direction: .incoming, person: nil, video: true)
        call.callID = callID
        // Without the server's message about this call, the device needs a connection.
        guard UUID(callID: callID) != nil, reports[id] == nil, insert(call), let slot = slot(of: id) else {
            report(call, push: push)
            reportEnded(call, .failed)
            return stopRinging(call)
        }
        report(call, push: push)
        out.append(.openSocket)
        startTimer(slot)
    }

    mutating func reported(_ id: SystemCallID, _ push: PushID?, _ result: SystemReportResult) {
        guard let report = reports[id] else {
            // The report was made before a reset, which completed the push. The system must not keep ringing.
            if result == .ok, slot(of: id) == nil { out.append(.reportEnded(id, .failed)) }
            return
        }
        if report.count > 1 { reports[id]?.count -= 1 } else { reports[id] = nil }
        reports[id]?.pushes.removeAll { $0 == push }
        guard let slot = slot(of: id), let call = self[slot] else {
            if let push { out.append(.completePush(push)) }
            // The call ended before the system answered.
            if result == .ok || result == .known, report.count == 1 {
                out.append(.reportEnded(id, report.ended ?? .failed))
            }
            return
        }
        switch result {
        case .ok, .known:
            change(slot) {
                $0.isKnownToSystem = true
                if $0.phase == .reported, $0.isConfirmed { $0.phase = .ringing }
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

    mutating func incoming(_ info: IncomingCallInfo) {
        if let slot = slot(callID: info.callID) { return confirm(slot, info) }
        // A merged call keeps the system id it started with.
        guard let id = UUID(callID: info.callID), reports[id] == nil, slot(of: id) == nil else {
            return out.append(.send(.decline(callID: info.callID)))
        }
        var call = CoordinatedCall(id: id, direction: .incoming, person: info.person, video: info.video)
        (call.callID, call.isConfirmed) = (info.callID, true)
        if !usesSystem { call.phase = .ringing }
        guard insert(call) else { return out.append(.send(.decline(callID: info.callID))) }
        report(call)
    }

    /// Handles the server's message about a call already known from a push, or a repeated message about a ringing call.
    private mutating func confirm(_ slot: Slot, _ info: IncomingCallInfo) {
        guard let call = self[slot], call.direction == .incoming else { return }
        let isNews = call.person != info.person || call.video != info.video
        let isShown = call.isKnownToSystem || !usesSystem
        change(slot) {
            ($0.person, $0.video, $0.isConfirmed) = (info.person, info.video, true)
            if !$0.isConnected, $0.phase == .reported || $0.phase == .ringing { $0.sendsVideo = info.video }
            if $0.phase == .reported, isShown { $0.phase = .ringing }
        }
        if isNews, usesSystem {
            out.append(.update(call.id, info.person, video: info.video))
        } else if isNews, call.phase == .reported || call.phase == .ringing {
            out.append(.ring(call.id, name: info.person.name, video: info.video))
        }
        stopTimer(slot)
        sendAccept(slot)
    }

    /// Sends a pending answer once the server can accept it.
    mutating func sendAccept(_ slot: Slot) {
        guard let call = self[slot], call.phase == .answering, call.isConfirmed, !call.isSent, isOnline,
            let callID = call.callID
        else { return }
        let video = usesCamera(call)
        change(slot) { ($0.isSent, $0.runsCamera, $0.toldVideo) = (true, video, video) }
        out.append(.send(.accept(callID: callID, video: video)))
    }

    /// Notifies the server that this side has ended a call.
    mutating func sendEnd(_ slot: Slot) {
        guard let call = self[slot], let callID = call.callID, !call.isEndSent else { return }
        change(slot) { $0.isEndSent = true }
        switch call.endedIn ?? call.phase {
        case .reported, .ringing: out.append(.send(.decline(callID: callID)))
        case .placing: out.append(.send(.cancel(callID: callID)))
        // Ends, declines or cancels the call, whichever applies on the server.
        case .answering, .connecting, .active, .held, .rejoining, .ending: out.append(.send(.end(callID: callID)))
        }
    }
}

import Foundation

/// Calls that arrive: by a push, by the socket, and the system's answer to their reports.
extension CallCoordinator {
    /// Stands for calls whose id is not readable.
    private static let unreadable = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    mutating func pushed(_ callID: String, _ push: PushID?) {
        // Not reporting a push ends the app. So a push with an unreadable id is reported as a call of its own, and ends.
        let id = UUID(callID: callID) ?? Self.unreadable
        if let slot = slot(of: id), let call = self[slot] {
            // The system answers that it knows the call.
            if usesSystem { report(call, push: push) } else if let push { out.append(.completePush(push)) }
            return
        }
        var call = CoordinatedCall(id: id, direction: .incoming, person: nil, video: true)
        call.callID = callID
        // A device without this call's message needs a connection.
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
            // It was asked before a reset, which has completed the push. The system must not go on ringing.
            if result == .ok, slot(of: id) == nil { out.append(.reportEnded(id, .failed)) }
            return
        }
        if report.count > 1 { reports[id]?.count -= 1 } else { reports[id] = nil }
        reports[id]?.pushes.removeAll { $0 == push }
        guard let slot = slot(of: id), let call = self[slot] else {
            if let push { out.append(.completePush(push)) }
            // It ended while the system was considering it.
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

    /// The system does not show the call. The caller is not told why.
    private mutating func decline(_ slot: Slot) {
        sendEnd(slot)
        remove(slot)
    }

    mutating func incoming(_ info: IncomingCallInfo) {
        if let slot = slot(callID: info.callID) { return confirm(slot, info) }
        // A merged call keeps the system's id that it began with.
        guard let id = UUID(callID: info.callID), reports[id] == nil, slot(of: id) == nil else {
            return out.append(.send(.decline(callID: info.callID)))
        }
        var call = CoordinatedCall(id: id, direction: .incoming, person: info.person, video: info.video)
        (call.callID, call.isConfirmed) = (info.callID, true)
        if !usesSystem { call.phase = .ringing }
        guard insert(call) else { return out.append(.send(.decline(callID: info.callID))) }
        report(call)
    }

    /// The server tells about a call that a push told about, or again about one that rings.
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

    /// Sends a remembered answer as soon as the server can take it.
    mutating func sendAccept(_ slot: Slot) {
        guard let call = self[slot], call.phase == .answering, call.isConfirmed, !call.isSent, isOnline,
            let callID = call.callID
        else { return }
        let video = usesCamera(call)
        change(slot) { ($0.isSent, $0.runsCamera, $0.toldVideo) = (true, video, video) }
        out.append(.send(.accept(callID: callID, video: video)))
    }

    /// Tells the server that this side is done with a call.
    mutating func sendEnd(_ slot: Slot) {
        guard let call = self[slot], let callID = call.callID, !call.isEndSent else { return }
        change(slot) { $0.isEndSent = true }
        switch call.endedIn ?? call.phase {
        case .reported, .ringing: out.append(.send(.decline(callID: callID)))
        case .placing: out.append(.send(.cancel(callID: callID)))
        // Ends, declines or cancels, whatever is right on the server.
        case .answering, .connecting, .active, .held, .rejoining, .ending: out.append(.send(.end(callID: callID)))
        }
    }
}

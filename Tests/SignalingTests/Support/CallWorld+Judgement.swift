import Signaling
import Wire

/// The invariants, checked after every event.
extension CallWorld {
    func judge() {
        if stage.archive.openCalls.count != stage.hub.callCount {
            fail("\(stage.hub.callCount) calls, and \(stage.archive.openCalls.count) stored as open")
        }
        let open = stage.archive.openCalls.values.sorted { $0.id < $1.id }
        for call in open { judge(call) }
        judgePeople(open)
        for device in clients where device.isLive { judge(device) }
        judgeEnds()
    }

    /// Checks that a call does not ring or wait for a member longer than it should.
    private func judge(_ call: StoredCall) {
        guard let acceptedAt = call.acceptedAt else {
            if call.ringsUntil <= now { fail("\(call.id) rings too long") }
            for device in clients where device.guest.person == call.callee && device.isLive && device.isPresent {
                if !device.rings.contains(call.id) { fail("\(call.id) does not ring on \(name(device))") }
            }
            return
        }
        let holders = clients.filter { $0.isLive && $0.active == call.id }
        for person in [call.caller, call.callee] where holders.count(where: { $0.guest.person == person }) > 1 {
            fail("\(call.id) is on two clients of \(name(person))")
        }
        for device in holders where device.guest.places.contains(call.session) {
            entered[call.id, default: []].insert(device.guest.person)
        }
        // The call ends after a while if a member is offline or does not join.
        let since = max(acceptedAt, restartedAt)
        let limit = rules.joinTimeout + (acceptedAt < restartedAt ? rules.resumeGrace : .zero)
        if since + limit < now, entered[call.id]?.count != 2 { fail("\(call.id) waits too long for its two") }
        for person in [call.caller, call.callee] where since + rules.resumeGrace < now {
            let isAwaited = ghosts.contains { $0.person == person && $0.call == call.id && now < $0.until }
            let mayReturn =
                isAwaited
                || clients.contains { device in
                    device.guest.person == person && device.active == call.id
                        && (device.isLive || device.droppedAt.map { now < $0 + rules.resumeGrace } ?? false)
                }
            if !mayReturn { fail("\(name(person)) is in \(call.id) and nowhere") }
        }
    }

    /// Checks that nobody is in two calls, or in a call and a chat, and that nobody has more than two calls.
    private func judgePeople(_ open: [StoredCall]) {
        var all: [IdentityID: Int] = [:]
        var engaged: [IdentityID: Int] = [:]
        for call in open {
            for person in [call.caller, call.callee] {
                all[person, default: 0] += 1
                if call.acceptedAt != nil || person == call.caller { engaged[person, default: 0] += 1 }
            }
        }
        for (person, count) in engaged where count > 1 { fail("\(name(person)) is in \(count) calls") }
        for (person, count) in all where count > 2 { fail("\(count) calls involve \(name(person))") }
        for person in stage.hub.peopleInTwoPlaces { fail("\(name(person)) is in the roulette and in a call") }
        for device in clients where device.isLive && device.guest.match != nil {
            if engaged[device.guest.person] != nil { fail("\(name(device)) chats and is in a call") }
        }
    }

    /// Checks that a device's view is correct.
    private func judge(_ device: Device) {
        for call in device.rings {
            let open = stage.archive.openCalls[call]
            if open == nil || open?.acceptedAt != nil { fail("\(call) rings on \(name(device)), and should not") }
        }
        if let call = device.outgoing {
            let open = stage.archive.openCalls[call]
            if open == nil || open?.acceptedAt != nil { fail("\(name(device)) believes that \(call) rings there") }
        }
        if let call = device.active, stage.archive.openCalls[call] == nil {
            fail("\(name(device)) believes that it is in \(call)")
        }
    }

    /// Checks that each side is notified once of the end of a call, and not at all of calls that were merged.
    private func judgeEnds() {
        for call in over.keys where !merged.contains(call) {
            if logged[call]?.count != 2 { fail("\(call) is over for \(logged[call]?.count ?? 0) of two") }
        }
        for call in merged where logged[call] != nil { fail("\(call) was merged, and is in a log") }
        // Skip calls that ended long ago.
        if over.count > 50 {
            for (call, at) in over where at + .seconds(60) < now {
                over[call] = nil
                entered[call] = nil
                logged[call] = nil
                merged.remove(call)
                if !clients.contains(where: { $0.held.contains(call) }) { stored[call] = nil }
            }
        }
    }
}

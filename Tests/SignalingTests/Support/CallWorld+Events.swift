import Signaling
import TestSupport
import Wire

/// The random events of people who call each other.
extension CallWorld {
    /// Passes some time and performs one random event.
    func step() {
        let pace = Int.random(in: 0..<100, using: &random)
        let range = pace < 70 ? 1...200 : pace < 97 ? 200...2000 : 2000...20_000
        pass(milliseconds(range))
        guard fault == nil else { return }
        if clients.count < identities.count, chance(50) { arrive() } else { act() }
        settle()
    }

    private func pass(_ duration: Duration) {
        stage.pass(duration)
        clients.removeAll { device in
            let isLost = isLost(device)
            if isLost { note("\(name(device)) was given up") }
            return isLost && chance(70)
        }
        settle()
    }

    private func act() {
        switch Int.random(in: 0..<1000, using: &random) {
        case 0..<60: arrive()
        case 60..<180: goOrReturn()
        case 180..<200:
            with("leaves the list") { device in
                device.isPresent = false
                device.guest.ask(.presence(.leave))
            }
        case 200..<260: with("appears") { self.appear($0) }
        case 260..<470: call()
        case 470..<640: answer()
        case 640..<700: enter()
        case 700..<750: end()
        case 750..<780: update()
        case 780..<830: rejoin()
        case 830..<850: seen()
        case 850..<870: block()
        case 870..<900: with("starts to search") { $0.guest.start() }
        case 900..<920: with("says next") { $0.guest.next() }
        case 920..<940: with("stops") { $0.guest.stop() }
        case 940..<965: steal()
        case 965..<982: wrong()
        case 982..<985: with("forgets its log") { $0.guest.ask(.call(.forget(.init(call: nil)))) }
        case 985..<990: sleep()
        case 990..<993: restart()
        default: mutual()
        }
    }

    private func with(_ deed: String, _ act: (Device) -> Void) {
        guard let device = anybody() else { return }
        note("\(name(device)) \(deed)")
        act(device)
    }

    // MARK: Connecting and disconnecting

    private func arrive() {
        guard clients.count < 2 * identities.count, let identity = identities.randomElement(using: &random) else {
            return goOrReturn()
        }
        let device = newDevice(of: identity)
        note("\(name(device)) arrives")
        count("arrivals")
        if chance(90) { appear(device) }
        if chance(10) { stage.register(device.guest) }
    }

    private func appear(_ device: Device) {
        let ringable: Ringable? = chance(3) ? .contacts : chance(20) ? .everyone : nil
        device.isPresent = true
        device.guest.appear(
            nil, visible: chance(10) ? chance(70) : nil, doNotDisturb: chance(10) ? chance(20) : nil, ringable: ringable
        )
    }

    private func goOrReturn() {
        if chance(60), let device = anybody({ !$0.isLive }) { return comeBack(device) }
        guard let device = anybody() else { return }
        let leaves = chance(30)
        note("\(name(device)) \(leaves ? "leaves" : "drops")")
        count(leaves ? "leaves" : "drops")
        if leaves { leave(device) } else { drop(device) }
    }

    /// Resumes the connection if that is still possible, or connects like a reloaded page.
    private func comeBack(_ device: Device) {
        let resumes = device.droppedAt != nil && chance(80)
        note("\(name(device)) comes back\(resumes ? "" : " with a fresh start")")
        count(resumes ? "resumes" : "reloads")
        if resumes {
            device.guest.resume()
            device.droppedAt = nil
            if device.guest.welcome?.resumed ?? false { return }
        } else {
            device.guest.arrive()
        }
        if let call = device.active, let droppedAt = device.droppedAt {
            ghosts = ghosts.filter { now < $0.until } + [(device.guest.person, call, droppedAt + rules.resumeGrace)]
        }
        device.startAfresh()
        if chance(90) { appear(device) }
        settle()
        if chance(90) { for call in device.remembered { rejoin(device, call) } }
    }

    private func restart() {
        note("the server is started again")
        count("restarts")
        restartedAt = now
        stage.restart(after: .milliseconds(Int.random(in: 0...3000, using: &random)))
        restartedAt = now
        entered = [:]
        for device in clients {
            device.startAfresh()
            if chance(80) { comeBack(device) } else { device.guest.take() }
        }
        clients.removeAll { !$0.isLive }
    }

    private func sleep() {
        pass(.seconds(Int.random(in: 20...50, using: &random)))
    }

    // MARK: Verbs

    private func call() {
        // Choose mostly callers who are free and callees who are online.
        let isLikely = chance(70)
        let others = isLikely ? clients.filter { $0.isLive && $0.isPresent }.map(\.guest.person) : identities
        guard let device = anybody({ $0.isLive && (!isLikely || $0.isPresent && $0.held.isEmpty) }),
            let other = others.randomElement(using: &random)
        else { return }
        note("\(name(device)) calls \(name(other))")
        count("calls")
        device.guest.say(.call(.start(.init(person: stage.project.personID(of: other), video: chance(70)))))
    }

    /// Makes a person who is being called call the caller.
    private func mutual() {
        guard let device = anybody({ $0.isLive && !$0.rings.isEmpty }), let call = device.rings.sorted().first,
            let caller = stored[call]?.caller
        else { return }
        note("\(name(device)) calls \(name(caller)) back")
        count("mutual calls")
        device.guest.say(.call(.start(.init(person: stage.project.personID(of: caller), video: true))))
    }

    private func answer() {
        guard let device = anybody({ $0.isLive && !$0.rings.isEmpty }),
            let call = device.rings.sorted().randomElement(using: &random)
        else { return enter() }
        if chance(75) {
            note("\(name(device)) accepts \(call)")
            device.guest.say(.call(.accept(.init(call: call, video: chance(70)))))
        } else {
            note("\(name(device)) declines \(call)")
            device.guest.say(.call(.decline(.init(call: call))))
        }
    }

    /// Joins the session of a call, usually with valid parameters.
    private func enter() {
        for device in clients where device.isLive && chance(60) {
            guard let call = device.active,
                let token = tokens.last(where: { $0.call == call && $0.holder == device.guest.person }),
                !device.guest.places.contains(token.session)
            else { continue }
            note("\(name(device)) goes into \(call)")
            device.guest.say(.session(.join(.init(session: token.session, token: token.token))))
        }
    }

    private func end() {
        guard let device = anybody({ $0.isLive && !$0.held.isEmpty }),
            let call = device.held.randomElement(using: &random)
        else { return }
        note("\(name(device)) ends \(call)")
        let isCancelled = device.outgoing == call && chance(50)
        device.guest.say(.call(isCancelled ? .cancel(.init(call: call)) : .end(.init(call: call))))
    }

    private func update() {
        guard let device = anybody({ $0.isLive && $0.active != nil }), let call = device.active else { return }
        device.guest.say(.call(.update(.init(call: call, video: chance(50)))))
    }

    private func rejoin() {
        guard let device = anybody(), let call = someCall(device) else { return }
        rejoin(device, call)
    }

    private func rejoin(_ device: Device, _ call: CallID) {
        guard device.isLive else { return }
        note("\(name(device)) rejoins \(call)")
        count("rejoins")
        let before = clients.first { $0 !== device && $0.guest.person == device.guest.person && $0.held.contains(call) }
        device.guest.say(.call(.rejoin(.init(call: call))))
        settleTakeover(device, call, from: before)
    }

    /// A dropped device that returns too late is no longer in the call, although it has not been notified yet.
    private func settleTakeover(_ device: Device, _ call: CallID, from other: Device?) {
        settle()
        guard let other, !other.isLive, device.active == call || device.outgoing == call else { return }
        if other.active == call { other.active = nil }
        if other.outgoing == call { other.outgoing = nil }
        other.takenOver.insert(call)
    }

    private func seen() {
        guard let device = anybody() else { return }
        let unseen = stage.archive.logs[device.guest.person, default: []].filter { !$0.isSeen }
        if let call = unseen.first?.call ?? someCall(device) { device.guest.say(.call(.seen(.init(call: call)))) }
    }

    private func block() {
        guard let device = anybody(), let other = identities.randomElement(using: &random) else { return }
        let person = stage.project.personID(of: other)
        let isBlock = chance(40)
        note("\(name(device)) \(isBlock ? "blocks" : "unblocks") \(name(other))")
        let verb: PresenceVerb = isBlock ? .block(.init(person: person)) : .unblock(.init(person: person))
        device.guest.say(.presence(verb))
    }

    /// Joins with a token of another call, active or ended. Only the members of an active call may join.
    private func steal() {
        guard let device = anybody(), let token = tokens.randomElement(using: &random) else { return }
        note("\(name(device)) tries a token of \(token.call)")
        count("stolen tokens")
        let isOpen = stage.archive.openCalls[token.call] != nil
        let answer = device.guest.join(token.session, token: token.token)
        if answer?.type == "session.joined" {
            if !isOpen { fail("a dead token let \(name(device)) in") }
            if token.holder != device.guest.person { fail("\(name(device)) joined with the token of someone else") }
            entered[token.call, default: []].insert(device.guest.person)
            if let call = stored[token.call] { entered[call.id]?.formIntersection([call.caller, call.callee]) }
            device.guest.ask(.session(.leave(.init(session: token.session))))
        }
        if device.guest.closeCode != nil { forget(device) }
    }

    /// Returns a random call, which may not involve this device.
    private func someCall(_ device: Device) -> CallID? {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: (device.held + device.remembered).randomElement(using: &random)
        case 5..<9: stored.keys.sorted().suffix(10).randomElement(using: &random)
        default: CallID.random(using: &random)
        }
    }

    private func wrong() {
        guard let device = anybody(), let call = someCall(device) else { return }
        let of = CallVerb.CallReference(call: call)
        let verbs: [CallVerb] = [
            .accept(.init(call: call, video: true)), .decline(of), .cancel(of), .end(of),
            .update(.init(call: call, video: false)), .rejoin(of), .seen(of), .log(.init()),
        ]
        guard let verb = verbs.randomElement(using: &random) else { return }
        note("\(name(device)) says \(ClientMessage.call(verb).type) of \(call)")
        let other = clients.first { $0 !== device && $0.guest.person == device.guest.person && $0.held.contains(call) }
        device.guest.say(.call(verb))
        if case .rejoin = verb { settleTakeover(device, call, from: other) }
    }
}

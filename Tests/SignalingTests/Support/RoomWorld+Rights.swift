import Signaling
import TestSupport
import Wire

/// Owners, tokens and stand-ins. Each judge is named after a sentence of the page about rights (`RoomSentence`).
extension RoomWorld {
    func fail(_ sentence: RoomSentence, _ details: String) { fail("\(sentence.rawValue) But: \(details)") }

    private func judge(_ sentence: RoomSentence, _ holds: Bool, _ details: @autoclosure () -> String) {
        count("judged \(sentence)")
        if !holds { fail(sentence, details()) }
    }

    // MARK: Applications

    /// An operator or application creates a room, changes it, or makes a token for it.
    func operate() {
        guard let name = Self.names.randomElement(using: &random) else { return }
        guard stage.hub.hasRoom(name) else {
            var options = changes()
            options.persistent = chance(70) ? nil : false
            if chance(40) { (options.media, options.capacity) = (.mesh, Int.random(in: 1...6, using: &random)) }
            (ledgers[name], creators[name]) = (nil, nil)
            stage.operate(.create(RoomCreationRequest(name: name, options: options)))
            return count("created by an application")
        }
        if chance(20) {
            let changes = changes()
            let reply = stage.operate(.change(name, changes))
            if reply?.errorCode == nil { ledgers[name]?.change(changes) }
            return count("changed by an application")
        }
        guard ledgers[name]?.tokens.count ?? 0 < 8 else { return }
        let role = RoomRole.allCases.randomElement(using: &random) ?? .guest
        let wish = RoomTokenRequest(role: role, displayName: Self.displayName, lifetime: Limits.roomTokenLifetime)
        guard let token = stage.operate(.token(name, wish))?.token?.token else { return fail("no token") }
        ledgers[name]?.tokens.append(.init(text: token, role: role))
        count("token for a \(role)")
    }

    // MARK: Coming in

    /// - Parameter isNew: whether the person may have created the room.
    func judgeAnswer(_ answer: ServerMessage?, to visitor: Visitor, _ name: RoomName, isNew: Bool) {
        if isNew {
            ledgers[name] = nil
            if let room = stage.operate(.describe(name))?.room { openLedger(name, room) }
        }
        guard let ledger = ledgers[name] else { return }
        let token = visitor.token
        let identity = visitor.guest.identity
        let isIn = answer?.room?.joined != nil
        if ledger.isKeptOut(identity, token) {
            if answer?.room != nil { fail("a person came in whom an owner keeps out") }
            return
        }
        guard ledger.isOwner(identity, token) else { return }
        judge(
            .nothingStopsOwners, isIn || answer?.errorCode == .roomFull && mayBeFull(for: identity, name),
            "an owner got \(String(describing: answer ?? nil)), \(visitor.guest.refusals.last?.code.rawValue ?? "")")
        if isIn { count("an owner came in\(token == nil ? "" : " with a token")") }
    }

    /// Returns whether a room may have no place for an owner: the person is in it with another device, or it has as many
    /// people as a room of its kind can have.
    private func mayBeFull(for owner: IdentityID, _ name: RoomName) -> Bool {
        guard let ledger = ledgers[name], let room = stage.operate(.describe(name))?.room else { return false }
        return ledger.people.values.contains { $0.identity == owner }
            || room.people.count >= Self.most(room.summary.options)
    }

    /// Notes who came in, with which rights.
    func noteArrival(of visitor: Visitor, _ joined: RoomNotice.Joined) {
        // What stand-ins did is over when the room has been empty, be it for a moment.
        if joined.people.count == 1 { ledgers[joined.name]?.emptied() }
        guard let ledger = ledgers[joined.name] else { return }
        let identity = visitor.guest.identity
        var person = ledger.people[visitor.connection] ?? RoomLedger.Person()
        person.identity = identity
        if joined.re != nil {
            let token = visitor.token
            let isOwner = ledger.isOwner(identity, token)
            (person.token, person.lasting) = (token, isOwner ? .host : token?.role ?? .guest)
            if isOwner { judge(.ownersAreHosts, joined.role == .host, "an owner came in as \(joined.role)") }
            if joined.people.count == 1 {
                judge(.emptyRoomsAreTheOwners, joined.options == ledger.options, "\(joined.options)")
            }
        }
        ledgers[joined.name]?.people[visitor.connection] = person
    }

    private func openLedger(_ name: RoomName, _ room: RoomDescription) {
        guard ledgers[name] == nil else { return }
        ledgers[name] = RoomLedger(creator: creators[name], options: room.summary.options)
    }

    // MARK: Every moment

    /// Judges what holds after every event.
    func judgeRights() {
        for name in Self.names {
            guard let room = stage.operate(.describe(name))?.room else {
                judgeEnd(of: name)
                continue
            }
            openLedger(name, room)
            known[name] = room.summary.options
            let present = Set(room.people.map(\.connection))
            guard var ledger = ledgers[name] else { return }
            if present.isDisjoint(with: ledger.people.keys) { ledger.emptied() }
            ledger.people = ledger.people.filter { present.contains($0.key) }
            for connection in present where ledger.people[connection] == nil {
                ledger.people[connection] = RoomLedger.Person()
            }
            ledgers[name] = ledger
            judgeBans(ledger)
            judgeRoles(room.people, ledger)
            judgeOptions(room, ledger)
            judgeStorage(name, ledger)
        }
    }

    private func judgeBans(_ ledger: RoomLedger) {
        for person in ledger.people.values {
            // A removed token does not remove the others who came with it.
            guard let identity = person.identity, ledger.isKeptOut(identity, person.token, isIn: true) else { continue }
            fail("a banned person is in the room")
        }
    }

    private func judgeRoles(_ people: [RoomPerson], _ ledger: RoomLedger) {
        guard !people.isEmpty else { return }
        judge(.hasHost, people.contains { $0.role == .host }, "\(people)")
        guard ledger.hasOwner else { return count("an owner is away") }
        for person in people {
            let lasting = ledger.people[person.connection]?.lasting ?? .guest
            judge(.ownersEndStandIns, person.role == lasting, "a \(lasting) is \(person.role)")
        }
    }

    private func judgeOptions(_ room: RoomDescription, _ ledger: RoomLedger) {
        guard room.people.isEmpty else { return }
        judge(
            .emptyRoomsAreTheOwners, room.summary.options == ledger.options,
            "\(room.summary.options) instead of \(ledger.options)")
    }

    private func judgeStorage(_ name: RoomName, _ ledger: RoomLedger) {
        let stored = stage.archive.rooms.values.first { $0.name == name }
        guard ledger.options.persistent else {
            return judge(.storageHasOwnersDecisions, stored == nil, "a room that is not persistent is stored")
        }
        guard let stored else { return fail(.persistentRoomsStay, "it is not stored") }
        judge(.storageHasOwnersDecisions, stored.options == ledger.options, "\(stored.options), not \(ledger.options)")
        // Not those of phones, whose identities only the server knows.
        let bans = Set(stored.bans).intersection(identities)
        judge(.storageHasOwnersDecisions, bans == ledger.bans, "\(bans.count) bans, not \(ledger.bans.count)")
        judge(
            .storageHasOwnersDecisions, stored.revokedTokens.count == ledger.revoked.count,
            "\(stored.revokedTokens.count) revoked tokens, not \(ledger.revoked.count)")
        judge(.creatorsStay, stored.creator == ledger.creator, "the creator is \(String(describing: stored.creator))")
    }

    /// Nobody can open a locked room without an owner, so it does not keep its name.
    private func judgeEnd(of name: RoomName) {
        guard let ledger = ledgers[name] else { return }
        let isUseless = ledger.options.locked && ledger.creator == nil && !ledger.hasHostTokens
        judge(.persistentRoomsStay, !ledger.options.persistent || isUseless, "\(name) ended")
        ledgers[name] = nil
    }

    // MARK: Requests

    /// Judges the answer to a request of a person in the room, and notes what it changes.
    func judgeRights(_ verb: RoomVerb, by visitor: Visitor, in view: View, _ answer: ServerMessage) {
        guard let ledger = ledgers[view.name], let actor = ledger.people[visitor.connection] else { return }
        let role = view.people[visitor.connection]?.role ?? .guest
        let isDone = answer.type == "ok"
        if isDone, !actor.isChosen, role != .guest { count("a stand-in did \(ClientMessage.room(verb).type)") }
        judgeModeration(verb, role, actor, view.options, answer)
        switch verb {
        case .set(let set):
            guard isDone else { return }
            if actor.isChosen { ledgers[view.name]?.change(set.options) }
        case .role(let change):
            guard isDone, let target = ledger.people[change.connection] else { return }
            let isFree = target.token == nil && !target.isChosen
            let isAllowed = actor.lasting == .host || isFree || change.connection == visitor.connection
            let isSame = view.people[change.connection]?.role == change.role
            judge(.standInsKeepRoles, isAllowed || isSame, "a \(target.lasting) became \(change.role)")
            ledgers[view.name]?.roleGiven(change.role, to: change.connection, by: actor)
        case .remove(let remove): if isDone { judgeRemoval(remove, actor, ledger, view.name) }
        case .removeFile(let file):
            guard isDone, let entry = ledger.files[file.id], entry.sender != visitor.connection else { return }
            judge(.standInsKeepFiles, actor.isChosen || !entry.isOwners, "a stand-in removed it")
        default: return
        }
    }

    private func judgeModeration(
        _ verb: RoomVerb, _ role: RoomRole, _ actor: RoomLedger.Person, _ options: RoomOptions, _ answer: ServerMessage
    ) {
        let isRefused = answer.errorCode == .notPermitted
        switch verb {
        case .admit, .deny, .mute, .stopShare: break
        case .set(let set):
            let isOwners =
                set.options.capacity.map { $0 != options.capacity } ?? false
                || set.options.persistent.map { $0 != options.persistent } ?? false
                || set.options.password.map { !$0.isEmpty || options.password } ?? false
            guard role != .guest, isOwners, !actor.isChosen else { break }
            return judge(.standInsKeepTheRoom, answer.type != "ok", "\(set.options) was \(answer.type)")
        case .remove, .role:
            if role == .guest { judge(.guestsModerateNothing, isRefused, "\(verb)") }
            return
        default: return
        }
        if role == .guest {
            judge(.guestsModerateNothing, isRefused, "\(verb)")
        } else {
            judge(.standInsKeepTheRoomWorking, !isRefused, "a \(role) may not do \(verb)")
        }
    }

    private func judgeRemoval(
        _ remove: RoomVerb.Remove, _ actor: RoomLedger.Person, _ ledger: RoomLedger, _ name: RoomName
    ) {
        let isBan = remove.ban ?? false
        let waiting = clients.first { $0.connection == remove.connection }?.guest.identity
        guard let target = ledger.people[remove.connection] else {
            // A person in the lobby, who may also be in the room.
            guard isBan, let waiting else { return }
            ledgers[name]?.removed(RoomLedger.Person(identity: waiting), by: actor, isBan: true)
            return noteBan(waiting, actor, ledger, name)
        }
        judge(.standInsKeepPeople, actor.lasting == .host || !target.isChosen, "a \(target.lasting) was removed")
        ledgers[name]?.removed(target, by: actor, isBan: isBan)
        if isBan, let identity = target.identity { noteBan(identity, actor, ledger, name) }
    }

    /// A ban is for all devices of a person.
    private func noteBan(
        _ identity: IdentityID, _ actor: RoomLedger.Person, _ ledger: RoomLedger, _ name: RoomName
    ) {
        for person in ledger.people.values where person.identity == identity {
            judge(.standInsKeepPeople, actor.lasting == .host || !person.isChosen, "a \(person.lasting) was banned")
            ledgers[name]?.removed(person, by: actor, isBan: true)
        }
        count("banned by \(actor.isChosen ? "an owner" : "a stand-in")")
    }

    /// Hosts moderate the session too, past the room.
    ///
    /// - Returns: whether the room permits it.
    func judgeDisconnection(
        of connection: ConnectionID, by visitor: Visitor, in view: View, isDone: Bool
    ) -> Bool {
        guard let ledger = ledgers[view.name], let actor = ledger.people[visitor.connection],
            let target = ledger.people[connection]
        else { return true }
        let isAllowed = actor.lasting == .host || !target.isChosen
        guard isDone else { return isAllowed }
        judge(.standInsKeepPeople, isAllowed, "a \(target.lasting) was disconnected")
        ledgers[view.name]?.removed(target, by: actor, isBan: false)
        return isAllowed
    }
}

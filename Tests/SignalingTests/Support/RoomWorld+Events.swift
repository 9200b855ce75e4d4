import Signaling
import TestSupport
import Testing
import Wire

/// The events, in random order.
extension RoomWorld {
    func step() {
        for visitor in clients { visitor.reactions = [] }
        stage.pass(milliseconds(0...1999))
        settle()
        switch Int.random(in: 0..<1000, using: &random) {
        case 0..<80: arrive()
        case 80..<280: join()
        case 280..<330: leaveRoom()
        case 330..<370: depart()
        case 370..<450: loseConnection()
        case 450..<530: resume()
        case 530..<570: useDeadToken()
        case 570..<580: closeRoom()
        case 580..<582: restart()
        case 582..<587: changeStorage()
        case 587..<607: dial()
        case 607..<617: hangUp()
        case 617..<670: enterSession()
        case 670..<780: media()
        case 780..<840: file()
        case 840..<870: operate()
        default: request()
        }
        settle()
    }

    private func settle() {
        hear()
        hearPhones()
        // People who do not come back. Their connection ends later.
        for visitor in clients.filter(isLost) where chance(20) { forget(visitor) }
        judge()
    }

    // MARK: Connecting

    private func arrive() {
        guard clients.count < 20, let identity = identities.randomElement(using: &random) else { return }
        clients.append(Visitor(stage.arrive(identity, address: "\(clients.count % 3)")))
        count("arrived")
    }

    private func depart() {
        guard let visitor = anybody() else { return }
        leave(visitor)
        count("departed")
    }

    private func loseConnection() {
        guard let visitor = anybody() else { return }
        drop(visitor)
        count("dropped")
    }

    private func resume() {
        guard let visitor = anybody({ !$0.isLive }) else { return }
        let connection = visitor.connection
        visitor.guest.resume()
        visitor.droppedAt = nil
        if visitor.connection != connection {
            over(visitor)
            visitor.roster = nil
        }
        count(visitor.connection == connection ? "resumed" : "resumed too late")
    }

    /// A restart ends everyone's place. Persistent rooms come back with their bans, and the tokens of all places stay dead.
    private func restart() {
        for visitor in clients {
            over(visitor)
            visitor.roster = nil
        }
        noteChanges()
        stage.restart()
        (mutedSessions, revokingSessions) = ([], [:])
        phones = []
        for visitor in clients { visitor.droppedAt = stage.now }
        if stage.hub.roomCount > 0 { count("restored") }
        count("restarted")
    }

    /// The disk is full, or has space again.
    private func changeStorage() {
        let full = WireError(.storageFull, "The disk is full.", retryable: true)
        stage.permit = stage.permit == .all ? .essential(full) : .all
        count("storage changed")
    }

    // MARK: Rooms

    private func join() {
        guard let visitor = anybody({ $0.isLive && $0.view == nil && $0.waitsFor == nil }),
            let name = Self.names.randomElement(using: &random)
        else { return }
        var options = RoomChanges()
        if chance(50) { options.capacity = Int.random(in: 1...6, using: &random) }
        if chance(20) { options.lobby = true }
        if chance(10) { options.password = Self.password }
        if chance(10) { options.persistent = true }
        if chance(40) { options.media = .mesh }
        let isNew = !stage.hub.hasRoom(name)
        if isNew { (creators[name], known[name]) = (visitor.guest.identity, nil) }
        // Rarely without need: the refusal would hide what happens to people who come in.
        let isNeeded = known[name]?.password ?? false
        let password = chance(isNeeded ? 80 : 5) ? (chance(80) ? Self.password : "wrong") : nil
        visitor.token = chance(40) && !isNew ? ledgers[name]?.tokens.randomElement(using: &random) : nil
        let answer = visitor.guest.open(
            name, as: Self.displayName, password: password, token: visitor.token?.text, with: options)
        count("join: \(answer?.errorCode?.rawValue ?? answer?.type ?? "nothing")")
        judgeAnswer(answer, to: visitor, name, isNew: isNew)
        if !visitor.isLive { forget(visitor) }
        guard let notice = answer?.room else { return }
        let isCreator = ledgers[name]?.creator == visitor.guest.identity
        hear(visitor, notice)
        let passes = isCreator || visitor.token != nil
        if let joined = notice.joined, joined.options.password, password != Self.password, !passes {
            fail("a person came in without the password")
        }
    }

    private func leaveRoom() {
        guard let visitor = anybody({ $0.isLive && ($0.view != nil || $0.waitsFor != nil) }) else { return }
        if visitor.guest.leaveRoom()?.type != "ok" { fail("leaving failed") }
        over(visitor)
        count("left")
    }

    private func closeRoom() {
        guard let name = Self.names.randomElement(using: &random) else { return }
        stage.handle(.closeRoom(name))
        ledgers[name] = nil
        count("closed")
    }

    // MARK: Files

    private func file() {
        guard let visitor = anybody({ $0.isLive && $0.view != nil }), let view = visitor.view else { return }
        let shown = view.files.sorted().randomElement(using: &random)
        switch (Int.random(in: 0..<4, using: &random), shown) {
        case (0, let id?): download(id, visitor, view)
        case (1, let id?):
            let verb = RoomVerb.removeFile(.init(id: id))
            let answer = visitor.guest.ask(.room(verb))
            count("room.removeFile: \(answer?.errorCode?.rawValue ?? "ok")")
            if let answer { judgeRights(verb, by: visitor, in: view, answer) }
            if answer?.errorCode == .notFound { fail("the chat shows a file that does not exist") }
        default: upload(visitor, view)
        }
    }

    /// Some uploads never begin, and some never end.
    private func upload(_ visitor: Visitor, _ view: View) {
        let size = Int.random(in: 1...1 << 20, using: &random)
        let answer = visitor.guest.ask(.room(.file(.init(name: "a.txt", size: size))))
        count("room.file: \(answer?.errorCode?.rawValue ?? "ok")")
        guard case .room(.upload(let upload))? = answer, chance(80) else { return }
        let isOwners = ledgers[view.name]?.people[visitor.connection]?.isChosen ?? false
        ledgers[view.name]?.files[upload.id] = (visitor.connection, isOwners)
        let began = stage.operate(.file(view.name, upload.id, .begin(upload.secret)))
        if began != .file(RoomFileInfo(name: "a.txt", size: size)) { return fail("an upload could not begin") }
        guard chance(80) else { return }
        let isComplete = chance(80)
        let ended = stage.operate(.file(view.name, upload.id, .end(upload.secret, isComplete: isComplete)))
        count("upload: \(isComplete ? ended?.errorCode?.rawValue ?? "complete" : "canceled")")
    }

    private func download(_ id: RoomFileID, _ visitor: Visitor, _ view: View) {
        guard let key = view.fileKey else { return fail("a member has no key for files") }
        let found = stage.operate(.file(view.name, id, .download(key)))
        if found?.errorCode != nil { fail("a member cannot download a file that the chat shows") }
        guard let dead = visitor.deadKeys.randomElement(using: &random) else { return count("downloaded") }
        let refused = stage.operate(.file(view.name, id, .download(dead)))
        if refused?.errorCode != .notFound { fail("a dead key downloads a file") }
        count("dead key refused")
    }

    // MARK: Requests in a room

    private func request() {
        guard let visitor = anybody({ $0.isLive && $0.view != nil }), let view = visitor.view else { return }
        let others = clients.filter { $0.view?.name == view.name || $0.waitsFor == view.name }
        guard let other = others.randomElement(using: &random) else { return }
        let phone = view.people.keys.filter(\.isPhone).sorted().randomElement(using: &random)
        let target = chance(20) ? phone ?? other.connection : other.connection
        let verb = verb(about: target)
        let role = view.people[visitor.connection]?.role ?? .guest
        guard let answer = visitor.guest.ask(.room(verb)) else { return fail("\(verb) was not answered") }
        count("\(ClientMessage.room(verb).type): \(answer.errorCode?.rawValue ?? "ok")")
        judgeRights(verb, by: visitor, in: view, answer)
        guard answer.type == "ok" else { return }
        judge(verb, by: role)
        hear()
        judgeEffect(of: verb, by: visitor, in: view)
    }

    private func verb(about connection: ConnectionID) -> RoomVerb {
        switch Int.random(in: 0..<15, using: &random) {
        case 0..<3: return .admit(.init(connection: connection))
        case 3: return .deny(.init(connection: connection))
        case 4: return .mute(.init(connection: chance(50) ? connection : nil))
        case 5: return .stopShare(.init(connection: chance(50) ? connection : nil))
        case 6: return .remove(.init(connection: connection, ban: chance(40)))
        case 7, 8:
            return .role(.init(connection: connection, role: RoomRole.allCases.randomElement(using: &random) ?? .guest))
        case 9:
            lastText += 1
            return .say(.init(text: "\(lastText)"))
        case 10: return .hand(.init(raised: chance(50)))
        case 11:
            return .react(.init(reaction: "👍"))
        default: return .set(.init(options: changes()))
        }
    }

    func changes() -> RoomChanges {
        var changes = RoomChanges()
        switch Int.random(in: 0..<7, using: &random) {
        case 0: changes.locked = chance(30)
        case 1: changes.lobby = chance(50)
        case 2: changes.password = chance(30) ? Self.password : ""
        case 3: changes.capacity = Int.random(in: 1...6, using: &random)
        case 4: changes.share = chance(50) ? .hosts : .all
        case 5: changes.persistent = chance(30)
        default: changes.chat = chance(80)
        }
        return changes
    }
}

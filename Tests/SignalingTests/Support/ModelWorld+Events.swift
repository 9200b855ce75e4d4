import Signaling
import TestSupport
import Wire

/// The random events of the model's people.
extension ModelWorld {
    private static let interests = ["chess", "jazz", "tea", "run", "sew"]

    /// Passes some time and performs one random event.
    func step() {
        if let impatient = lately, impatient.isLive, chance(30) {
            pass(milliseconds(1...2000))
            lately = chance(70) ? impatient : nil
            if fault == nil, impatient.isLive { next(impatient) }
            return
        }
        let pace = Int.random(in: 0..<100, using: &random)
        let range = pace < 70 ? 1...300 : pace < 95 ? 300...3000 : 3000...20_000
        pass(milliseconds(range))
        guard fault == nil else { return }
        if clients.count < most, chance(clients.count < most / 2 ? 60 : 15) { enter() } else { act() }
        if chance(1) { model.forgetOldPairings() }
    }

    private func enter() {
        let known = clients.map(\.identity) + model.people.keys.sorted()
        let identity = chance(25) ? known.randomElement(using: &random) : nil
        count("arrivals")
        arrive(
            identity ?? .random(using: &random),
            address: chance(50) ? "" : "192.0.2.\(Int.random(in: 0..<2, using: &random))")
    }

    private func act() {
        guard let visitor = anybody() else { return goOrReturn() }
        // Idle people mostly start a search.
        if model.person(visitor).state == .idle, chance(60) { return start(visitor) }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<8: start(visitor)
        case 8..<34: next(visitor)
        case 34..<39: stop(visitor)
        case 39..<42: block(visitor)
        case 42..<46: report(visitor)
        case 46..<64: join(visitor)
        case 64..<78: signal(visitor)
        case 78..<80: leaveSession(visitor)
        case 80: ban()
        default: goOrReturn()
        }
    }

    private func goOrReturn() {
        if chance(55), let dropped = anybody({ !$0.isLive }) {
            note("\(dropped.number) resumes")
            count("resumes")
            return resume(dropped)
        }
        guard let visitor = anybody() else { return }
        let leaving = chance(25)
        note("\(visitor.number) \(leaving ? "leaves" : "drops")")
        count(leaving ? "leaves" : "drops")
        lose(visitor, leaving: leaving)
    }

    // MARK: Verbs

    private func start(_ visitor: Visitor) {
        let isValid = !chance(2)
        let few = Self.interests.shuffled(using: &random).prefix(chance(40) ? 0 : Int.random(in: 1...3, using: &random))
            .sorted()
        let wanted = Someone.Search(
            visitor: visitor.number, mode: chance(25) ? .text : .video, interests: Set(few), name: "n\(visitor.number)"
        )
        note("\(visitor.number) starts \(wanted.mode) \(few)")
        count("starts")
        model.start(visitor, wanted, isValid: isValid, re: nextRequest(visitor))
        let interests = isValid ? few : (0..<11).map { "interest \($0)" }
        say(visitor, .roulette(.start(.init(mode: wanted.mode, interests: interests, name: wanted.name))))
    }

    private func next(_ visitor: Visitor) {
        let match = chance(40) ? someMatch(visitor) : visitor.matches.last
        note("\(visitor.number) says next \(match.map { "\($0)" } ?? "")")
        count("nexts")
        model.next(visitor, match, re: nextRequest(visitor))
        say(visitor, .roulette(.next(.init(match: match))))
    }

    private func stop(_ visitor: Visitor) {
        note("\(visitor.number) stops")
        model.stop(visitor, re: nextRequest(visitor))
        say(visitor, .roulette(.stop))
    }

    /// The current chat, an earlier one, or one that never existed.
    private func someMatch(_ visitor: Visitor) -> MatchID? {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<6: nil
        case 6..<9: visitor.matches.suffix(3).randomElement(using: &random)
        default: .random(using: &random)
        }
    }

    private func block(_ visitor: Visitor) {
        let match = someMatch(visitor)
        note("\(visitor.number) blocks \(match.map { "\($0)" } ?? "")")
        count("blocks")
        model.block(visitor, match, re: nextRequest(visitor))
        say(visitor, .roulette(.block(.init(match: match))))
    }

    private func report(_ visitor: Visitor) {
        let match = someMatch(visitor)
        note("\(visitor.number) reports \(match.map { "\($0)" } ?? "")")
        count("reports")
        model.report(visitor, match, re: nextRequest(visitor))
        say(visitor, .roulette(.report(.init(reason: "r", match: match))))
    }

    private func ban() {
        guard let identity = model.people.keys.sorted().randomElement(using: &random) else { return }
        let ban = Ban(
            subject: .identity(identity), reason: "", createdAt: model.now,
            expiresAt: model.now + .seconds(Int.random(in: 0...120, using: &random))
        )
        note("\(identity.description.prefix(6)) is banned")
        count("bans")
        let out = model.ban(identity, ban)
        expectClosed(out, with: .forbidden) { stage.handle(.banned(ban)) }
    }

    // MARK: Sessions

    /// Joins with its own current token, with anyone's current or old token, or with a program's token.
    private func join(_ visitor: Visitor) {
        let chosen: ModelToken
        let own = model.person(visitor).match.flatMap { model.pairings[$0] }
        if let own, let token = own.tokens[visitor.identity], chance(80) {
            chosen = ModelToken(
                Admission(session: own.session, token: token), match: own.match, of: visitor.identity)
        } else if chance(40), let old = tokens.suffix(chance(50) ? 6 : 300).randomElement(using: &random) {
            chosen = old
        } else {
            chosen = program()
        }
        note(
            "\(visitor.number) joins \(chosen.session.text.suffix(6)) of match \(chosen.match.map { "\($0)" } ?? "none")"
        )
        count("joins")
        let join = ClientMessage.session(.join(.init(session: chosen.session, token: chosen.token)))
        if model.join(visitor, chosen, re: nextRequest(visitor)) {
            say(visitor, join)
        } else {
            count("dead tokens")
            expectClosed([visitor], with: .token) { visitor.guest.say(join) }
        }
    }

    /// One of three sessions that a program created.
    private func program() -> ModelToken {
        var fixed = SeededGenerator(seed: UInt64.random(in: 0..<3, using: &random))
        let made = Timestamp(milliseconds: 1_700_000_000_000)
        let session = stage.project.makeSessionID(mediaMode: .routed, now: made, using: &fixed)
        let token = stage.project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(60)), now: model.now,
            using: &random)
        return ModelToken(Admission(session: session, token: token))
    }

    private func signal(_ visitor: Visitor) {
        guard let session = visitor.views.keys.sorted(by: { $0.text < $1.text }).randomElement(using: &random) else {
            return
        }
        let data = "\(visitor.number).\(visitor.guest.lastRequest)"
        note("\(visitor.number) says \(data)")
        count("signals")
        model.signal(visitor, session, data, re: nextRequest(visitor))
        say(visitor, .session(.signal(.init(session: session, type: chance(70) ? "chat" : "typing", data: data))))
    }

    private func leaveSession(_ visitor: Visitor) {
        guard let session = visitor.views.keys.sorted(by: { $0.text < $1.text }).randomElement(using: &random) else {
            return
        }
        note("\(visitor.number) leaves \(session.text.suffix(6))")
        model.leaveSession(visitor, session, re: nextRequest(visitor))
        say(visitor, .session(.leave(.init(session: session))))
    }

    // MARK: End of the run

    /// Disconnects everyone, as the model predicts.
    func goHome() {
        while fault == nil, let visitor = anybody() { lose(visitor, leaving: chance(50)) }
        pass(.seconds(7200))
        if fault == nil { empty() }
    }
}

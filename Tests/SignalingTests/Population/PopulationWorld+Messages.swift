import Cluster
import Signaling
import Wire

/// What clients do with the messages of their nodes.
extension PopulationWorld {
    private static let pong = Array(#"{"type":"pong""#.utf8)
    /// As long as a browser's description of one peer connection with audio and video.
    private static let description = String(repeating: "a=rtcp-fb:96 transport-cc\r\n", count: 100)
    private static let candidates = 3
    private static let candidate = JSONValue.object(
        JSONObject([
            .init(
                name: "candidate",
                value: .string("candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host generation 0 ufrag abcd")),
            .init(name: "sdpMid", value: .string("0")),
        ]))

    func receive(_ bytes: [UInt8], _ person: Int) {
        // Most messages are these, and they have no content.
        guard !bytes.starts(with: Self.pong) else { return }
        guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else {
            return fail("unreadable: \(String(decoding: bytes, as: UTF8.self))")
        }
        guard let number = envelope.seq else { return hearUnnumbered(envelope.message, person) }
        guard number == UInt64(residents[person].received) + 1 else {
            return fail("\(number) came after \(residents[person].received): \(envelope.message)")
        }
        residents[person].received += 1
        if let re = envelope.message.re, !residents[person].answered(re) {
            return fail("request \(re) was answered twice or never sent: \(envelope.message)")
        }
        hear(envelope.message, person)
        acknowledgeIfOwed(person)
    }

    private func hearUnnumbered(_ message: ServerMessage, _ person: Int) {
        switch message {
        case .welcome(let welcome):
            residents[person].connection = welcome.connection
            if case .calls = PopulationHabit(person) { say(.presence(.appear(Appearance(name: "Ada"))), person) }
            guard residents[person].wish == .nothing else { return pursue(person) }
            rest(person)
        case .error(let failure):
            if failure.error.code == .elsewhere, failure.error.at != nil { return follow(failure.error, person) }
            note("closed: \(failure.error.code.rawValue)")
        default: break
        }
    }

    private func hear(_ message: ServerMessage, _ person: Int) {
        switch message {
        case .error(let failure): hear(failure, person)
        case .roulette(let notice): hear(notice, person)
        case .session(let notice): hear(notice, person)
        case .call(let notice): hear(notice, person)
        case .room(let notice): hear(notice, person)
        case .contact(.changed(_)): note("contacts seen")
        default: break
        }
    }

    private func hear(_ failure: ServerMessage.Failure, _ person: Int) {
        let isOfWish = failure.re.map { $0 == UInt64(residents[person].asked) } ?? true
        if failure.error.code == .elsewhere, failure.error.at != nil, isOfWish { return follow(failure.error, person) }
        note("errors: \(failure.error.code.rawValue)")
        guard failure.re != nil, isOfWish, residents[person].state == .idle else { return }
        residents[person].wish = .nothing
        rest(person)
    }

    /// Does nothing for a while, and then what the person is there for.
    private func rest(_ person: Int) {
        residents[person].become(.idle, at: now)
        let makesCalls = if case .calls = PopulationHabit(person) { true } else { false }
        plan(.act, person, around: makesCalls ? PopulationHabit.callPause : PopulationHabit.pause)
    }

    // MARK: Strangers

    private func hear(_ notice: RouletteNotice, _ person: Int) {
        switch notice {
        case .waiting:
            residents[person].redirects = 0
            guard residents[person].wish == .chat, residents[person].state != .chatting else { return }
            if residents[person].state != .searching { residents[person].become(.searching, at: now) }
        case .matched(let matched):
            note("matches of a person")
            judge(matched, person)
            residents[person].binding = (matched.match.high, matched.match.low)
            enter(.chatting, matched.publish, person)
            plan(.act, person, around: PopulationHabit.chat, atLeast: PopulationHabit.shortestChat)
            plan(.line, person, around: PopulationHabit.line)
        case .ended(let ended):
            guard residents[person].state == .chatting, ended.match == match(of: person) else { return }
            leaveState(person)
            residents[person].become(.searching, at: now)
        case .partner, .count, .warning, .blur: break
        }
    }

    // MARK: Sessions

    /// Is in something that has a session, and joins the session.
    private func enter(_ state: PopulationResident.State, _ admission: Admission, _ person: Int) {
        residents[person].become(state, at: now)
        residents[person].session = admission.session
        say(.session(.join(.init(session: admission.session, token: admission.token))), person)
    }

    private func hear(_ notice: SessionNotice, _ person: Int) {
        switch notice {
        case .joined(let joined):
            guard joined.session == residents[person].session else { return }
            var publish = SessionVerb.Publish()
            publish.session = joined.session
            say(.session(.publish(publish)), person)
            for stream in joined.streams { watch(stream, in: joined.session, person) }
        case .streamCreated(let created): watch(created.stream, in: created.session, person)
        case .negotiate(let offer) where offer.description?.type == .offer:
            negotiate(.answer, with: offer.from, in: offer.session, person)
        default: break
        }
    }

    /// Subscribes to a stream. One of the two makes the offer, because they have one peer connection.
    private func watch(_ stream: StreamInfo, in session: SessionID, _ person: Int) {
        guard session == residents[person].session else { return }
        say(.session(.subscribe(.init(session: session, stream: stream.id))), person)
        guard residents[person].connection < stream.connection else { return }
        negotiate(.offer, with: stream.connection, in: session, person)
    }

    private func negotiate(
        _ type: SessionDescription.Kind, with other: ConnectionID, in session: SessionID, _ person: Int
    ) {
        var message = SessionVerb.Negotiate()
        (message.session, message.to) = (session, other)
        message.description = SessionDescription(type: type, sdp: Self.description)
        say(.session(.negotiate(message)), person)
        message.description = nil
        message.candidate = Self.candidate
        for _ in 0..<Self.candidates { say(.session(.negotiate(message)), person) }
    }

    // MARK: Calls

    private func hear(_ notice: CallNotice, _ person: Int) {
        switch notice {
        case .placed(let placed):
            note("calls")
            residents[person].redirects = 0
            residents[person].binding = (placed.call.high, placed.call.low)
            residents[person].isCaller = true
            residents[person].become(.calling, at: now)
        case .incoming(let incoming):
            judge(incoming)
            guard residents[person].state == .idle, residents[person].wish == .nothing else {
                say(.call(.decline(.init(call: incoming.call))), person)
                return
            }
            residents[person].binding = (incoming.call.high, incoming.call.low)
            residents[person].isCaller = false
            residents[person].become(.ringing, at: now)
            plan(.act, person, around: PopulationHabit.ringing)
        case .accepted(let accepted):
            // A caller who has left and come back may no longer wait for it.
            let waits = [.calling, .ringing].contains(residents[person].state)
            guard waits, accepted.call == call(of: person) else { return }
            note("calls accepted")
            enter(.talking, accepted.admission, person)
            if residents[person].isCaller { plan(.act, person, around: PopulationHabit.call) }
        case .ended(let ended):
            say(.call(.seen(.init(call: ended.call))), person)
            let isInCall = [.calling, .ringing, .talking].contains(residents[person].state)
            guard isInCall, ended.call == call(of: person) else { return }
            leaveState(person)
            residents[person].wish = .nothing
            rest(person)
        case .ringing, .changed, .partner, .log: break
        }
    }

    // MARK: Rooms

    private func hear(_ notice: RoomNotice, _ person: Int) {
        switch notice {
        case .joined(let joined):
            note("rooms joined")
            residents[person].redirects = 0
            judgeRoom(person)
            enter(.inRoom, joined.admission, person)
            plan(.line, person, around: PopulationHabit.roomLine)
        case .ended(_), .refused(_):
            guard residents[person].state == .inRoom else { return }
            leaveState(person)
            residents[person].wish = .nothing
            rest(person)
        default: break
        }
    }
}

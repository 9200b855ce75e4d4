import Wire

/// Something the shell saw.
public enum Input: Equatable, Sendable {
    case arrived(Arrival)
    /// The same on RouletteTok's wire, and what is asked there.
    case originalArrived(OriginalArrival)
    case asked(SocketID, RouletteTokRequest)
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// A resource of WHIP or WHEP is asked for, and what is asked of it later.
    case resourceArrived(ResourceArrival)
    case requested(SocketID, ResourceRequest)
    case closed(SocketID, leaving: Bool)
    case banned(Ban)
    /// The operator lifted a ban.
    case unbanned(IdentityID)
    /// From the media plane.
    case media(MediaEvent)
    /// An address was banned, or an operator wants this socket's client gone.
    case expel(SocketID, WireError, CloseCode)
    /// What came of an inquiry.
    case answered(Question, Finding)
    /// No device of this person can be woken any more: the push services said so.
    case unreachable(IdentityID)
    /// At the start, before anybody arrives: a call that was going on when the server stopped, and its two people.
    case restored(StoredCall, caller: PersonRecord, callee: PersonRecord)
}

extension Hub {
    /// Turns what the shell saw into letters.
    mutating func receive(_ input: Input) {
        switch input {
        case .arrived(let arrival): clients.receive(arrival, &turn)
        case .originalArrived(let arrival): clients.makeOriginal(arrival, &turn)
        case .resourceArrived(let arrival):
            let resource = clients.makeResource(arrival, &turn)
            if let resource { timers.schedule(.client(resource.id), resource.wakeUp) }
        case .asked(let socket, let request): clients.tell(socket, .asked(socket, request), &turn)
        case .message(let socket, let envelope): clients.tell(socket, .message(socket, envelope), &turn)
        case .unreadable(let socket, let message): clients.tell(socket, .unreadable(socket, message), &turn)
        case .requested(let socket, let request): clients.tell(socket, .requested(request), &turn)
        case .expel(let socket, let error, let code): clients.tell(socket, .expel(error, code), &turn)
        case .closed(let socket, let leaving): clients.closed(socket, leaving: leaving, &turn)
        case .banned(let ban):
            if case .identity(let identity) = ban.subject { turn.tell(.person(identity, .banned(ban))) }
        case .unbanned(let identity): turn.tell(.person(identity, .unbanned))
        case .media(let event): turn.tell(event.letter)
        case .answered(let question, let finding): question.answered(finding, &turn)
        case .unreachable(let identity):
            turn.tell(.person(identity, .presence(.pushChanged(isReachable: false))))
        case .restored(let call, let caller, let callee):
            for (identity, record) in [(call.caller, caller), (call.callee, callee)] {
                turn.tell(.person(identity, .lookedUp(record)))
                turn.tell(.person(identity, .call(.restored(call))))
            }
            turn.tell(.call(call.id, .restore(call)))
        }
    }
}

import Wire

/// An event that the shell observed.
public enum Input: Equatable, Sendable {
    case arrived(Arrival)
    /// A legacy client (RouletteTok's protocol) connected; `asked` carries its requests.
    case legacyArrived(LegacyArrival)
    case asked(SocketID, RouletteTokRequest)
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// A WHIP or WHEP resource is being created; `requested` carries later requests for it.
    case resourceArrived(ResourceArrival)
    case requested(SocketID, ResourceRequest)
    case closed(SocketID, leaving: Bool)
    case banned(Ban)
    /// The operator lifted a ban.
    case unbanned(IdentityID)
    /// An event from the media plane.
    case media(MediaEvent)
    /// The socket's address was banned, or an operator removes its client.
    case expel(SocketID, WireError, CloseCode)
    /// Storage could not commit changes of these people, and those of the person on the socket, whose request `re` caused them.
    case storageFailed(Set<IdentityID>, socket: SocketID?, re: UInt64?)
    /// The result of an inquiry.
    case answered(Question, Finding)
    /// The push services report that no device of this person can receive push notifications.
    case unreachable(IdentityID)
    /// Restores a call that was active when the server stopped, with its two people. Sent at startup, before any client
    /// arrives.
    case restored(StoredCall, caller: PersonRecord, callee: PersonRecord)
}

extension Hub {
    /// Turns an input into letters.
    mutating func receive(_ input: Input) {
        switch input {
        case .arrived(let arrival): clients.receive(arrival, &turn)
        case .legacyArrived(let arrival): clients.makeLegacy(arrival, &turn)
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
        case .storageFailed(let identities, let socket, let re):
            let client = socket.flatMap { clients.client(on: $0) }
            for identity in identities.union(client.map { [$0.identity] } ?? []).sorted() {
                turn.tell(.person(identity, .storageFailed(client: client?.id, re: re)))
            }
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

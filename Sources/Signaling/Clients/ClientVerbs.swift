import Wire

extension Arrival {
    /// What the person hears of it.
    func event(for client: ConnectionID) -> PersonEvent {
        let name = identity.name.map(DeviceName.vouched) ?? name.map(DeviceName.chosen) ?? .none
        return .arrived(client, address: address, name, record, device: device)
    }

    /// The same arrival as a new one. Tells it first that the resume failed.
    func withoutResume(_ turn: inout Turn) -> Arrival {
        let error = WireError(.resumeFailed, "The connection could not be resumed; this is a fresh start.")
        turn.transmit(socket, ServerMessage.error(ServerMessage.Failure(error)).encode())
        var arrival = self
        arrival.resume = nil
        return arrival
    }
}

extension ClientMessage {
    /// The session a session verb names.
    var session: SessionID? {
        switch self {
        case .session(.publish(let verb)): verb.session
        case .session(.unpublish(let verb)), .session(.unsubscribe(let verb)), .session(.forceUnpublish(let verb)): verb.session
        case .session(.update(let verb)): verb.session
        case .session(.subscribe(let verb)): verb.session
        case .session(.negotiate(let verb)): verb.session
        case .session(.connected(let verb)): verb.session
        case .session(.signal(let verb)): verb.session
        case .session(.forceDisconnect(let verb)): verb.session
        case .session(.forceMute(let verb)): verb.session
        default: nil
        }
    }

    /// About how many bytes of a negotiation this is; `nil` for what costs as any verb does.
    var negotiationSize: Int? {
        switch self {
        case .session(.negotiate(let verb)): verb.size
        case .media(.offer(let offer)): offer.sdp.utf8.count
        default: nil
        }
    }
}

extension PushVerb {
    var inquiry: Inquiry {
        switch self {
        case .register(let registration): .register(registration)
        case .unregister(let endpoint): .unregister(endpoint)
        }
    }
}

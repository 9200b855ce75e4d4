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
        turn.transmit(socket, ServerMessage.error(ErrorMessage(error)).encode())
        var arrival = self
        arrival.resume = nil
        return arrival
    }
}

extension ClientMessage {
    /// The session a session verb names.
    var session: SessionID? {
        switch self {
        case .publish(let verb): verb.session
        case .unpublish(let verb), .unsubscribe(let verb), .forceUnpublish(let verb): verb.session
        case .update(let verb): verb.session
        case .subscribe(let verb): verb.session
        case .negotiate(let verb): verb.session
        case .connected(let verb): verb.session
        case .signal(let verb): verb.session
        case .forceDisconnect(let verb): verb.session
        case .forceMute(let verb): verb.session
        default: nil
        }
    }

    /// About how many bytes of a negotiation this is; `nil` for what costs as any verb does.
    var negotiationSize: Int? {
        switch self {
        case .negotiate(let verb): verb.size
        case .mediaOffer(let offer): offer.sdp.utf8.count
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

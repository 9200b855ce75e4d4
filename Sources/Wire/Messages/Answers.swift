extension ServerMessage {
    /// The `seq` of the request that this answers; nil for events. Some messages are both: a call arrives as an event, and
    /// again as the answer of a device that rejoins it.
    ///
    /// No `default` here and below: adding a message requires deciding whether it answers a request.
    public var re: UInt64? {
        switch self {
        case .ok(let answer): answer.re
        case .error(let error): error.re
        case .joined(let joined): joined.re
        case .published(let published): published.re
        case .waiting(let waiting): waiting.re
        case .count(let count): count.re
        case .iceServers(let answer): answer.re
        case .mediaAnswer(let answer): answer.re
        case .presence(let news): news.re
        case .nearby(let news): news.re
        case .call(let news): news.re
        case .contact(let news): news.re
        case .welcome, .ack, .pong,
            .left, .connectionCreated, .connectionDestroyed, .connectionReconnecting, .connectionReconnected,
            .streamCreated, .streamDestroyed, .streamChanged, .subscribed, .unsubscribed, .negotiate, .signal, .muted,
            .matched, .partner, .ended,
            .mediaModeChanged, .subscriptionChanged, .layersWanted, .speaking, .mediaClosed:
            nil
        }
    }
}

extension PresenceNews {
    public var re: UInt64? {
        switch self {
        case .own(let own): own.re
        case .person(let found): found.re
        case .linkCode(let code): code.re
        case .linked(let linked): linked.re
        case .devices(let devices): devices.re
        case .blocked(let list): list.re
        case .unlinked, .deleted: nil
        }
    }
}

extension NearbyNews {
    public var re: UInt64? {
        switch self {
        case .list(let list): list.re
        case .changed: nil
        }
    }
}

extension CallNews {
    public var re: UInt64? {
        switch self {
        case .placed(let placed): placed.re
        case .incoming(let incoming): incoming.re
        case .accepted(let accepted): accepted.re
        case .log(let log): log.re
        case .ringing, .changed, .partner, .ended: nil
        }
    }
}

extension ContactNews {
    public var re: UInt64? {
        switch self {
        case .list(let list): list.re
        case .asked, .added, .changed, .removed: nil
        }
    }
}

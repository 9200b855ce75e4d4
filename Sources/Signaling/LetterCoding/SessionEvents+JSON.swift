import Wire

extension SessionEvent: LetterEvent {
    static var blanks: [SessionEvent] {
        [
            .join(.blank, .blank, .blank, re: 0), .verb(.blank, re: 0, .blank), .dropped(.blank), .returned(.blank),
            .gone(.blank, .blank), .rosterAcknowledged(.blank), .lagging(.blank, behind: .blank),
            .matchOpened(.blank, places: 0), .matchClosed(.blank), .homeOpened(.blank), .homeClosed(.blank),
            .report(.blank, by: .blank, re: 0), .sampled(.blank, .blank, []), .judged(.blank, .blank, .blank),
            .subscriptionChanged(.blank, .blank), .streamQuality(.blank), .layersWanted(.blank, .blank), .full(false),
            .speaking(nil),
        ] + RoomSessionEvent.blanks.map(SessionEvent.room)
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .join, .verb, .dropped, .returned, .gone, .rosterAcknowledged, .lagging, .report:
            try codeClient(&coder)
        case .matchOpened, .matchClosed, .homeOpened, .homeClosed, .sampled, .judged: try codeMatch(&coder)
        case .subscriptionChanged, .streamQuality, .layersWanted, .full, .speaking: try codeMedia(&coder)
        case .room(var event):
            try event.code(&coder)
            self = .room(event)
        // The operator's request waits on this node, and matches and archives are on the session's node. The others come from this
        // node's storage, settings and registry.
        case .matchSpans, .operated, .moderated, .projectDeleted, .placeLost, .archiveStopped, .broadcastStopped,
            .fullElsewhere:
            throw .staysHere
        }
    }

    /// Reads or writes an event from a client, or from its person.
    private mutating func codeClient(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .join(let client, let person, let grant, let re):
            try coder.event("join")
            self = try .join(
                coder("client", client), coder("person", person), coder("grant", grant), re: coder.re(re))
        case .verb(let client, let re, let verb):
            try coder.event("verb")
            self = try .verb(coder("client", client), re: coder.re(re), coder("message", verb))
        case .dropped(let client):
            try coder.event("dropped")
            self = try .dropped(coder("client", client))
        case .returned(let client):
            try coder.event("returned")
            self = try .returned(coder("client", client))
        case .gone(let client, let reason):
            try coder.event("gone")
            self = try .gone(coder("client", client), coder("reason", reason))
        case .rosterAcknowledged(let client):
            try coder.event("rosterAcknowledged")
            self = try .rosterAcknowledged(coder("client", client))
        case .lagging(let client, let other):
            try coder.event("lagging")
            self = try .lagging(coder("client", client), behind: coder("behind", other))
        case .report(let report, let client, let re):
            try coder.event("report")
            self = try .report(coder("report", report), by: coder("client", client), re: coder.re(re))
        default: throw .staysHere
        }
    }

    /// Reads or writes an event from a match, a call or a legacy client, or about the camera of a person in a match.
    private mutating func codeMatch(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .matchOpened(let match, let places, let call):
            try coder.event("matchOpened")
            self = try .matchOpened(
                coder("match", match), places: coder.count("places", places), of: coder("call", call))
        case .matchClosed(let match):
            try coder.event("matchClosed")
            self = try .matchClosed(coder("match", match))
        case .homeOpened(let match):
            try coder.event("homeOpened")
            self = try .homeOpened(coder("match", match))
        case .homeClosed(let match):
            try coder.event("homeClosed")
            self = try .homeClosed(coder("match", match))
        case .sampled(let match, let person, var jpeg):
            try coder.event("sampled")
            let source = try (match: coder("match", match), person: coder("person", person))
            try coder.bytes("jpeg", &jpeg, max: Limits.sample * 4 / 3 + 2)
            self = .sampled(source.match, source.person, jpeg)
        case .judged(let match, let person, let verdict):
            try coder.event("judged")
            self = try .judged(coder("match", match), coder("person", person), coder("verdict", verdict))
        default: throw .staysHere
        }
    }

    /// Reads or writes an event from the media plane of a client's node.
    private mutating func codeMedia(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .subscriptionChanged(let notice, let client):
            try coder.event("subscriptionChanged")
            self = try .subscriptionChanged(coder("notice", notice), coder("client", client))
        case .streamQuality(let notice):
            try coder.event("streamQuality")
            self = try .streamQuality(coder("notice", notice))
        case .layersWanted(let notice, let client):
            try coder.event("layersWanted")
            self = try .layersWanted(coder("notice", notice), coder("client", client))
        case .full(let isFull):
            try coder.event("full")
            self = try .full(coder("full", isFull))
        case .speaking(let stream):
            try coder.event("speaking")
            self = try .speaking(coder("stream", stream))
        default: throw .staysHere
        }
    }
}

extension RoomSessionEvent: LetterEvent {
    static var blanks: [RoomSessionEvent] {
        [
            .place(.blank, .blank), .placeClosed(.blank, .blank), .mute(.blank), .stopScreens(.blank),
            .screens(onlyOfHosts: false),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .place(let binding, let rights):
            try coder.event("room.place")
            self = try .place(coder("binding", binding), coder("rights", rights))
        case .placeClosed(let binding, let reason):
            try coder.event("room.placeClosed")
            self = try .placeClosed(coder("binding", binding), coder("reason", reason))
        case .mute(let target):
            try coder.event("room.mute")
            self = try .mute(coder("target", target))
        case .stopScreens(let target):
            try coder.event("room.stopScreens")
            self = try .stopScreens(coder("target", target))
        case .screens(let onlyOfHosts):
            try coder.event("room.screens")
            self = try .screens(onlyOfHosts: coder("onlyOfHosts", onlyOfHosts))
        }
    }
}

import Wire

extension PersonEvent: LetterEvent {
    static var blanks: [PersonEvent] {
        [
            .arrived(.blank, address: "", .none, PersonRecord()), .dropped(.blank), .returned(.blank),
            .moved(.blank, address: ""), .departed(.blank), .verb(.blank, re: 0, .blank), .asked(.blank, .blank),
            .reserve(.blank, with: .blank), .release(.blank), .queueFull, .hallClosed,
            .matched(.blank, partner: .blank, address: ""), .matchEnded(.blank, .blank), .partnerAway(.blank, false),
            .partnerMoved(.blank, address: ""), .partnerBlurred(.blank, false), .introduced(.blank, nil),
        ] + PersonPresenceEvent.blanks.map(PersonEvent.presence) + PersonCallEvent.blanks.map(PersonEvent.call)
            + PersonContactEvent.blanks.map(PersonEvent.contact)
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .arrived, .dropped, .returned, .moved, .departed, .verb, .asked: try codeDevice(&coder)
        case .reserve, .release, .queueFull, .hallClosed, .matched, .matchEnded, .partnerAway, .partnerMoved,
            .partnerBlurred:
            try codeRoulette(&coder)
        case .introduced(let introduction, let found):
            try coder.event("introduced")
            self = try .introduced(coder("introduction", introduction), coder("found", found))
        case .presence(var event):
            try event.code(&coder)
            self = .presence(event)
        case .call(var event):
            try event.code(&coder)
            self = .call(event)
        case .contact(var event):
            try event.code(&coder)
            self = .contact(event)
        // Each node reads the bans itself. The others are answers of this node's storage and registry.
        case .banned, .unbanned, .storageFailed, .placeLost, .hallIsElsewhere, .hallIsAt, .lookedUp: throw .staysHere
        // These are never posted: samples of a person's camera arrive at that person's node, and an operator's warnings are sent there,
        // too.
        case .sampled, .judged, .warned: throw .staysHere
        }
    }

    /// Reads or writes an event from one of the person's devices.
    private mutating func codeDevice(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .arrived(let client, let address, let name, _, let home, let device, let at, let showsWarnings):
            try coder.event("arrived")
            // The record is left out: the person is in memory on the node that receives this.
            self = try .arrived(
                coder("client", client), address: coder.text("address", address), coder("name", name), PersonRecord(),
                home: coder("home", home), device: coder("device", device), at: coder.text("at", at),
                showsWarnings: coder.flag("showsWarnings", showsWarnings))
        case .dropped(let client):
            try coder.event("dropped")
            self = try .dropped(coder("client", client))
        case .returned(let client):
            try coder.event("returned")
            self = try .returned(coder("client", client))
        case .moved(let client, let address):
            try coder.event("moved")
            self = try .moved(coder("client", client), address: coder.text("address", address))
        case .departed(let client):
            try coder.event("departed")
            self = try .departed(coder("client", client))
        case .verb(let client, let re, let message):
            try coder.event("verb")
            self = try .verb(coder("client", client), re: coder.re(re), coder("message", message))
        case .asked(let client, let request):
            try coder.event("asked")
            self = try .asked(coder("client", client), coder("request", request))
        default: throw .staysHere
        }
    }

    /// Reads or writes an event from the pool or a match.
    private mutating func codeRoulette(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .reserve(let match, let partner, let node):
            try coder.event("reserve")
            self = try .reserve(coder("match", match), with: coder("partner", partner), at: coder.node("node", node))
        case .release(let match):
            try coder.event("release")
            self = try .release(coder("match", match))
        case .queueFull: try coder.event("queueFull")
        case .hallClosed: try coder.event("hallClosed")
        case .matched(let notice, let partner, let address, let node):
            try coder.event("matched")
            self = try .matched(
                coder("notice", notice), partner: coder("partner", partner), address: coder.text("address", address),
                at: coder.node("node", node))
        case .matchEnded(let match, let reason):
            try coder.event("matchEnded")
            self = try .matchEnded(coder("match", match), coder("reason", reason))
        case .partnerAway(let match, let isAway):
            try coder.event("partnerAway")
            self = try .partnerAway(coder("match", match), coder("away", isAway))
        case .partnerMoved(let match, let address):
            try coder.event("partnerMoved")
            self = try .partnerMoved(coder("match", match), address: coder.text("address", address))
        case .partnerBlurred(let match, let isBlurred):
            try coder.event("partnerBlurred")
            self = try .partnerBlurred(coder("match", match), coder("blurred", isBlurred))
        default: throw .staysHere
        }
    }
}

extension PersonPresenceEvent: LetterEvent {
    static var blanks: [PersonPresenceEvent] {
        [
            .linked(.blank, .blank, re: 0), .becameDevice(of: .blank), .inherited(blocked: [], hasPush: false),
            .pushChanged(isReachable: false), .sought(by: .blank, .blank, re: 0, name: ""),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .linked(let device, let client, let re):
            try coder.event("presence.linked")
            self = try .linked(coder("device", device), coder("client", client), re: coder.re(re))
        case .becameDevice(let person):
            try coder.event("presence.becameDevice")
            self = try .becameDevice(of: coder("person", person))
        case .inherited(let blocked, let hasPush):
            try coder.event("presence.inherited")
            self = try .inherited(blocked: coder.identities("blocked", blocked), hasPush: coder("push", hasPush))
        case .pushChanged(let isReachable):
            try coder.event("presence.pushChanged")
            self = try .pushChanged(isReachable: coder("reachable", isReachable))
        case .sought(let person, let client, let re, let name):
            try coder.event("presence.sought")
            self = try .sought(
                by: coder("person", person), coder("client", client), re: coder.re(re), name: coder.text("name", name))
        case .directoryLost: throw .staysHere
        }
    }
}

extension PersonContactEvent: LetterEvent {
    static var blanks: [PersonContactEvent] {
        [
            .asked(.blank, by: .blank), .agreed(.blank, with: .blank), .removed(by: .blank), .presence(of: .blank),
            .queried(by: .blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .asked(let meeting, let other):
            try coder.event("contact.asked")
            self = try .asked(coder("meeting", meeting), by: coder("other", other))
        case .agreed(let meeting, let other):
            try coder.event("contact.agreed")
            self = try .agreed(coder("meeting", meeting), with: coder("other", other))
        case .removed(let other):
            try coder.event("contact.removed")
            self = try .removed(by: coder("other", other))
        case .presence(let other):
            try coder.event("contact.presence")
            self = try .presence(of: coder("other", other))
        case .queried(let other):
            try coder.event("contact.queried")
            self = try .queried(by: coder("other", other))
        // The receiving node adds these.
        case .presenceElsewhere, .nodeLost: throw .staysHere
        // Contacts on other nodes learn it from the node that has the place.
        case .placeLost: throw .staysHere
        // The node on which the person asked adds it.
        case .absent: throw .staysHere
        }
    }
}

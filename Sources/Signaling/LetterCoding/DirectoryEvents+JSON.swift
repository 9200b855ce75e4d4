import Wire

extension DirectoryEvent: LetterEvent {
    static var blanks: [DirectoryEvent] {
        [
            .show(.blank), .hide(.blank),
            .watch(.blank, re: 0, viewer: .blank, blocked: [], at: .blank, .blank), .unwatch(.blank),
            .viewerChanged(.blank, blocked: [], at: nil), .viewerAway(.blank, false),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .show(let listing):
            try coder.event("show")
            self = try .show(coder("listing", listing))
        case .hide(let person):
            try coder.event("hide")
            self = try .hide(coder("person", person))
        case .watch(let client, let re, let viewer, let blocked, let cell, let page):
            try coder.event("watch")
            self = try .watch(
                coder("client", client), re: coder.re(re), viewer: coder("viewer", viewer),
                blocked: coder.identities("blocked", blocked), at: coder("cell", cell), coder("page", page))
        case .unwatch(let client):
            try coder.event("unwatch")
            self = try .unwatch(coder("client", client))
        case .viewerChanged(let client, let blocked, let cell):
            try coder.event("viewerChanged")
            self = try .viewerChanged(
                coder("client", client), blocked: coder.identities("blocked", blocked), at: coder("cell", cell))
        case .viewerAway(let client, let isAway):
            try coder.event("viewerAway")
            self = try .viewerAway(coder("client", client), coder("away", isAway))
        }
    }
}

extension DeviceCodesEvent: LetterEvent {
    static var blanks: [DeviceCodesEvent] {
        [
            .make(.blank, .blank, re: 0), .use(.blank, device: .blank, .blank, address: "", re: 0), .withdraw(.blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .make(let person, let client, let re):
            try coder.event("make")
            self = try .make(coder("person", person), coder("client", client), re: coder.re(re))
        case .use(let link, let device, let client, let address, let re):
            try coder.event("use")
            self = try .use(
                coder("link", link), device: coder("device", device), coder("client", client),
                address: coder.text("address", address), re: coder.re(re))
        case .withdraw(let person):
            try coder.event("withdraw")
            self = try .withdraw(coder("person", person))
        }
    }
}

extension LookupEvent: LetterEvent {
    static var blanks: [LookupEvent] { [.asked(.blank), .void] }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .asked(let introduction):
            try coder.event("asked")
            self = try .asked(coder("introduction", introduction))
        case .void: try coder.event("void")
        // The answer of this node's storage. It contains the person's record.
        case .answered: throw .staysHere
        }
    }
}

import Wire

extension CallEvent: LetterEvent {
    static var blanks: [CallEvent] {
        [.begin(.blank)] + CallAnswer.blanks.map(CallEvent.answered) + [
            .rings(devices: 0), .outOfReach, .accept(.blank, video: false), .leave(.blank, .blank),
            .away(.blank, false), .video(.blank, false), .rejoin(.blank), .joined(.blank), .merge(into: .blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .begin(let attempt):
            try coder.event("begin")
            self = try .begin(coder("attempt", attempt))
        case .answered(var answer):
            try answer.code(&coder)
            self = .answered(answer)
        case .rings(let devices):
            try coder.event("rings")
            self = try .rings(devices: coder.count("devices", devices))
        case .outOfReach: try coder.event("outOfReach")
        case .accept(let person, let video):
            try coder.event("accept")
            self = try .accept(coder("person", person), video: coder("video", video))
        case .leave(let person, let leaving):
            try coder.event("leave")
            self = try .leave(coder("person", person), coder("how", leaving))
        case .away(let person, let isAway):
            try coder.event("away")
            self = try .away(coder("person", person), coder("away", isAway))
        case .video(let person, let video):
            try coder.event("video")
            self = try .video(coder("person", person), coder("video", video))
        case .rejoin(let person):
            try coder.event("rejoin")
            self = try .rejoin(coder("person", person))
        case .joined(let person):
            try coder.event("joined")
            self = try .joined(coder("person", person))
        case .merge(let call):
            try coder.event("merge")
            self = try .merge(into: coder("into", call))
        // The node that restores a call has it, and its people come there.
        case .restore, .returned, .missed, .calleeElsewhere: throw .staysHere
        case .nodeLost: throw .staysHere
        }
    }
}

extension CallAnswer: LetterEvent {
    static var blanks: [CallAnswer] {
        [
            .ready(.blank), .mutual(.blank, with: .blank), .refused(.blank, .blank, isMissed: false), .notAllowed,
            .elsewhere,
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .ready(let callee):
            try coder.event("answered.ready")
            self = try .ready(coder("callee", callee))
        case .mutual(let callee, let call):
            try coder.event("answered.mutual")
            self = try .mutual(coder("callee", callee), with: coder("with", call))
        case .refused(let callee, let outcome, let isMissed):
            try coder.event("answered.refused")
            self = try .refused(
                coder("callee", callee), coder("outcome", outcome), isMissed: coder("missed", isMissed))
        case .notAllowed: try coder.event("answered.notAllowed")
        case .elsewhere: try coder.event("answered.elsewhere")
        }
    }
}

extension PersonCallEvent: LetterEvent {
    static var blanks: [PersonCallEvent] {
        [
            .asked(.blank), .ring(.blank), .placed(.blank, .blank, re: 0), .notPlaced(.blank, re: 0, .blank),
            .ringing(.blank, devices: 0), .accepted(.blank), .changed(.blank, video: false),
            .partnerAway(.blank, false), .over(.blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .asked(let offer):
            try coder.event("call.asked")
            self = try .asked(coder("offer", offer))
        case .ring(let call):
            try coder.event("call.ring")
            self = try .ring(coder("call", call))
        case .placed(let offer, let client, let re):
            try coder.event("call.placed")
            self = try .placed(coder("offer", offer), coder("client", client), re: coder.re(re))
        case .notPlaced(let client, let re, let error):
            try coder.event("call.notPlaced")
            self = try .notPlaced(coder("client", client), re: coder.re(re), coder("error", error))
        case .ringing(let call, let devices):
            try coder.event("call.ringing")
            self = try .ringing(coder("call", call), devices: coder.count("devices", devices))
        case .accepted(let agreement):
            try coder.event("call.accepted")
            self = try .accepted(coder("agreement", agreement))
        case .changed(let call, let video):
            try coder.event("call.changed")
            self = try .changed(coder("call", call), video: coder("video", video))
        case .partnerAway(let call, let isAway):
            try coder.event("call.partnerAway")
            self = try .partnerAway(coder("call", call), coder("away", isAway))
        case .over(let end):
            try coder.event("call.over")
            self = try .over(coder("end", end))
        // The node that restores a call tells its own people.
        case .restored, .readmitted, .located: throw .staysHere
        case .nodeLost: throw .staysHere
        }
    }
}

import Wire

extension MediaCommand: LetterEvent {
    static var blanks: [MediaCommand] {
        let mids = MediaMids()
        return [
            .offer(.blank, in: nil, re: 0, .blank, sdp: ""), .close(.blank, .blank), .estimate(.blank, re: 0),
            .leave(.blank), .publish(.blank, .unset, by: .blank, mids, audio: false, video: false),
            .update(.blank, by: .blank, audio: false, video: false), .unpublish(.blank, by: .blank),
            .subscribe(.blank, .unset, by: .blank, mids, audio: false, video: false), .unsubscribe(.blank, by: .blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .offer(let client, let session, let re, let side, let sdp):
            try coder.event("offer")
            self = try .offer(
                coder("client", client), in: coder("session", session), re: coder.re(re), coder("side", side),
                sdp: coder.text("sdp", sdp, max: Limits.description))
        case .close(let client, let side):
            try coder.event("close")
            self = try .close(coder("client", client), coder("side", side))
        case .estimate(let client, let re):
            try coder.event("estimate")
            self = try .estimate(coder("client", client), re: coder.re(re))
        case .leave(let client):
            try coder.event("leave")
            self = try .leave(coder("client", client))
        case .publish(let stream, let session, let client, let mids, let audio, let video, _):
            try coder.event("publish")
            self = try .publish(
                coder("stream", stream), coder("session", session), by: coder("client", client), coder("mids", mids),
                audio: coder("audio", audio), video: coder("video", video))
        case .update(let stream, let client, let audio, let video):
            try coder.event("update")
            self = try .update(
                coder("stream", stream), by: coder("client", client), audio: coder("audio", audio),
                video: coder("video", video))
        case .unpublish(let stream, let client):
            try coder.event("unpublish")
            self = try .unpublish(coder("stream", stream), by: coder("client", client))
        case .subscribe(let stream, let session, let client, let mids, let audio, let video, let preference):
            try coder.event("subscribe")
            self = try .subscribe(
                coder("stream", stream), coder("session", session), by: coder("client", client), coder("mids", mids),
                audio: coder("audio", audio), video: coder("video", video),
                preferring: coder("preference", preference))
        case .unsubscribe(let stream, let client):
            try coder.event("unsubscribe")
            self = try .unsubscribe(coder("stream", stream), by: coder("client", client))
        }
    }
}

extension MediaMids: LetterRecord {
    static var blank: MediaMids { MediaMids() }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) { try coder.mids(&self) }
}

extension VideoPreference: LetterRecord {
    static var blank: VideoPreference { VideoPreference() }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) { try coder.preference(&self) }
}

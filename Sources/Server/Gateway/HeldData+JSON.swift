import Signaling
import Wire

extension PersonData {
    /// Encodes the data for its owner. Other people are listed by the IDs that the owner knows, times are milliseconds
    /// since 1970, and a push endpoint shows only its service's host. The format is in protocol/people.md.
    func json(of identity: IdentityID, _ project: Project, at now: Timestamp) -> [UInt8] {
        var writer = JSONWriter(capacity: 4096)
        writer.beginObject()
        writer.member("personId", "\(project.personID(of: identity))")
        writer.member("exportedAt", now.milliseconds)
        if let profile {
            writer.name("profile")
            writer.write(profile)
        }
        writer.list("devices", devices) { $0.write($1, project) }
        writer.list("blocked", blocks) { writer, block in
            writer.member("personId", "\(project.blockedID(of: block.person, by: identity))")
            writer.member("at", block.at.milliseconds)
        }
        writer.list("contacts", contacts) { writer, kept in
            writer.member("personId", "\(project.personID(of: kept.contact.identity))")
            writer.member("name", kept.contact.name)
            writer.member("since", kept.since.milliseconds)
        }
        writer.list("calls", calls) { $0.write($1, project) }
        writer.list("openCalls", openCalls) { $0.write($1, of: identity, project) }
        writer.list("push", endpoints) { writer, endpoint in
            writer.member("deviceId", "\(project.personID(of: endpoint.device))")
            writer.member("kind", endpoint.registration.kind.rawValue)
            if let host = endpoint.registration.host { writer.member("service", host) }
            writer.member("at", endpoint.at.milliseconds)
        }
        writer.list("reports", reports) { writer, report in
            writer.member("matchId", "\(report.match)")
            writer.member("reason", report.reason)
            writer.member("at", report.at.milliseconds)
        }
        writer.list("rooms", rooms) { writer, room in
            writer.member("name", room.name.text)
            writer.member("at", room.at.milliseconds)
        }
        if let ban {
            writer.name("ban")
            writer.write(ban)
        }
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}

extension PushRegistration {
    /// The host name of a browser's push service; nil for an app's endpoint, and if the URL contains no plain host.
    /// The rest of the URL is a secret.
    fileprivate var host: String? {
        guard kind == .web, let start = endpoint.firstRange(of: "://")?.upperBound else { return nil }
        let host = endpoint[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        // An "@" means that the URL has a user name and perhaps a password, which must not be shown.
        return host.isEmpty || host.contains("@") ? nil : String(host)
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ profile: Profile) {
        beginObject()
        member("name", profile.name)
        member("visible", profile.isVisible)
        member("doNotDisturb", profile.doNotDisturb)
        member("ringable", profile.ringable.rawValue)
        endObject()
    }

    fileprivate mutating func write(_ device: LinkedDevice, _ project: Project) {
        member("deviceId", "\(project.personID(of: device.identity))")
        member("label", device.label)
        member("linkedAt", device.linkedAt.milliseconds)
    }

    fileprivate mutating func write(_ call: CallRecord, _ project: Project) {
        member("callId", "\(call.call)")
        member("direction", call.direction.rawValue)
        member("outcome", call.outcome.rawValue)
        member("personId", "\(project.personID(of: call.other))")
        member("name", call.otherName)
        member("video", call.video)
        member("at", call.at.milliseconds)
        if let duration = call.duration { member("durationMs", duration.wholeMilliseconds) }
        member("seen", call.isSeen)
    }

    fileprivate mutating func write(_ call: StoredCall, of identity: IdentityID, _ project: Project) {
        let isOutgoing = call.caller == identity
        member("callId", "\(call.id)")
        member("direction", (isOutgoing ? CallDirection.outgoing : .incoming).rawValue)
        member("personId", "\(project.personID(of: isOutgoing ? call.callee : call.caller))")
        member("name", isOutgoing ? call.calleeName : call.callerName)
        member("video", call.video)
        member("at", call.placedAt.milliseconds)
        if let acceptedAt = call.acceptedAt { member("acceptedAt", acceptedAt.milliseconds) }
    }

    fileprivate mutating func write(_ ban: Ban) {
        beginObject()
        member("reason", ban.reason)
        member("at", ban.createdAt.milliseconds)
        if let end = ban.expiresAt { member("until", end.milliseconds) }
        endObject()
    }
}

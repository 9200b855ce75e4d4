import Signaling
import Wire

/// The JSON document of an event, with OpenTok's names (docs/webhooks.md).
struct WebhookBody: Equatable, Sendable {
    /// What is created or destroyed. The raw values are stored in the database, so they must not change.
    enum Kind: Int, Sendable {
        case session = 0
        case connection = 1
        case stream = 2
    }

    /// Why something ended, in OpenTok's words.
    enum Reason: String, Sendable {
        case clientDisconnected
        case forceDisconnected
        case forceUnpublished
        case networkDisconnected

        /// Two reasons have no equivalent in OpenTok. It reports `clientDisconnected` for a stream that its publisher
        /// ended without disconnecting. The end of a match or call is reported in the same way, because it is not a
        /// moderator's decision.
        init(_ reason: GoneReason) {
            switch reason {
            case .clientDisconnected, .clientUnpublished, .matchEnded: self = .clientDisconnected
            case .forceDisconnected: self = .forceDisconnected
            case .forceUnpublished: self = .forceUnpublished
            case .networkDisconnected: self = .networkDisconnected
            }
        }
    }

    /// Nil for an archive or a broadcast, whose end is not reported separately.
    let kind: Kind?
    let isEnd: Bool
    /// The ID of the connection or stream; empty for a session.
    let subject: String
    /// The JSON member, name and value, that describes the connection or stream; empty for a session. It is stored
    /// until the end is reported, because that event contains it too.
    let detail: [UInt8]
    let bytes: [UInt8]

    init(_ event: WebhookEvent) {
        var reason: Reason?
        switch event.kind {
        case .sessionCreated, .sessionDestroyed: (kind, subject, detail) = (.session, "", [])
        case .connectionCreated(let connection):
            (kind, subject, detail) = (.connection, connection.id.description, Self.detail(connection))
        case .connectionDestroyed(let connection, let why):
            (kind, subject, detail) = (.connection, connection.id.description, Self.detail(connection))
            reason = Reason(why)
        case .streamCreated(let stream, let connection):
            (kind, subject, detail) = (.stream, stream.id.description, Self.detail(stream, of: connection))
        case .streamDestroyed(let stream, let connection, let why):
            (kind, subject, detail) = (.stream, stream.id.description, Self.detail(stream, of: connection))
            reason = Reason(why)
        case .archive(let archive):
            (kind, subject, detail, isEnd) = (nil, archive.id.description, [], false)
            bytes = Self.bytes(archive.callbackJSON)
            return
        case .broadcast(let broadcast):
            (kind, subject, detail, isEnd) = (nil, broadcast.id.description, [], false)
            bytes = Self.bytes(broadcast.callbackJSON)
            return
        }
        isEnd = event.kind == .sessionDestroyed || reason != nil
        bytes = Self.bytes(
            kind ?? .session, isEnd: isEnd, detail, project: event.project, session: event.session, at: event.at, reason
        )
    }

    /// Creates the event for the end of something whose creation was reported with this detail. Its `subject` is
    /// empty.
    init(
        endOf kind: Kind, _ detail: [UInt8], project: String, session: SessionID, at: Timestamp, _ reason: Reason
    ) {
        (self.kind, isEnd, subject, self.detail) = (kind, true, "", detail)
        bytes = Self.bytes(
            kind, isEnd: true, detail, project: project, session: session, at: at, kind == .session ? nil : reason)
    }

    private static func bytes(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.bytes
    }

    private static func bytes(
        _ kind: Kind, isEnd: Bool, _ detail: [UInt8], project: String, session: SessionID, at: Timestamp,
        _ reason: Reason?
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("sessionId")
        writer.string(session.text)
        writer.name("projectId")
        writer.string(project)
        writer.name("event")
        writer.string("\(kind)" + (isEnd ? "Destroyed" : "Created"))
        writer.name("timestamp")
        writer.integer(at.milliseconds)
        if let reason {
            writer.name("reason")
            writer.string(reason.rawValue)
        }
        var bytes = writer.bytes
        if !detail.isEmpty { bytes += [UInt8(ascii: ",")] + detail }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private static func detail(_ connection: ConnectionInfo) -> [UInt8] {
        member("connection") { writer in write(connection, to: &writer) }
    }

    private static func detail(_ stream: StreamInfo, of connection: ConnectionInfo) -> [UInt8] {
        member("stream") { writer in
            writer.beginObject()
            writer.name("id")
            writer.string(stream.id.description)
            writer.name("connection")
            write(connection, to: &writer)
            writer.name("createdAt")
            writer.integer(stream.createdAt.milliseconds)
            writer.name("name")
            writer.string(stream.name)
            if let type = stream.videoType {
                writer.name("videoType")
                writer.string(type.rawValue)
            }
            writer.endObject()
        }
    }

    private static func write(_ connection: ConnectionInfo, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.name("id")
        writer.string(connection.id.description)
        writer.name("createdAt")
        writer.integer(connection.createdAt.milliseconds)
        writer.name("data")
        writer.string(connection.data)
        writer.endObject()
    }

    private static func member(_ name: String, _ value: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.name(name)
        value(&writer)
        return writer.bytes
    }
}

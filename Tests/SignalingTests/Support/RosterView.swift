import Testing
import Wire

/// What a client knows about the other members of a session, from the server's messages.
///
/// Records an issue if the server introduces a connection or stream twice, or mentions one that the client does not know.
struct RosterView {
    private let own: ConnectionID
    private(set) var connections: [ConnectionID: ConnectionInfo] = [:]
    /// The streams of the others.
    private(set) var streams: [StreamID: StreamInfo] = [:]
    /// The client's own streams, if the test reported them.
    private(set) var ownStreams: [StreamID: StreamInfo] = [:]
    /// The first issue.
    private(set) var fault: String?
    /// True once the last page has arrived.
    private(set) var isComplete = false
    private(set) var pageSizes: [Int] = []

    init(_ joined: SessionNotice.Joined) {
        own = joined.connection.id
        add(joined.connections, joined.streams, more: joined.more)
    }

    private mutating func add(_ connections: [ConnectionInfo], _ streams: [StreamInfo], more: Bool?) {
        pageSizes.append(connections.count)
        for connection in connections { add(connection) }
        for stream in streams { add(stream) }
        isComplete = more == nil
    }

    private mutating func add(_ connection: ConnectionInfo) {
        if connections.updateValue(connection, forKey: connection.id) != nil {
            note("connection \(connection.id) was introduced twice")
        }
    }

    private mutating func add(_ stream: StreamInfo) {
        if connections[stream.connection] == nil { note("stream \(stream.id) has an unknown publisher") }
        if streams.updateValue(stream, forKey: stream.id) != nil {
            note("stream \(stream.id) was introduced twice")
        }
    }

    private mutating func note(_ issue: String) {
        Issue.record("\(issue)")
        fault = fault ?? issue
    }

    /// The client has published a stream.
    mutating func published(_ stream: StreamInfo) { ownStreams[stream.id] = stream }

    /// The client has ended a stream of its own.
    mutating func unpublished(_ stream: StreamID) { ownStreams[stream] = nil }

    mutating func apply(_ messages: [ServerMessage]) {
        for case .session(let notice) in messages { apply(notice) }
    }

    mutating func apply(_ notice: SessionNotice) {
        switch notice {
        case .roster(let page): add(page.connections, page.streams, more: page.more)
        case .connectionCreated(let created): add(created.connection)
        case .connectionDestroyed(let destroyed):
            if connections.removeValue(forKey: destroyed.connection) == nil {
                note("unknown connection \(destroyed.connection) has left")
            }
            if streams.values.contains(where: { $0.connection == destroyed.connection }) {
                note("the streams of \(destroyed.connection) outlive it")
            }
        case .streamCreated(let created): add(created.stream)
        case .streamDestroyed(let destroyed):
            let isOwn = ownStreams.removeValue(forKey: destroyed.stream) != nil
            if !isOwn, streams.removeValue(forKey: destroyed.stream) == nil {
                note("unknown stream \(destroyed.stream) has ended")
            }
        case .streamChanged(let changed):
            // The publisher hears of changes of its own stream too.
            guard changed.stream.connection != own else {
                if ownStreams[changed.stream.id] != nil { ownStreams[changed.stream.id] = changed.stream }
                return
            }
            if streams.updateValue(changed.stream, forKey: changed.stream.id) == nil {
                note("unknown stream \(changed.stream.id) has changed")
            }
        default: return
        }
    }
}

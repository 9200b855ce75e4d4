import Testing
import Wire

/// What a client knows about the other members of a session, from the server's messages.
///
/// Records an issue if the server introduces a connection or stream twice, or mentions one that the client does not know.
struct RosterView {
    private let own: ConnectionID
    private(set) var connections: [ConnectionID: ConnectionInfo] = [:]
    private(set) var streams: [StreamID: StreamInfo] = [:]
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
            Issue.record("connection \(connection.id) was introduced twice")
        }
    }

    private mutating func add(_ stream: StreamInfo) {
        if connections[stream.connection] == nil { Issue.record("stream \(stream.id) has an unknown publisher") }
        if streams.updateValue(stream, forKey: stream.id) != nil {
            Issue.record("stream \(stream.id) was introduced twice")
        }
    }

    mutating func apply(_ messages: [ServerMessage]) {
        for case .session(let notice) in messages { apply(notice) }
    }

    private mutating func apply(_ notice: SessionNotice) {
        switch notice {
        case .roster(let page): add(page.connections, page.streams, more: page.more)
        case .connectionCreated(let created): add(created.connection)
        case .connectionDestroyed(let destroyed):
            if connections.removeValue(forKey: destroyed.connection) == nil {
                Issue.record("unknown connection \(destroyed.connection) has left")
            }
            if streams.values.contains(where: { $0.connection == destroyed.connection }) {
                Issue.record("the streams of \(destroyed.connection) outlive it")
            }
        case .streamCreated(let created): add(created.stream)
        case .streamDestroyed(let destroyed):
            if streams.removeValue(forKey: destroyed.stream) == nil {
                Issue.record("unknown stream \(destroyed.stream) has ended")
            }
        // The publisher hears of changes of its own stream too.
        case .streamChanged(let changed) where changed.stream.connection != own:
            if streams.updateValue(changed.stream, forKey: changed.stream.id) == nil {
                Issue.record("unknown stream \(changed.stream.id) has changed")
            }
        default: return
        }
    }
}

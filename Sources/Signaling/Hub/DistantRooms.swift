import Cluster
import Wire

/// What this node knows of rooms on other nodes in which its clients are: who is in which room, and which streams the rooms' nodes
/// have published here.
///
/// The room and its session are on one node, which has the room's place. A client stays on the node of its socket, and sends its media
/// there. Invariant: a client has at most one seat, and a stream belongs to one node.
struct DistantRooms: Equatable, Sendable {
    /// The seat of a client of this node in a room on another one, or in its lobby.
    struct Seat: Equatable, Sendable {
        let tag: NodeTag
        let name: RoomName
        /// The room's session; nil while the client waits.
        let session: SessionID?
    }

    /// A session on another node in which clients of this node have seats.
    private struct Session: Equatable, Sendable {
        let tag: NodeTag
        var seats = 0
    }

    /// A stream that another node has published on this node's media plane.
    struct Stream: Equatable, Sendable {
        let tag: NodeTag
        let publisher: ConnectionID
        /// The clients of this node whose subscription was confirmed in time. After a late confirmation, a client that is not among them is
        /// unsubscribed.
        var subscribers: Set<ConnectionID> = []
    }

    private var seats: [ConnectionID: Seat] = [:]
    /// The joins that were posted to other nodes, with their rooms.
    private var joins = PostedRequests<RoomName>()
    private var sessions: [SessionID: Session] = [:]
    private(set) var streams: [StreamID: Stream] = [:]

    func seat(of client: ConnectionID) -> Seat? { seats[client] }
    /// Returns the node of a session in which clients of this node are, if it is another one.
    func node(of session: SessionID) -> NodeTag? { sessions[session]?.tag }
    /// Returns the clients that have a seat on this node or wait for its answer to a join, in a fixed order.
    func clients(on tag: NodeTag) -> [ConnectionID] {
        let seated = seats.filter { $0.value.tag == tag }.map(\.key)
        return Set(seated + joins.clients(waitingFor: tag)).sorted()
    }

    // MARK: Joins

    /// A join was posted to a node, which must answer by the given time.
    mutating func posted(_ request: Request, for room: RoomName, to tag: NodeTag, until: Timestamp) {
        joins.insert(request, .init(node: tag, content: room, until: until))
    }

    /// Whether a join of this client is not answered.
    func waits(_ client: ConnectionID) -> Bool { joins.contains(client) }

    /// Whether this client is in that room on that node, waits in its lobby, or has an unanswered join for it.
    func expects(_ client: ConnectionID, in room: RoomName, on tag: NodeTag) -> Bool {
        if let seat = seats[client], seat.tag == tag, seat.name == room { return true }
        return joins.posted(by: client).contains { $0.node == tag && $0.content == room && !$0.hasFailed }
    }

    /// Whether a join of this client for that room on that node has failed, and its answer may still come.
    func hasFailed(_ client: ConnectionID, in room: RoomName, on tag: NodeTag) -> Bool {
        joins.posted(by: client).contains { $0.node == tag && $0.content == room && $0.hasFailed }
    }

    /// A node has answered a request. Returns the request if it is a join.
    mutating func answered(_ client: ConnectionID, re: UInt64?, by tag: NodeTag) -> PostedRequests<RoomName>.Posted? {
        joins.remove(client, re: re, from: tag)
    }

    /// Forgets the joins of a client that a node has not answered.
    mutating func forgetJoins(of client: ConnectionID, to tag: NodeTag) { joins.removeAll(of: client, to: tag) }

    /// Forgets all joins that a node will not answer.
    mutating func forgetJoins(to tag: NodeTag, isOver: Bool) { _ = joins.removeAll(to: tag, isOver: isOver) }

    /// Marks the joins as failed that were not answered in time. Returns them.
    mutating func failJoins(
        now: Timestamp, lookAgainAt next: Timestamp, isGone: (ConnectionID) -> Bool
    ) -> [PostedRequests<RoomName>.Unanswered] {
        joins.fail(now: now, lookAgainAt: next, isGone: isGone)
    }

    /// When to look at the next join; nil if there is none.
    var nextDeadline: Timestamp? { joins.nextDeadline }

    // MARK: Seats

    /// A node has said which seat a client of this node has there; nil if it has none any more.
    mutating func sit(_ client: ConnectionID, on seat: RoomSeat?, at tag: NodeTag) {
        guard let seat else {
            if seats[client]?.tag == tag { leave(client) }
            return
        }
        leave(client)
        let session = seat.place?.session
        seats[client] = Seat(tag: tag, name: seat.name, session: session)
        if let session { sessions[session, default: Session(tag: tag)].seats += 1 }
    }

    /// The client has no seat any more.
    mutating func leave(_ client: ConnectionID) {
        guard let session = seats.removeValue(forKey: client)?.session, let count = sessions[session]?.seats else {
            return
        }
        sessions[session]?.seats = count - 1
        if count == 1 { sessions[session] = nil }
    }

    // MARK: Streams

    /// A node publishes a stream here, or changes it. Returns false if the stream is another node's, or another client's.
    mutating func publish(_ stream: StreamID, by publisher: ConnectionID, from tag: NodeTag) -> Bool {
        guard streams[stream] == nil else { return owns(stream, by: publisher, tag) }
        streams[stream] = Stream(tag: tag, publisher: publisher)
        return true
    }

    /// Returns whether this node has published the stream here.
    func owns(_ stream: StreamID, by publisher: ConnectionID, _ tag: NodeTag) -> Bool {
        streams[stream].map { $0.tag == tag && $0.publisher == publisher } ?? false
    }

    mutating func unpublish(_ stream: StreamID) { streams[stream] = nil }

    mutating func subscribed(_ client: ConnectionID, to stream: StreamID) {
        streams[stream]?.subscribers.insert(client)
    }

    mutating func unsubscribed(_ client: ConnectionID, from stream: StreamID) {
        streams[stream]?.subscribers.remove(client)
    }

    /// Removes the streams of a node. Returns them in a fixed order.
    mutating func removeStreams(of tag: NodeTag) -> [(id: StreamID, publisher: ConnectionID)] {
        let gone = streams.filter { $0.value.tag == tag }.sorted { $0.key < $1.key }
        for stream in gone { streams[stream.key] = nil }
        return gone.map { (id: $0.key, publisher: $0.value.publisher) }
    }
}

import Wire

/// Introduces members to each other: sends the roster to a new member in pages, and announces later joins and
/// departures.
///
/// A client receives the next page only after it has acknowledged the previous one, so that a slow client is never sent
/// more than it can handle. For each client that has not received the whole roster, the session remembers only the
/// highest number of the members that the client knows. A page is made from the current members: members who leave
/// before their page is made are on no page, and members who join before the last page are on one.
///
/// A member who has the whole roster receives a message for each join. If such a member lags behind in a large session,
/// further joins are also announced in pages.
extension Session {
    /// The part of the roster that fits into one message.
    struct Page {
        var connections: [ConnectionInfo] = []
        var streams: [StreamInfo] = []
        /// The number of the last member on this page.
        var last: UInt64
        var hasMore = false
    }

    /// Returns the next page of the roster.
    ///
    /// - Parameters:
    ///   - number: the number of the last member on the previous page.
    ///   - client: the client that receives the page. It is on no page.
    ///   - reserved: the number of bytes of the message that are already used.
    func page(after number: UInt64, for client: ConnectionID, reserved: Int = 0, _ context: Context) -> Page {
        var page = Page(last: number)
        var size = reserved
        for id in order[index(after: number)...] where id != client {
            guard let member = members[id] else { continue }
            let published = member.streams.compactMap { streams[$0] }
            size += member.size + published.reduce(0) { $0 + $1.size }
            if size > context.rules.rosterPage, page.last != number {
                page.hasMore = true
                break
            }
            page.connections.append(member.connection)
            page.streams += published.map(\.stream)
            page.last = member.number
        }
        return page
    }

    /// Returns the index in `order` of the first member with a higher number. `order` is sorted by number.
    private func index(after number: UInt64) -> Int {
        var (low, high) = (0, order.count)
        while low < high {
            let middle = (low + high) / 2
            if members[order[middle]]?.number ?? 0 <= number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Sends the next page after the client has acknowledged the previous one.
    mutating func rosterAcknowledged(_ client: ConnectionID, _ context: inout Context) {
        guard let number = introduced[client] else { return }
        let page = page(after: number, for: client, context)
        introduced[client] = page.hasMore ? page.last : nil
        var roster = SessionNotice.Roster()
        (roster.session, roster.more) = (id, page.hasMore ? true : nil)
        (roster.connections, roster.streams) = (page.connections, page.streams)
        context.send(.session(.roster(roster)), to: client)
    }

    /// Announces further joins to this client in pages, because it has too many unacknowledged messages to be sent
    /// another `connectionCreated`. In a small session, where clients need not support pages, sends that message
    /// anyway.
    mutating func lagging(_ client: ConnectionID, behind other: ConnectionID, _ context: inout Context) {
        guard let new = members[other], members[client] != nil, introduced[client] == nil else { return }
        guard order.count <= context.rules.largeSession else { return introduced[client] = new.number - 1 }
        context.send(.session(.connectionCreated(.init(session: id, connection: new.connection))), to: client)
    }

    /// Returns true if the client was notified of the member with this number, or is that member.
    func knows(_ client: ConnectionID, _ number: UInt64) -> Bool {
        guard let last = introduced[client] else { return true }
        return number <= last || members[client]?.number == number
    }

    /// Sends a message about the member with this number to everyone who was notified of that member. The others
    /// receive the member's state with their page. If `number` is nil, sends nothing. With the number 0, every member
    /// receives the message.
    func broadcast(
        _ message: ServerMessage, about number: UInt64?, except excluded: ConnectionID? = nil, _ context: inout Context
    ) {
        guard let number else { return }
        let isShared = order.count > 2
        var clients: [ConnectionID] = []
        for client in order where client != excluded && knows(client, number) {
            if isShared { clients.append(client) } else { context.send(message, to: client) }
        }
        if isShared { context.tell(.clients(clients, BroadcastMessage(message))) }
    }

    /// Returns the number of the member who publishes this stream; nil if that member has left.
    func publisherNumber(_ stream: StreamInfo) -> UInt64? { members[stream.connection]?.number }
}

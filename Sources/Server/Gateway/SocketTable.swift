import Signaling
import Wire

/// The open sockets, and the people whose clients use them.
struct SocketTable {
    private var sockets: [SocketID: any RunnerSocket] = [:]
    /// The people on native sockets. Clients of other protocols are not people with stored data.
    private var people: [SocketID: IdentityID] = [:]
    private var socketsOfPeople: [IdentityID: Set<SocketID>] = [:]

    /// The number of sockets ever added.
    private(set) var added: UInt64 = 0

    var count: Int { sockets.count }

    /// The open sockets, in the order in which they were added.
    var ids: [SocketID] { sockets.keys.sorted { $0.rawValue < $1.rawValue } }

    subscript(id: SocketID) -> (any RunnerSocket)? { sockets[id] }

    mutating func add(_ socket: any RunnerSocket) -> SocketID {
        added += 1
        let id = SocketID(rawValue: added)
        sockets[id] = socket
        return id
    }

    /// Replaces an open socket by another one, which keeps the id.
    mutating func replace(_ id: SocketID, by socket: any RunnerSocket) {
        if sockets[id] != nil { sockets[id] = socket }
    }

    /// Sets the person on an open socket.
    mutating func identify(_ id: SocketID, as person: IdentityID) {
        guard sockets[id] != nil else { return }
        people[id] = person
        socketsOfPeople[person, default: []].insert(id)
    }

    func person(on id: SocketID) -> IdentityID? { people[id] }

    func sockets(of person: IdentityID) -> Set<SocketID> { socketsOfPeople[person] ?? [] }

    /// Removes a socket, and its person if known.
    ///
    /// - Returns: false if there is no such socket.
    mutating func remove(_ id: SocketID) -> Bool {
        guard sockets.removeValue(forKey: id) != nil else { return false }
        if let person = people.removeValue(forKey: id) {
            socketsOfPeople[person]?.remove(id)
            if socketsOfPeople[person]?.isEmpty == true { socketsOfPeople[person] = nil }
        }
        return true
    }

    mutating func removeAll() { (sockets, people, socketsOfPeople) = ([:], [:], [:]) }
}

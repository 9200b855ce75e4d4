import Cluster
import Wire

/// Totals for metrics and tests.
extension Hub {
    public var hubSettings: HubSettings { context.hubSettings }

    public var clientCount: Int { clients.count }
    public var resourceCount: Int { clients.resourceCount }
    public var personCount: Int { people.count }
    public var sessionCount: Int { sessions.count }
    public var matchCount: Int { matches.count }
    public var callCount: Int { calls.count }
    public var roomCount: Int { rooms.count }
    /// The number of archives that are being recorded, or are finished or composed after that.
    public var archiveCount: Int { archives.count }
    /// The number of broadcasts that run, or are about to begin or end.
    public var broadcastCount: Int { broadcasts.count }
    /// The same archives, by state.
    public var archiveStates: [ArchiveState: Int] {
        var states: [ArchiveState: Int] = [:]
        archives.forEach { states[$0.state, default: 0] += 1 }
        return states
    }
    public var roomFigures: RoomFigures { context.figures.rooms }
    public var roomFileSpace: RoomFileSpace { context.fileSpace }
    package func hasRoom(_ name: RoomName) -> Bool { rooms.contains(name) }
    /// The number of people who are online on at least one device.
    public var presentCount: Int { context.figures.present }
    public var bandwidthRefusals: BandwidthRefusals { context.figures.refusals }
    public var callFigures: (ringing: Int, active: Int) {
        let ringing = calls.count { $0.isRinging }
        return (ringing, calls.count - ringing)
    }
    /// The person whose client uses this socket; nil if there is none, and for legacy clients, clients of PerchRTC's
    /// protocol, and WHIP and WHEP resources.
    public func person(on socket: SocketID) -> IdentityID? { clients.person(on: socket) }
    /// The socket of this client; nil if the client has dropped or is gone, and for legacy clients, clients of
    /// PerchRTC's protocol, and WHIP and WHEP resources.
    public func socket(of client: ConnectionID) -> SocketID? { clients.socket(of: client) }
    /// The sockets whose clients may have media: all but those of native clients that are in no room, session, chat or call.
    public var socketsWithMedia: Set<SocketID> { clients.socketsWithMedia }
    /// In a cluster, the machines on this node that exist once. Tests check that no other node has them.
    package var placedMachines: [PlacedMachine] {
        people.ids { !$0.isLegacy }.map { .person($0) } + rooms.ids { _ in true }.map { .room($0) }
            + (places?.claimed.keys.filter { if case .session(let id) = $0 { sessions.contains(id) } else { false } }
                ?? [])
    }
    /// The places that this node has claimed.
    package var claimedPlaces: [PlacedMachine: PlaceKey] { places?.claimed ?? [:] }
    /// The number of letters that wait until it is known where their machine is.
    package var waitingLetters: Int { places?.waitingCount ?? 0 }
    /// Letters of other nodes that this release does not expect from them.
    package var unexpectedLetters: Int { context.figures.unexpectedLetters }
    /// Letters to people on other nodes of the cluster that were dropped, counted since the server started.
    public var droppedLetters: Int { context.figures.droppedLetters }
    /// The people on this node whom their contacts see online.
    package var visiblePeople: [IdentityID] { people.ids { $0.snapshot.isSeenOnline } }
    /// What the connected people on this node see of their contacts.
    package var contactViews: [(person: IdentityID, contacts: [IdentityID], online: Set<IdentityID>)] {
        people.ids { !$0.devices.isEmpty }.sorted().compactMap { id in
            people.read(id) { (id, $0.contacts.identities, $0.contacts.onlineContacts) }
        }
    }
    /// The people in matches on this node.
    package var chattingPeople: [IdentityID] { people.ids { $0.roulette.isChatting } }
    /// The people who wait in the roulette on this node, in the order of entry.
    package var waitingPeople: [IdentityID] { pool.machine.waitingIdentities }

    public var waitingCount: Int { pool.machine.waitingCount }
    /// The number of clients that watch a page of people nearby.
    package var watchCount: Int { directory.machine.watchCount }
    /// The people who are in the roulette and in a call at the same time. Tests check that there are none.
    package var peopleInTwoPlaces: [IdentityID] { people.ids { $0.roulette.search != nil && $0.calls.isInCall } }
}

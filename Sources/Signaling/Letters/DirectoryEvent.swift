import Wire

/// What the state machines of people report to the directory: whether the person can be found, where they are, and
/// which of their devices watch a page of people nearby.
public enum DirectoryEvent: Equatable, Sendable {
    /// Adds a person to the directory, or updates their listing.
    case show(Listing)
    /// Removes a person from the directory, because they went offline, lost their connection, became invisible, or deleted
    /// their location.
    case hide(IdentityID)
    /// A client starts to watch a page of people nearby.
    case watch(ConnectionID, re: UInt64, viewer: IdentityID, blocked: Set<IdentityID>, at: Cell, NearbyVerb.Watch)
    case unwatch(ConnectionID)
    /// The viewer moved, deleted their location, or blocked a person. Without a location, the viewer sees no one.
    case viewerChanged(ConnectionID, blocked: Set<IdentityID>, at: Cell?)
    /// The viewer lost their connection (true) or reconnected (false). Pending changes are sent after the viewer reconnects.
    case viewerAway(ConnectionID, Bool)
}

/// A person's entry in the directory.
public struct Listing: Equatable, Sendable {
    public var identity: IdentityID
    public var person: PersonID
    public var name: String
    public var isBusy: Bool
    public var cell: Cell
    /// People who must not see this person.
    public var blocked: Set<IdentityID>

    public init(
        identity: IdentityID, person: PersonID, name: String, isBusy: Bool, cell: Cell, blocked: Set<IdentityID> = []
    ) {
        (self.identity, self.person, self.name) = (identity, person, name)
        (self.isBusy, self.cell, self.blocked) = (isBusy, cell, blocked)
    }
}

/// A cell of the globe, about 2 km by 2 km. The server does not keep locations more precisely than this.
///
/// The globe is divided into rows of equal height. Each row has as many columns as are needed to make its cells about square.
/// All output is computed from cell centers. Locations within a cell therefore cannot be distinguished, no matter how many
/// people query or how often.
public struct Cell: Hashable, Sendable {
    public var row: Int32
    /// The column within the row, counted eastward from the antimeridian.
    public var column: Int32
}

import Signaling

/// The default limits of stored rows. Settings can change `blocksPerOwner` and `contactsPerOwner`.
public enum StorageLimits {
    /// Blocks per identity. Matching reads the whole list, so it must stay short.
    public static let blocksPerOwner = Rules().maxBlocks
    /// Contacts per person. The whole list is in memory as long as the person's other data is, because contacts get
    /// presence updates.
    public static let contactsPerOwner = Rules().maxContacts
    /// Logged calls per person: enough for about three calls per day during the default retention of a year.
    public static let callsPerOwner = 1000
    /// The maximum number of calls to send to a person who has not seen their outcomes. They are sent all at once, and
    /// a client that resumes gets at most 256 messages again. Older calls are in the call log.
    public static let unseenCalls = 100
    /// Events per project that may wait for its webhook.
    public static let webhooksPerProject = 250_000
    /// Average size of an event in bytes, with its row and indexes, for which there is room. Long connection data takes more.
    static let webhookSize = 1024
    /// Average size in bytes of what is reserved for the ends of a connection and its streams. Long connection data takes
    /// more.
    static let webhookEndsSize = 8192
    /// One project's events may take 1/`webhookShare` of the space for all. The space is for the disk, so it is limited
    /// however many projects there are.
    static let webhookShare = 4
    /// Push endpoints per person. Each call rings on all of them.
    public static let pushEndpointsPerPerson = 20
}

/// The names of files in the data directory.
enum DataFiles {
    /// The database. `ProjectFile` refuses to create a project beside an existing one.
    static let database = "confab.sqlite"
    /// Says that the data is in PostgreSQL.
    static let moved = "confab.sqlite.moved"
}

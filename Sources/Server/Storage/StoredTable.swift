/// A table and what a copy needs to know about it.
struct StoredTable: Sendable {
    /// How the rows of a table are numbered.
    enum Numbers {
        /// The rows have no numbers.
        case none
        /// The number of a deleted row may be used again.
        case reusable
        /// A number is never used again.
        case unique
    }

    let name: String
    /// The columns of the primary key.
    let key: [String]
    var numbers = Numbers.none

    /// All tables, with tables that refer to others after these.
    static let all = [
        StoredTable(name: "block", key: ["id"], numbers: .reusable),
        StoredTable(name: "ban", key: ["id"], numbers: .reusable),
        StoredTable(name: "report", key: ["id"], numbers: .unique),
        StoredTable(name: "reportLine", key: ["report", "position"]),
        StoredTable(name: "reportSample", key: ["report"]),
        StoredTable(name: "profile", key: ["identity"]),
        StoredTable(name: "device", key: ["identity"]),
        StoredTable(name: "contact", key: ["id"], numbers: .reusable),
        StoredTable(name: "openCall", key: ["call"]),
        StoredTable(name: "callLog", key: ["owner", "call"]),
        StoredTable(name: "pushEndpoint", key: ["id"], numbers: .reusable),
        StoredTable(name: "revokedToken", key: ["session", "fingerprint"]),
        StoredTable(name: "mutedSession", key: ["session"]),
        StoredTable(name: "audit", key: ["id"], numbers: .unique),
        StoredTable(name: "room", key: ["id"]),
        StoredTable(name: "archive", key: ["id"]),
        StoredTable(name: "broadcast", key: ["id"]),
        StoredTable(name: "project", key: ["apiKey"]),
        StoredTable(name: "deletedProject", key: ["apiKey"]),
        StoredTable(name: "webhookEvent", key: ["id"], numbers: .unique),
        StoredTable(name: "webhookOpen", key: ["id"], numbers: .reusable),
        // After the tables whose triggers add rows to it. The copied rows replace these.
        StoredTable(name: "webhookBacklog", key: ["project"]),
    ]
}

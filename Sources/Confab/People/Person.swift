import Wire

/// A person, as other people see them.
public struct Person: Hashable, Sendable, Identifiable {
    /// The person's public id. It does not change.
    public let id: PersonID
    /// The name that other people see.
    public let name: String
    /// Whether the person is visible and online on at least one device.
    public let isOnline: Bool

    /// Creates a person from an id and a name that the application has stored, for example to call the person back.
    public init(id: PersonID, name: String, isOnline: Bool = false) {
        (self.id, self.name, self.isOnline) = (id, name, isOnline)
    }

    init(_ info: PersonInfo) { (id, name, isOnline) = (info.id, info.name, info.online) }
}

import Cluster
import Signaling
import Wire

/// Storage and the table of places of a simulated population. Both need a few bytes for a person: what a person has is computed from
/// the person's number, and only what the rules have stored is kept.
struct PopulationStorage {
    let count: Int
    /// The public ids, by the number of the person, and the reverse.
    let people: [PersonID]
    private let numbers: [PersonID: UInt32]
    private var hasProfile: [Bool]
    /// When a profile was stored or used last.
    private var usedAt: Timestamp?
    private(set) var openCalls: [CallID: StoredCall] = [:]
    /// The number of the node on which each person is; 0 for none.
    private var homes: [UInt8]
    private var others: [PlaceKey: UInt8] = [:]

    init(people count: Int, project: Project) {
        self.count = count
        people = (0..<count).map { project.personID(of: Self.identity($0)) }
        numbers = Dictionary(uniqueKeysWithValues: people.enumerated().map { ($1, UInt32($0)) })
        hasProfile = Array(repeating: false, count: count)
        homes = Array(repeating: 0, count: count)
    }

    static func identity(_ person: Int) -> IdentityID { IdentityID(high: 7, low: UInt64(person)) }

    /// Returns the number of the person; nil if it is none of this population.
    func number(_ identity: IdentityID) -> Int? {
        identity.high == 7 ? Int(exactly: identity.low).flatMap { $0 < count ? $0 : nil } : nil
    }

    // MARK: Records

    func record(of person: Int) -> PersonRecord {
        let contacts = PopulationHabit.contacts(of: person).map { Contact(identity: Self.identity($0), name: "Ada") }
        guard hasProfile[person] else { return PersonRecord(contacts: contacts) }
        return PersonRecord(profile: Profile(name: "Ada"), profileUsedAt: usedAt, contacts: contacts)
    }

    func stored(_ machine: PlacedMachine) -> StoredState {
        guard case .person(let identity) = machine, let person = number(identity) else { return .nothing }
        return .person(record(of: person))
    }

    mutating func apply(_ change: Change) {
        switch change {
        case .profile(let identity, _, _, let time):
            if let person = number(identity) { hasProfile[person] = true }
            usedAt = time
        case .callPlaced(let call): openCalls[call.id] = call
        case .callOver(let call, people: _): openCalls[call] = nil
        default: break
        }
    }

    func answer(_ question: Question) -> Finding {
        switch question.query {
        case .person(let id, _):
            let person = numbers[id].map { Int($0) }
            return .person(person.map { FoundRecord(identity: Self.identity($0), record: record(of: $0)) })
        case .callLog: return .callLog([], next: nil)
        case .callHome: return .callHome(nil)
        case .register, .unregister, .wakeable: return .push(isReachable: false)
        }
    }

    // MARK: Places

    /// The node that has a place, from 1; nil if none has.
    subscript(place key: PlaceKey) -> UInt8? {
        get {
            guard let person = person(key) else { return others[key] }
            return homes[person] == 0 ? nil : homes[person]
        }
        set {
            if let person = person(key) { homes[person] = newValue ?? 0 } else { others[key] = newValue }
        }
    }

    private func person(_ key: PlaceKey) -> Int? {
        guard key.kind == .person, let id = PersonID(key.id) else { return nil }
        return numbers[id].map { Int($0) }
    }
}

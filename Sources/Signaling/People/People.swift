import Wire

/// All people in memory: connected people, and people kept for a while after they disconnected or were looked up.
struct People: Sendable {
    private var machines = Machines<Person>()
    private var idlePeople = IdlePeople()

    var count: Int { machines.count }
    func contains(_ id: IdentityID) -> Bool { machines.contains(id) }
    func ids(where matches: (Person) -> Bool) -> [IdentityID] { machines.ids(where: matches) }

    /// Reads a person without delivering an event; see `Machines.read`.
    func read<Result>(_ id: IdentityID, _ body: (Person) -> Result) -> Result? { machines.read(id, body) }

    mutating func deliver(_ event: PersonEvent, to id: IdentityID, _ context: inout Context) -> Timestamp? {
        let wakeUp = machines.deliver(event, to: id, &context).wakeUp
        noteAbsence(of: id, &context)
        return wakeUp
    }

    mutating func wake(_ id: IdentityID, at moment: Timestamp, _ context: inout Context) -> Timestamp? {
        let wakeUp = machines.wake(id, at: moment, &context).wakeUp
        noteAbsence(of: id, &context)
        return wakeUp
    }

    /// Records whether this person is absent. Evicts the person who has been absent longest if there are too many absent
    /// people.
    private mutating func noteAbsence(of id: IdentityID, _ context: inout Context) {
        idlePeople.note(id, isAbsent: machines.with(id) { $0.isAbsent } ?? false)
        while let longest = idlePeople.overflow(context.rules.absentPeople) {
            machines.with(longest) { $0.forgetAbsence() }
            context.touch(.person(longest))
        }
    }
}

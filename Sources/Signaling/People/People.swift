import Wire

/// All people in memory: those who are here, and those remembered for a while after they left or were looked up.
struct People: Sendable {
    private var machines = Machines<Person>()
    private var absences = Absences()

    var count: Int { machines.count }
    func ids(where matches: (Person) -> Bool) -> [IdentityID] { machines.ids(where: matches) }

    mutating func deliver(_ event: PersonEvent, to id: IdentityID, _ turn: inout Turn) -> Timestamp? {
        let wakeUp = machines.deliver(event, to: id, &turn).wakeUp
        noteAbsence(of: id, most: turn.rules.absentPeople)
        return wakeUp
    }

    mutating func wake(_ id: IdentityID, at moment: Timestamp, _ turn: inout Turn) -> Timestamp? {
        let wakeUp = machines.wake(id, at: moment, &turn).wakeUp
        noteAbsence(of: id, most: turn.rules.absentPeople)
        return wakeUp
    }

    /// Forgets the people absent the longest when there are too many.
    private mutating func noteAbsence(of id: IdentityID, most: Int) {
        absences.note(id, isAbsent: machines.with(id) { $0.isAbsent } ?? false)
        while let longest = absences.overflow(most) { machines.with(longest) { $0.forgetAbsence() } }
    }
}

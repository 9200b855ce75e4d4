import Wire

/// Finds the person with a public id.
///
/// Storage answers asynchronously, so its answer may be older than a deletion. Storage is queried even for people in memory,
/// because a faster answer would reveal that the person is online but invisible, or has blocked the requester.
/// Invariant: a lookup exists only while a query for its person is pending. The shell limits the number of pending queries,
/// which also limits the number of lookups.
struct Lookup: Machine {
    private let person: PersonID
    private var questions = 0
    private var isVoid = false

    private init(_ person: PersonID) { self.person = person }

    static func make(_ id: PersonID, for event: LookupEvent, _ context: inout Context) -> Lookup? {
        if case .asked = event { Lookup(id) } else { nil }
    }

    static func orphan(_ event: LookupEvent, _ id: PersonID, _ context: inout Context) {
        if case .answered(let introduction, let finding) = event { answer(introduction, finding, &context) }
    }

    var isOver: Bool { questions == 0 }

    mutating func handle(_ event: LookupEvent, _ context: inout Context) {
        switch event {
        case .asked(let introduction):
            questions += 1
            context.query(
                Question(
                    identity: introduction.identity, client: introduction.client, re: introduction.re,
                    .person(person, introduction)))
        case .answered(let introduction, let finding):
            questions -= 1
            if isVoid, case .person = finding {
                Self.answer(introduction, .person(nil), &context)
            } else {
                Self.answer(introduction, finding, &context)
            }
        case .void: isVoid = true
        }
    }

    private static func answer(_ introduction: Introduction, _ finding: Finding, _ context: inout Context) {
        switch finding {
        case .person(let found):
            if let found { context.tell(.person(found.identity, .lookedUp(found.record))) }
            let person = found.map { found in
                let id = context.project.personID(of: found.identity)
                let profile = PersonProfile(id, found.record.profile, usedAt: nil)
                return FoundPerson(identity: found.identity, name: profile.shownName)
            }
            context.tell(.person(introduction.identity, .introduced(introduction, person)))
        case .refused(let error): context.fail(error, introduction.request)
        case .callLog, .callHome, .push: context.fail(.internalError, introduction.request)
        }
    }
}

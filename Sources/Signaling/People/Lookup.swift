import Wire

/// What reaches a look-up.
public enum LookupEvent: Equatable, Sendable {
    /// A request names this person.
    case asked(Introduction)
    /// What came of asking storage for it.
    case answered(Introduction, Finding)
    /// The person was deleted, or became another's device.
    case void
}

/// Finds out who is known by a public id.
///
/// Storage answers while the rules go on, so what it found may be from before a deletion. Storage is asked about people in
/// memory as well: an answer that came sooner than those to later requests would reveal that the person is here but
/// hidden, or has blocked the one who asks. Invariant: a look-up is there while a question about its person is under way,
/// and no longer, so that the shell, which bounds the questions, bounds the look-ups.
struct Lookup: Machine {
    private let person: PersonID
    private var questions = 0
    private var isVoid = false

    private init(_ person: PersonID) { self.person = person }

    static func make(_ id: PersonID, for event: LookupEvent, _ turn: inout Turn) -> Lookup? {
        if case .asked = event { Lookup(id) } else { nil }
    }

    static func orphan(_ event: LookupEvent, _ id: PersonID, _ turn: inout Turn) {
        if case .answered(let introduction, let finding) = event { answer(introduction, finding, &turn) }
    }

    var isOver: Bool { questions == 0 }

    mutating func handle(_ event: LookupEvent, _ turn: inout Turn) {
        switch event {
        case .asked(let introduction):
            questions += 1
            turn.inquire(
                Question(
                    identity: introduction.identity, client: introduction.client, re: introduction.re,
                    .person(person, introduction)))
        case .answered(let introduction, let finding):
            questions -= 1
            if isVoid, case .person = finding {
                Self.answer(introduction, .person(nil), &turn)
            } else {
                Self.answer(introduction, finding, &turn)
            }
        case .void: isVoid = true
        }
    }

    private static func answer(_ introduction: Introduction, _ finding: Finding, _ turn: inout Turn) {
        switch finding {
        case .person(let found):
            if let found { turn.tell(.person(found.identity, .lookedUp(found.record))) }
            turn.tell(.person(introduction.identity, .introduced(introduction, found?.identity)))
        case .refused(let error): turn.fail(error, introduction.request)
        case .callLog, .push: turn.fail(.notAnswered, introduction.request)
        }
    }
}

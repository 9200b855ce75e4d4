import Confab

/// A confirmation before an action that cannot be undone.
public enum PeopleQuestion: Equatable, Sendable {
    case deleteAllCalls
    case removeContact(PersonID)

    public var text: String {
        switch self {
        case .deleteAllCalls: "Delete all calls from this list?"
        case .removeContact:
            "You will no longer be in each other’s contacts. Anyone who has your link can still call you."
        }
    }

    public var actionText: String {
        switch self {
        case .deleteAllCalls: "Delete all calls"
        case .removeContact: "Remove from contacts"
        }
    }
}

extension PeopleModel {
    public func askToDeleteAllCalls() { if offersDeleteAll { question = .deleteAllCalls } }
    public func askToRemoveContact() { if let person, isContact { question = .removeContact(person.id) } }

    public func confirm(_ question: PeopleQuestion) {
        self.question = nil
        switch question {
        case .deleteAllCalls: forgetAll()
        // The other person may have removed the contact in the meantime.
        case .removeContact(let id): if knows(contact: id) { request(.removeContact(id)) }
        }
    }

    /// Whether the confirmation is shown. The dialog only ever sets this to false.
    public var asks: Bool {
        get { question != nil }
        set { if !newValue { question = nil } }
    }

    public var questionText: String { question?.text ?? "" }

    var questionLines: [ScreenLine] {
        question.map { [.text($0.text), .button($0.actionText), .button("Cancel")] } ?? []
    }
}

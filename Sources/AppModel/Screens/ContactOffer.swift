/// Which of two people who met have asked to keep in touch. They become contacts if both ask for it.
public enum ContactOffer: Equatable, Sendable {
    case none
    /// The other person asked to keep in touch.
    case asked
    /// This user asked to keep in touch.
    case wanted
    case agreed

    var isOpen: Bool { self == .none || self == .asked }

    /// Returns the text for this state. `who` names the other person at the beginning of a sentence, and `whom` in the
    /// middle.
    func text(_ who: String, _ whom: String) -> String {
        switch self {
        case .none: ""
        case .asked: "\(who) would like to keep in touch. If you agree too, you can call each other later."
        case .wanted: "\(who) was notified. If they agree too, you can call each other later."
        case .agreed: "You and \(whom) are now contacts."
        }
    }
}

/// Whether two people who met want to keep in touch. They become contacts if both do.
public enum Keeping: Equatable, Sendable {
    case none
    /// The other person wants to.
    case asked
    /// This person wants to.
    case wanted
    case agreed

    var isOpen: Bool { self == .none || self == .asked }

    /// What to read, with the other person's name at the beginning and inside of a sentence.
    func text(_ who: String, _ whom: String) -> String {
        switch self {
        case .none: ""
        case .asked: "\(who) would like to keep in touch. If you agree too, you can call each other later."
        case .wanted: "\(who) was notified. If they agree too, you can call each other later."
        case .agreed: "You and \(whom) are now contacts."
        }
    }
}

/// What happens to the wish to keep in touch with the other person of a call.
public enum KeepEvent: Equatable, Sendable {
    case asked(call: String)
    case agreed(call: String)
    case failed(call: String, CallTrouble)

    var call: String {
        switch self {
        case .asked(let call), .agreed(let call), .failed(let call, _): call
        }
    }
}

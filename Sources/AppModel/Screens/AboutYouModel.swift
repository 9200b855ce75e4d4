import Observation
import enum Wire.Limits

/// The screen on which the user enters a name, confirms their age and agrees to the rules. It is shown once, and can be
/// opened again later.
@MainActor @Observable public final class AboutYouModel: Screen {
    /// What the user entered on this screen, stored on the device.
    public struct Answers: Codable, Equatable, Sendable {
        public var name = ""
        public var agreed = false

        public init() {}
    }

    public var name: String
    public var isRulesAgreed: Bool
    /// Whether the user agreed before and is now editing the answers.
    public let isEdit: Bool
    /// The text shown after the server has refused the name; otherwise nil.
    public private(set) var nameTrouble: String?
    private let done: @MainActor (Answers) -> Void
    private let goBack: @MainActor () -> Void

    init(
        answers: Answers, goBack: @escaping @MainActor () -> Void = {}, done: @escaping @MainActor (Answers) -> Void
    ) {
        (name, isRulesAgreed, isEdit) = (answers.name, answers.agreed, answers.agreed)
        (self.goBack, self.done) = (goBack, done)
    }

    public let rules = [
        "Be kind. No harassment, no hate, no threats.",
        "Keep your clothes on. Nothing sexual.",
        "No spam, no scams, no advertising.",
        "Do not record anyone without their permission.",
        "Keep your full name, address and passwords to yourself.",
    ]
    public let nameHint = "Shown to others. If you leave it empty, we pick one for you."
    public let agreementText = "I am 18 or older and agree to the rules"
    public let rulesEnd =
        "Press “Report” to send the last messages of a chat to the operators of this server. "
        + "They review reports and can ban people who break the rules."
    public var title: String { isEdit ? "About you" : "Before you start" }
    public var buttonText: String { isEdit ? "Save" : "Continue" }
    public var canContinue: Bool { isRulesAgreed }

    public func submit() {
        guard canContinue else { return }
        var answers = Answers()
        (answers.name, answers.agreed) = (String(name.prefix(Limits.personName)), true)
        nameTrouble = nil
        done(answers)
    }

    /// Closes the screen without changing the previous answers. Does nothing if the user has not agreed to the rules
    /// yet.
    public func cancel() { if isEdit { goBack() } }

    /// Handles the server's refusal of the name.
    func refusedName() {
        nameTrouble = "This name cannot be used. Choose another name with at most 40 characters."
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [
            .title(title), .field("Name", value: name, hint: "none"),
            .text(nameHint),
        ]
        if let nameTrouble { lines.append(.text(nameTrouble)) }
        lines.append(.title("The rules"))
        lines += rules.map { .row($0) }
        lines.append(.text(rulesEnd))
        lines.append(isEdit ? .text("You agreed to the rules.") : .toggle(agreementText, isOn: isRulesAgreed))
        return lines + [.button(buttonText, isEnabled: canContinue)] + (isEdit ? [.button("Cancel")] : [])
    }
}

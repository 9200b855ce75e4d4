/// Which question comes next, and which answers are settled: the rules of the conversation of `confab setup`.
///
/// Answers come from flags, from the existing configuration, or from the operator. An answer to a question that is asked can
/// be empty, which accepts the default.
struct SetupInterview: Sendable {
    /// What to do next.
    enum Step: Equatable, Sendable {
        /// Ask, and call ``answer(_:)``.
        case ask(SetupQuestion, prompt: String, default: String?)
        /// Look up the addresses of a domain, and call ``found(_:)``.
        case lookUp(String)
        /// Nothing is missing.
        case done
    }

    /// What is settled.
    private(set) var answers: [SetupQuestion: String] = [:]
    /// What the existing configuration says.
    private let known: SetupKnown
    /// The addresses of this machine.
    private let local: [IPAddress]
    /// The addresses of the domain; nil before they were looked up.
    private(set) var name: NameObservation?

    /// - Parameter flags: the answers that were given as flags.
    /// - Throws: `SetupError` for an invalid flag.
    init(flags: [SetupQuestion: String], known: SetupKnown, local: [IPAddress]) throws(SetupError) {
        self.known = known
        self.local = local
        // The mode is first: it decides which domains are possible.
        for question in SetupQuestion.allCases {
            guard let flag = flags[question] else { continue }
            try settle(question, flag)
        }
    }

    /// The chosen mode.
    var mode: SetupMode? { answers[.mode].flatMap(SetupMode.init(rawValue:)) }

    /// What to do next.
    var step: Step {
        if let domain = answers[.domain], mode != .lan, name == nil { return .lookUp(domain) }
        guard let question = SetupQuestion.allCases.first(where: isAsked) else { return .done }
        return .ask(
            question, prompt: question.prompt(authority: answers[.authority]), default: suggestion(for: question))
    }

    /// Takes the answer to the question of ``step``. An empty one accepts the default.
    ///
    /// - Throws: `SetupError` if the answer cannot be used. The same question is then asked again.
    mutating func answer(_ line: String) throws(SetupError) {
        guard case .ask(let question, _, let suggested) = step else { return }
        let isEmpty = line.trimmingBlanks().isEmpty
        try settle(question, isEmpty ? suggested ?? "" : line)
    }

    /// Answers the question of ``step`` without the operator.
    ///
    /// - Throws: `SetupError` that names the flag, if the question has no default.
    mutating func acceptDefault() throws(SetupError) {
        guard case .ask(let question, _, let suggested) = step else { return }
        guard let suggested else {
            let value = question == .terms ? "" : " VALUE"
            throw SetupError(
                "Without prompts, this answer is required: add \(question.flag)\(value). See confab help setup.")
        }
        try settle(question, suggested)
    }

    /// Takes the addresses of the domain.
    mutating func found(_ name: NameObservation) { self.name = name }

    private mutating func settle(_ question: SetupQuestion, _ text: String) throws(SetupError) {
        let answer = try question.parse(text, mode: mode)
        guard question != .terms || answer == "yes" else {
            throw SetupError(
                "Without this agreement, the authority issues no certificate. Agree, or use --mode proxy or --mode lan."
            )
        }
        answers[question] = answer
    }

    /// Whether a question has no answer yet and matters. Ports and the TURN server are never asked: their defaults suit most
    /// machines.
    private func isAsked(_ question: SetupQuestion) -> Bool {
        guard answers[question] == nil, mode.map { question.applies(in: $0) } ?? (question == .mode) else {
            return false
        }
        switch question {
        case .mode, .domain, .authority, .terms, .email: return true
        case .mediaAddress: return known[.mediaAddress] == nil && suggestion(for: .mediaAddress) != nil
        case .port, .mediaPort, .turnServer: return false
        }
    }

    /// Whether the agreement in the configuration is with the chosen authority. Those of Let's Encrypt have the same terms.
    private var hasAgreed: Bool {
        guard let old = known[.authority], let new = answers[.authority] else { return false }
        return old == new || ACMEAuthority.isName(old) && ACMEAuthority.isName(new)
    }

    private func suggestion(for question: SetupQuestion) -> String? {
        if let value = known[question], question != .terms || hasAgreed { return value }
        switch question {
        case .mode: return known.exists ? nil : SetupMode.direct.rawValue
        case .authority: return ACMEAuthority.stagingName
        case .email: return ""
        case .mediaAddress:
            // Behind a router, the domain's address is that of the router.
            guard !local.contains(where: PublicAddresses.contain), let addresses = name?.addresses else { return nil }
            return addresses.first { $0.isIPv4 && PublicAddresses.contain($0) }?.description
        case .domain, .terms, .port, .mediaPort, .turnServer: return nil
        }
    }
}

/// The answers that the existing configuration contains.
struct SetupKnown: Equatable, Sendable {
    /// Whether there is a configuration file that sets something.
    let exists: Bool
    private var values: [SetupQuestion: String] = [:]

    /// - Parameters:
    ///   - configuration: the file's settings.
    ///   - keys: the names of the settings that the file contains.
    init(_ configuration: ConfabConfiguration, keys: Set<String>) {
        exists = !keys.isEmpty
        let acme = configuration.acme
        let site = configuration.publicURL.flatMap { SiteAddress($0) }
        if configuration.lan {
            values[.mode] = SetupMode.lan.rawValue
        } else if !acme.domains.isEmpty {
            values[.mode] = SetupMode.direct.rawValue
            values[.authority] = acme.directory
            values[.email] = acme.email ?? ""
            if acme.agreeToTerms { values[.terms] = "yes" }
        } else if site != nil, !configuration.trustedProxies.blocks.isEmpty {
            values[.mode] = SetupMode.proxy.rawValue
        }
        values[.domain] = acme.domains.first ?? site?.host
        if keys.contains("media.address") { values[.mediaAddress] = configuration.media.address?.description ?? "" }
    }

    /// The mode of the configuration.
    var mode: SetupMode? { values[.mode].flatMap(SetupMode.init(rawValue:)) }

    /// The known answer to a question; nil if there is none.
    subscript(question: SetupQuestion) -> String? { values[question] }
}

/// An error of `confab setup`: a sentence that says what is wrong, and what to do.
public struct SetupError: Error, Equatable, CustomStringConvertible {
    /// The sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// How people reach the server.
public enum SetupMode: String, CaseIterable, Sendable {
    /// Under a domain. Confab handles HTTPS, and gets its certificate by ACME.
    case direct
    /// Under a domain, through a reverse proxy on the same machine, which handles HTTPS.
    case proxy
    /// At an address without a domain, with the server's own certificate authority.
    case lan

    fileprivate var meaning: String {
        switch self {
        case .direct: "under a domain; Confab handles HTTPS, and gets the certificate"
        case .proxy: "under a domain, through nginx on this machine, which handles HTTPS"
        case .lan: "on a local network, or at an address without a domain"
        }
    }
}

/// Something that `confab setup` has to know. Each has a flag; some are also asked.
public enum SetupQuestion: String, CaseIterable, Sendable {
    /// How people reach the server, see ``SetupMode``.
    case mode
    /// The domain of the pages.
    case domain
    /// The certificate authority, as in `acme.directory`.
    case authority
    /// Whether the operator agrees to the authority's terms: `yes` or `no`.
    case terms = "agree-to-terms"
    /// An email address for the authority's messages; empty for none.
    case email
    /// The TCP port of the server itself.
    case port
    /// The first port for media.
    case mediaPort = "media-port"
    /// The address that browsers reach for media; empty for those of this machine.
    case mediaAddress = "media-address"
    /// The host of a TURN server; empty for none.
    case turnServer = "turn-server"

    /// The flag that answers the question.
    public var flag: String { "--\(rawValue)" }

    /// Whether an empty answer means that there is nothing, which people write as `none`.
    private var mayBeEmpty: Bool { self == .email || self == .mediaAddress || self == .turnServer }

    /// Whether an answer matters in this mode.
    func applies(in mode: SetupMode) -> Bool {
        switch self {
        case .domain: mode != .lan
        case .authority, .terms, .email: mode == .direct
        case .mode, .port, .mediaPort, .mediaAddress, .turnServer: true
        }
    }

    /// Checks an answer.
    ///
    /// - Parameter mode: the mode, if it is known.
    /// - Returns: the answer in its usual form.
    func parse(_ text: String, mode: SetupMode?) throws(SetupError) -> String {
        let text = text.trimmingBlanks()
        if mayBeEmpty, text.isEmpty || text.lowercased() == "none" { return "" }
        guard !text.isEmpty else { throw SetupError("The answer for \(flag) is empty. \(expected)") }
        switch self {
        case .mode:
            guard let mode = SetupMode(rawValue: text.lowercased()) else { throw rejected(text) }
            return mode.rawValue
        case .domain: return try SetupDomain.parse(text, mode: mode)
        case .terms:
            switch text.lowercased() {
            case "yes", "y": return "yes"
            case "no", "n": return "no"
            default: throw rejected(text)
            }
        case .authority, .email:
            var scratch = ConfabConfiguration()
            guard setting?.store([text], &scratch) == true else { throw rejected(text) }
            return text
        case .port, .mediaPort:
            guard let port = Int(text), (1...65535).contains(port) else { throw rejected(text) }
            return String(port)
        case .mediaAddress:
            guard let address = IPAddress(text), !address.isUnspecified, !address.isMulticast else {
                throw rejected(text)
            }
            return address.description
        case .turnServer:
            let host = text.lowercased()
            guard HostName.isUsable(host) || IPAddress(host) != nil else { throw rejected(text) }
            return host
        }
    }

    /// The setting that has the answer, if its format decides what is accepted.
    private var setting: Setting? {
        let name: String
        switch self {
        case .authority: name = "acme.directory"
        case .email: name = "acme.email"
        default: return nil
        }
        return Setting.all.first { $0.key.name == name }
    }

    private func rejected(_ text: String) -> SetupError {
        SetupError("\"\(LogText.escaped(String(text.prefix(200))))\" is not a usable answer for \(flag). \(expected)")
    }

    /// A sentence about accepted answers.
    private var expected: String {
        switch self {
        case .mode: "Use \(SetupMode.allCases.map(\.rawValue).joined(separator: ", "))."
        case .domain: "Use a domain such as chat.example.org."
        case .terms: "Use yes or no."
        case .authority, .email: "Use \(setting?.key.accepts ?? "another value")."
        case .port, .mediaPort: "Use a port from 1 to 65535."
        case .mediaAddress: "Use the IP address that browsers reach, or none."
        case .turnServer: "Use the name or the address of the TURN server, or none."
        }
    }

    /// What to ask.
    ///
    /// - Parameter authority: the chosen authority, whose terms are meant.
    func prompt(authority: String?) -> String {
        switch self {
        case .mode:
            let modes = SetupMode.allCases.map { mode in
                "  \(mode.rawValue)\(String(repeating: " ", count: 8 - mode.rawValue.count))\(mode.meaning)\n"
            }
            return "How do people reach this server?\n\(modes.joined())Mode"
        case .domain: return "Domain of the pages, such as chat.example.org"
        case .authority:
            return "Certificate authority. letsencrypt-staging issues certificates for a test, which browsers reject.\n"
                + "letsencrypt, letsencrypt-staging or a URL"
        case .terms:
            let name = authority.map { ACMEAuthority.isName($0) ? "Let's Encrypt" : $0 } ?? "the authority"
            let place = name == "Let's Encrypt" ? " (https://letsencrypt.org/repository/)" : ""
            return "Do you agree to the terms of service of \(name)\(place)? yes or no"
        case .email: return "Email address for messages of the authority, or none"
        case .port: return "TCP port of the server"
        case .mediaPort: return "First UDP and TCP port for media"
        case .mediaAddress:
            return "This machine has only private addresses. Public address that leads to it, for media, or none"
        case .turnServer: return "Host of a TURN server, or none"
        }
    }
}

/// The syntax of domains, with a sentence for each mistake that people make.
enum SetupDomain {
    static func parse(_ text: String, mode: SetupMode?) throws(SetupError) -> String {
        var domain = text.lowercased()
        if domain.hasSuffix(".") { domain.removeLast() }
        let shown = LogText.escaped(String(text.prefix(200)))
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw SetupError(
                "\(shown) has letters that DNS does not have. Use the form that begins with xn--, "
                    + "which your domain's provider shows.")
        }
        guard !domain.contains("/") else {
            throw SetupError("Use only the domain, such as chat.example.org, without https:// and without a path.")
        }
        guard IPAddress(domain) == nil else {
            throw SetupError("\(shown) is an address, not a domain. Use --mode lan for a server without a domain.")
        }
        guard !domain.contains("*") else {
            throw SetupError("Wildcards are not supported. Use one domain, such as chat.example.org.")
        }
        let last = domain.split(separator: ".").last ?? ""
        guard HostName.isUsable(domain), last.contains(where: \.isLetter) else {
            throw SetupError(
                "\(shown) is not a domain. Use letters, digits, hyphens and dots, such as chat.example.org.")
        }
        guard mode != .direct || DoctorVerdicts.isPublicName(domain) else {
            throw SetupError(
                "No authority issues certificates for \(shown), because it is not a public name. "
                    + "Use a public domain, or --mode lan.")
        }
        return domain
    }
}

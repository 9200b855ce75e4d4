extension ConfabConfiguration {
    /// Settings for certificates from an ACME server, such as Let's Encrypt. Without domains, the server orders none.
    public struct ACME: Sendable, Equatable {
        /// The domains of the certificate, in lower case. Empty for no ACME.
        public var domains: [String] = []
        /// The address for the authority's messages.
        public var email: String?
        /// The name of an authority, or the URL of its directory.
        public var directory = ACMEAuthority.stagingName
        /// How the authority verifies the domains.
        public var challenge = Challenge.http
        /// Whether the operator agrees to the authority's terms of service.
        public var agreeToTerms = false
        /// The TCP port for plain HTTP.
        public var httpPort = 80
        /// A PEM file of CA certificates to trust for requests to the authority.
        public var authorities: String?
        /// Makes the default settings, which order no certificate.
        public init() {}

        /// How an authority verifies that a domain leads to this server.
        public enum Challenge: String, Sendable, CaseIterable {
            /// By a request for a file over plain HTTP, to port 80 (RFC 8555 §8.3).
            case http
            /// By a TLS connection to port 443, where it gets a special certificate (RFC 8737).
            case tls

            /// The type in ACME's messages.
            var type: String {
                switch self {
                case .http: "http-01"
                case .tls: "tls-alpn-01"
                }
            }

            /// The port to which authorities connect.
            var port: Int {
                switch self {
                case .http: 80
                case .tls: 443
                }
            }
        }
    }

    /// Whether the public port speaks HTTPS.
    public var handlesHTTPS: Bool { lan || tls.certificate != nil || !acme.domains.isEmpty }

    /// The port for plain HTTP, where an authority verifies the domains; nil if it is not opened.
    var plainHTTPPort: Int? { acme.domains.isEmpty || acme.challenge != .http ? nil : acme.httpPort }

    /// The port to which plain HTTP is redirected: that of `publicURL`, which a router may forward to ``port``.
    var redirectPort: Int {
        guard let site = publicURL.flatMap({ SiteAddress($0) }), site.isSecure else { return port }
        return site.port
    }

    /// Problems with the settings for ACME that only show together with others.
    var acmeConflicts: [ConfigurationError.Problem] {
        guard !acme.domains.isEmpty else { return [] }
        let rules: [(isMet: Bool, key: String, message: String)] = [
            (tls.certificate == nil, "acme.domains", "set either acme.domains or tls.certificate, not both"),
            (!lan, "acme.domains", "cannot be used with lan, which has its own certificate authority"),
            (
                cluster.node == nil, "acme.domains",
                "cannot be used in a cluster; use a proxy that gets the certificate, or tls.certificate"
            ),
            (
                acme.agreeToTerms, "acme.agreeToTerms",
                "read the authority's terms of service, and set this to true to agree to them"
            ),
            (plainHTTPPort != port || port == 0, "acme.httpPort", "must differ from port, which is for HTTPS"),
        ]
        return rules.filter { !$0.isMet }.map { .init(key: $0.key, message: $0.message) }
    }
}

/// The authorities that have names in the configuration.
enum ACMEAuthority {
    /// The name of the test authority of Let's Encrypt.
    static let stagingName = "letsencrypt-staging"

    private static let directories = [
        stagingName: "https://acme-staging-v02.api.letsencrypt.org/directory",
        "letsencrypt": "https://acme-v02.api.letsencrypt.org/directory",
    ]

    /// Returns the URL of the directory with this name or URL; nil if the text is neither.
    static func directory(_ text: String) -> String? {
        directories[text] ?? (ACMEURL.isUsable(text) ? text : nil)
    }

    /// True if this authority's certificates are only for tests, so that browsers reject them.
    static func isForTests(_ text: String) -> Bool { text == stagingName }

    /// True if `text` is the name of an authority, and not a URL.
    static func isName(_ text: String) -> Bool { directories[text] != nil }
}

extension Setting {
    /// The keys under `acme`.
    static let acme: [Setting] = [
        Setting(
            "acme.domains", \.acme.domains,
            .list(
                of: .single(
                    "a host name such as chat.example.org, without wildcards",
                    parse: { text in
                        let name = text.lowercased()
                        return HostName.isUsable(name) ? name : nil
                    }, write: { $0 })),
            "Get and renew a certificate for these domains from an ACME server, such as Let's Encrypt. Empty: no ACME.",
            "The domains must lead to this server. The authority connects to port 80, or to port 443 with "
                + "acme.challenge: tls. See docs/certificates.md."),
        Setting(
            "acme.directory", \.acme.directory,
            .single(
                "letsencrypt, letsencrypt-staging or the https:// URL of an authority's directory",
                parse: { ACMEAuthority.directory($0) == nil ? nil : $0 }, write: { $0 }),
            "The authority. Browsers reject certificates of letsencrypt-staging, which is for a first try.",
            "Change it to letsencrypt when the log says that the certificate was issued."),
        Setting(
            "acme.agreeToTerms", \.acme.agreeToTerms, .boolean,
            "Whether you agree to the authority's terms of service, which acme.domains requires."),
        Setting(
            "acme.email", \.acme.email,
            .optional(
                .word(
                    "an email address",
                    where: { text in
                        text.utf8.count <= 254 && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
                            && !text.contains(where: "?,<>&\\\"".contains)
                            && text.split(separator: "@", omittingEmptySubsequences: false).count == 2
                            && !text.hasPrefix("@") && !text.hasSuffix("@")
                    }), empty: "no address"),
            "Email address for messages of the authority."),
        Setting(
            "acme.challenge", \.acme.challenge, .choice,
            "How the authority verifies the domains. http: on port 80 (acme.httpPort). tls: on port 443, the port for HTTPS.",
            "Use tls if port 80 of this server cannot be reached from the Internet. Then plain HTTP is not redirected."),
        Setting(
            "acme.httpPort", \.acme.httpPort, .integer(0...65535),
            "TCP port for plain HTTP, where the authority verifies the domains. Other requests are redirected to HTTPS.",
            "The authority always connects to port 80, so use another port only if port 80 is forwarded to it. Not opened "
                + "with acme.challenge: tls."),
        Setting(
            "acme.authorities", \.acme.authorities, .optional(.path),
            "PEM file of CA certificates to trust for connections to the authority, in addition to the system's."),
    ]
}

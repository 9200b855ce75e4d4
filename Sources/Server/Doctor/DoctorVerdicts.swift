import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The rules of `confab doctor`: pure functions that turn what was seen into findings. Each finding is one sentence about what was
/// seen and one about what to do.
enum DoctorVerdicts {
    /// A certificate that expires sooner gets a warning: renewal usually happens 30 days before, so it has failed.
    static let certificateWarning = Duration.seconds(14 * 86400)
    /// Clocks that differ by more get a warning: a fraction of the five minutes for which TURN credentials are valid.
    static let clockWarning = Duration.seconds(10)
    /// Clocks that differ by more are a fault: tokens and TURN credentials are refused.
    static let clockFault = Duration.seconds(60)

    // MARK: The name and the connection

    static func dns(_ name: NameObservation) -> DoctorFinding {
        let host = name.host
        guard IPAddress(host) == nil else {
            return .skipped(.dns, host, "The URL has the address \(host) and no name.")
        }
        guard let addresses = name.addresses else {
            return .failed(
                .dns, host, "The name servers did not answer the question for \(host) in time.",
                fix:
                    "Check /etc/resolv.conf on this machine, and with `dig \(host)` the name servers of the domain."
            )
        }
        guard !addresses.isEmpty else {
            return .failed(
                .dns, host, "\(host) has no address.",
                fix:
                    "Create an A or AAAA record for \(host) with the server's public address, and wait until it is published."
            )
        }
        let list = addresses.map(\.description).joined(separator: ", ")
        if isPublicName(host), !addresses.contains(where: PublicAddresses.contain) {
            return .warning(
                .dns, host, "\(host) has only addresses that the internet cannot reach: \(list).",
                fix:
                    "If people outside your network should come, set the A or AAAA record to the public address of the server."
            )
        }
        return .passed(.dns, host, "\(host) has the address\(addresses.count == 1 ? "" : "es") \(list).")
    }

    /// - Parameter connections: one for each address of the host.
    static func tcp(_ site: SiteAddress, _ connections: [ConnectObservation]) -> [DoctorFinding] {
        let isReachable = connections.contains { $0.outcome == .connected }
        let failures = connections.compactMap { connection -> DoctorFinding? in
            let place = URLAuthority(host: connection.address.description, port: site.port).description
            let (seen, fix) = tcp(site, place, connection.outcome)
            // This machine may have no IPv6.
            if isReachable, case .failed = connection.outcome { return nil }
            guard !fix.isEmpty else { return nil }
            return isReachable ? .warning(.tcp, place, seen, fix: fix) : .failed(.tcp, place, seen, fix: fix)
        }
        return isReachable
            ? [.passed(.tcp, site.place, "\(site.place) accepts TCP connections.")] + failures : failures
    }

    /// Returns what was seen, and what to do; an empty text if nothing has to be done.
    private static func tcp(
        _ site: SiteAddress, _ place: String, _ outcome: ConnectObservation.Outcome
    ) -> (seen: String, fix: String) {
        switch outcome {
        case .connected: ("", "")
        case .refused:
            (
                "\(place) refuses TCP connections: nothing listens on this port.",
                "Start the server or the proxy in front of it, and check that it listens on port \(site.port) of this address and "
                    + "not only on 127.0.0.1."
            )
        case .timedOut:
            (
                "No answer from \(place) over TCP: a firewall drops the packets, or the address is wrong.",
                "Open TCP port \(site.port) in the firewalls of the server and of its provider, and check that this is the "
                    + "server's address."
            )
        case .failed(let reason):
            (
                "No TCP connection to \(place): \(printable(reason)).",
                "Check the network of this machine, and the address of \(site.host)."
            )
        }
    }

    // MARK: TLS

    /// - Parameter now: this machine's time.
    static func tls(_ site: SiteAddress, _ seen: TLSObservation, now: Timestamp) -> DoctorFinding {
        guard let leaf = seen.chain.first else {
            return .failed(
                .tls, site.place,
                "The TLS handshake with \(site.place) failed: \(seen.error ?? "the server sent no certificate").",
                fix:
                    "Check that port \(site.port) is for HTTPS with TLS 1.2 or newer, and not for plain HTTP."
            )
        }
        if let fault = validity(leaf, of: "The certificate of \(site.host)", now: now) {
            return .failed(.tls, site.place, fault.seen, fix: fault.fix)
        }
        guard leaf.names.contains(where: { covers($0, site.host) }) else {
            let names = leaf.names.isEmpty ? "no name" : leaf.names.prefix(4).joined(separator: ", ")
            return .failed(
                .tls, site.place, "The certificate is for \(names), and not for \(site.host).",
                fix: "Use a certificate for \(site.host), or the URL with a name of this certificate.")
        }
        for certificate in seen.chain.dropFirst() {
            if let fault = validity(certificate, of: "The intermediate certificate \(certificate.subject)", now: now) {
                return .failed(.tls, site.place, fault.seen, fix: fault.fix)
            }
        }
        if !seen.isTrusted { return untrusted(site, leaf, seen.chain.count) }
        if let error = seen.error {
            return .failed(
                .tls, site.place, "The TLS connection to \(site.place) failed after the certificate: \(error).",
                fix: "Look into the log of the server or of the proxy.")
        }
        if leaf.notAfter - now < certificateWarning { return expiresSoon(.tls, site.host, leaf, now) }
        return .passed(
            .tls, site.place,
            "The certificate of \(site.host) is valid until \(date(leaf.notAfter)), from \(leaf.issuer).")
    }

    private static func untrusted(_ site: SiteAddress, _ leaf: CertificateFacts, _ count: Int) -> DoctorFinding {
        if leaf.isSelfSigned {
            return .failed(
                .tls, site.place, "The certificate of \(site.host) is signed by itself, so browsers refuse it.",
                fix:
                    "Get a certificate from a public authority such as Let's Encrypt; on a local network, use confab serve --lan."
            )
        }
        if count == 1 {
            return .failed(
                .tls, site.place,
                "The server sends only its own certificate, and this machine does not know its authority, \(leaf.issuer).",
                fix:
                    "Set tls.certificate, or the certificate of the proxy, to the file with the whole chain (fullchain.pem)."
            )
        }
        return .failed(
            .tls, site.place, "This machine does not trust the authority of the certificate, \(leaf.issuer).",
            fix: "Get a certificate from a public authority, or install that authority on every device.")
    }

    /// Returns what is wrong with the time of a certificate; nil if nothing is.
    private static func validity(
        _ certificate: CertificateFacts, of what: String, now: Timestamp
    ) -> (seen: String, fix: String)? {
        if certificate.notAfter <= now {
            return (
                "\(what) expired on \(date(certificate.notAfter)).",
                "Renew the certificate; Confab loads new files within tls.checkInterval, and a proxy has to be reloaded."
            )
        }
        if certificate.notBefore > now {
            return (
                "\(what) is valid only from \(date(certificate.notBefore)), and this machine's clock says \(date(now)).",
                "Set this machine's clock; if it is right, the issuer's was wrong: get a new certificate."
            )
        }
        return nil
    }

    private static func expiresSoon(
        _ check: DoctorFinding.Check, _ subject: String, _ leaf: CertificateFacts, _ now: Timestamp
    ) -> DoctorFinding {
        let days = (leaf.notAfter - now).components.seconds / 86400
        return .warning(
            check, subject, "The certificate of \(subject) expires in \(days) days, on \(date(leaf.notAfter)).",
            fix: "Renew it, and check why it was not renewed automatically.")
    }

    /// The files of the configuration. `facts` is nil if they cannot be used, for the given reason.
    static func certificateFiles(
        _ path: String, _ facts: CertificateFacts?, error: String?, now: Timestamp
    ) -> DoctorFinding {
        guard let facts else {
            return .failed(
                .certificateFiles, path, "\(path) and its key cannot be used: \(error ?? "unknown reason").",
                fix:
                    "Check that tls.certificate and tls.privateKey belong together, and that the server's user can read them."
            )
        }
        if let fault = validity(facts, of: "The certificate in \(path)", now: now) {
            return .failed(.certificateFiles, path, fault.seen, fix: fault.fix)
        }
        if facts.notAfter - now < certificateWarning { return expiresSoon(.certificateFiles, path, facts, now) }
        return .passed(
            .certificateFiles, path,
            "\(path) is valid until \(date(facts.notAfter)), for \(facts.names.joined(separator: ", ")).")
    }

    /// An order of a certificate (ACME) that failed.
    ///
    /// - Parameters:
    ///   - event: what happened, with the authority's own sentence.
    ///   - certificate: the finding about the certificate in use; nil if there is none.
    static func certificateOrder(
        _ path: String, _ event: String, fix: String, _ certificate: DoctorFinding?
    ) -> DoctorFinding {
        // Longer than other texts from outside, because the authority's own sentence says what is wrong.
        let event = LogText.escaped(String(event.prefix(1000)))
        guard let certificate else {
            return .failed(.certificateFiles, path, "The server has no certificate yet. \(event)", fix: fix)
        }
        let seen = "\(certificate.seen) The order of another one failed. \(event)"
        return certificate.outcome == .failed
            ? .failed(.certificateFiles, path, seen, fix: fix) : .warning(.certificateFiles, path, seen, fix: fix)
    }

    /// Whether a name of a certificate is that of the host (RFC 6125 §6.4): equal, or with `*` for its first label.
    static func covers(_ name: String, _ host: String) -> Bool {
        if let address = IPAddress(host) { return IPAddress(name) == address }
        let (name, host) = (name.lowercased(), host.lowercased())
        guard name.hasPrefix("*."), let dot = host.firstIndex(of: ".") else { return name == host }
        return dot != host.startIndex && host[dot...] == name.dropFirst()
    }

    // MARK: Clocks and texts

    /// - Parameters:
    ///   - ahead: by how much this machine's clock is ahead of the other one.
    ///   - other: whose clock that is, such as `the server's`.
    static func clock(_ subject: String, ahead: Duration, of other: String) -> DoctorFinding {
        let size = max(ahead, .zero - ahead)
        guard size > clockWarning else {
            return .passed(.clock, subject, "This machine's clock agrees with \(other).")
        }
        let seen =
            "This machine's clock is \(size.components.seconds) s \(ahead > .zero ? "ahead of" : "behind") \(other)."
        let fix =
            "Synchronize both clocks (timedatectl set-ntp true), and restart the one whose clock was wrong; tokens and TURN "
            + "credentials depend on them."
        return size > clockFault
            ? .failed(.clock, subject, seen, fix: fix) : .warning(.clock, subject, seen, fix: fix)
    }

    /// Whether a name can belong to a host on the internet.
    static func isPublicName(_ host: String) -> Bool {
        host.contains(".")
            && ![".local", ".lan", ".internal", ".home.arpa", ".localhost"].contains(where: host.hasSuffix)
    }

    /// The day and the time of a moment, in UTC.
    static func date(_ time: Timestamp) -> String {
        // Dates beyond a few thousand years cannot be formatted.
        let seconds = min(max(Double(time.milliseconds) / 1000, 0), 32_503_680_000)
        return Date(timeIntervalSince1970: seconds).formatted(.iso8601)
    }

    /// Text from outside, for a terminal and at most 200 characters.
    static func printable(_ text: String) -> String {
        LogText.escaped(String(text.prefix(200)))
    }
}

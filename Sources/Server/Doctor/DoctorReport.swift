import Wire

/// What `confab doctor` has found: one finding for each thing that it looked at.
public struct DoctorReport: Equatable, Sendable {
    /// The findings, in the order in which an operator should read them: a later one can follow from an earlier one.
    public var findings: [DoctorFinding] = []

    /// Creates a report of these findings.
    public init(_ findings: [DoctorFinding] = []) { self.findings = findings }

    /// Whether something does not work. Warnings do not count.
    public var hasFailed: Bool { findings.contains { $0.outcome == .failed } }

    /// Returns how many findings have this outcome.
    public func count(_ outcome: DoctorFinding.Outcome) -> Int { findings.count { $0.outcome == outcome } }

    /// One line for each finding, with its fix on the next one, and a summary.
    public var text: String {
        let width = (findings.map { $0.check.rawValue.count }.max() ?? 0) + 2
        var lines: [String] = []
        for finding in findings {
            let mark = finding.outcome.mark.padded(to: 9)
            lines.append(mark + finding.check.rawValue.padded(to: width) + finding.seen)
            if let fix = finding.fix { lines.append("".padded(to: 9) + "Fix: " + fix) }
        }
        lines.append(
            "\(count(.failed)) failed, \(count(.warning)) warning\(count(.warning) == 1 ? "" : "s"), "
                + "\(count(.passed)) passed, \(count(.skipped)) skipped"
        )
        return lines.joined(separator: "\n")
    }

    /// The report for scripts, as a JSON object: `version` of this program, the numbers `failed` and `warnings`, and
    /// `findings`, each with `check`, `subject`, `outcome`, `seen`, and `fix` unless nothing has to be done.
    public var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("version")
        writer.string(ConfabServer.version)
        writer.name("failed")
        writer.integer(count(.failed))
        writer.name("warnings")
        writer.integer(count(.warning))
        writer.name("findings")
        writer.beginArray()
        for finding in findings { finding.write(to: &writer) }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

/// One thing that `confab doctor` looked at, what it saw, and what to do about it.
public struct DoctorFinding: Equatable, Sendable {
    /// Whether it works.
    public enum Outcome: String, CaseIterable, Sendable {
        /// It works.
        case passed
        /// It works for some people, or will stop to work.
        case warning
        /// It does not work.
        case failed
        /// It was not looked at, for the reason in ``DoctorFinding/seen``.
        case skipped

        fileprivate var mark: String {
            switch self {
            case .passed: "ok"
            case .warning: "WARNING"
            case .failed: "FAILED"
            case .skipped: "skipped"
            }
        }
    }

    /// What was looked at. The codes are stable: scripts can rely on them.
    public enum Check: String, CaseIterable, Sendable {
        /// The configuration can be loaded.
        case configuration
        /// A server uses the data directory, and answers.
        case server
        /// The ports of the configuration are free, if no server runs.
        case ports
        /// The addresses that the server would announce for media.
        case addresses
        /// Browsers get the page over HTTPS, and the server knows its proxy.
        case proxy
        /// The files of `tls.certificate` and `tls.privateKey`.
        case certificateFiles = "certificate_files"
        /// The free space of the data directory and of recordings.
        case disk
        /// The limit of file descriptors.
        case descriptors
        /// The system's limits of socket buffers.
        case socketBuffers = "socket_buffers"
        /// The time of day.
        case clock
        /// The versions of this program, the server and its libraries.
        case version
        /// PostgreSQL, if it is used.
        case postgresql
        /// Redis, in a cluster.
        case redis
        /// The addresses of the host in the URL.
        case dns
        /// TCP connections to the URL.
        case tcp
        /// The certificate that is served.
        case tls
        /// HTTP requests.
        case http
        /// Whether the server is ready for new clients.
        case ready
        /// The headers about clients that a proxy sends.
        case forwarded
        /// The upgrade to a WebSocket, and the answer to a hello.
        case websocket
        /// The addresses that the server announces for media.
        case mediaAddress = "media_address"
        /// Media over UDP.
        case mediaUDP = "media_udp"
        /// Media over TCP.
        case mediaTCP = "media_tcp"
        /// A STUN server that clients get.
        case stun
        /// A TURN server that clients get, with their credentials.
        case turn
    }

    /// What was looked at.
    public var check: Check
    /// What exactly, such as a host or the URL of a TURN server; empty if there is only one.
    public var subject: String
    /// Whether it works.
    public var outcome: Outcome
    /// A sentence about what was seen.
    public var seen: String
    /// A sentence about what to do; nil if nothing has to be done.
    public var fix: String?

    static func passed(_ check: Check, _ subject: String = "", _ seen: String) -> Self {
        Self(check: check, subject: subject, outcome: .passed, seen: seen)
    }

    static func skipped(_ check: Check, _ subject: String = "", _ reason: String) -> Self {
        Self(check: check, subject: subject, outcome: .skipped, seen: reason)
    }

    static func warning(_ check: Check, _ subject: String = "", _ seen: String, fix: String) -> Self {
        Self(check: check, subject: subject, outcome: .warning, seen: seen, fix: fix)
    }

    static func failed(_ check: Check, _ subject: String = "", _ seen: String, fix: String) -> Self {
        Self(check: check, subject: subject, outcome: .failed, seen: seen, fix: fix)
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.name("check")
        writer.string(check.rawValue)
        writer.name("subject")
        writer.string(subject)
        writer.name("outcome")
        writer.string(outcome.rawValue)
        writer.name("seen")
        writer.string(seen)
        if let fix {
            writer.name("fix")
            writer.string(fix)
        }
        writer.endObject()
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, width - count))
    }
}

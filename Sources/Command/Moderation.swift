import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

/// The `confab report` command. Shows, closes and exports reports.
struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Review reports from users.",
        subcommands: [List.self, Show.self, Close.self, Export.self]
    )

    /// Lists reports.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List reports, newest first.")
        @OptionGroup var data: DataOptions
        @Flag(help: "Include closed reports.") var all = false

        func run() async throws {
            let storage = try data.storage()
            let reports = try await storage.reports(includingClosed: all, limit: 1000)
            for stored in reports {
                let report = stored.report
                print(
                    "\(stored.id)  \(report.createdAt.text)  against \(report.against)  by \(report.by)"
                        + (stored.closedAt == nil ? "" : "  closed") + "  \(inert(report.reason))"
                )
            }
            if reports.isEmpty { print("No \(all ? "" : "open ")reports.") }
            try await storage.close()
        }
    }

    /// Shows one report.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show a report and its chat messages.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard let stored = try await storage.report(id: id) else {
                throw CommandError(description: "Report \(id) does not exist. See `confab report list --all`.")
            }
            let report = stored.report
            print(
                "Report \(stored.id), \(report.createdAt.text)" + (stored.closedAt.map { ", closed \($0.text)" } ?? ""))
            print("against  \(report.against)\(place(report.againstAddress))")
            print("by       \(report.by)\(place(report.byAddress))\nmatch    \(report.match)")
            print("reason   \(inert(report.reason))")
            for line in report.lines {
                print("  \(line.at.text)  \(line.from == report.by ? "reporter" : "reported")  \(inert(line.text))")
            }
            print("To ban the reported person: confab ban add --report \(id) --reason …")
            try await storage.close()
        }
    }

    /// Closes a report.
    struct Close: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Close a report.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard try await storage.closeReport(id: id, at: .now, recording: .byOperator("report.close", "\(id)"))
            else {
                throw CommandError(description: "Report \(id) does not exist or is closed. See `confab report list`.")
            }
            try await storage.close()
        }
    }

    /// Prints reports as JSON.
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print reports as JSON, one per line, for example as evidence.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number (default: all reports, including closed ones).") var id: Int64?

        func run() async throws {
            let storage = try data.storage()
            var reports: [StoredReport] = []
            if let id {
                guard let report = try await storage.report(id: id) else {
                    throw CommandError(description: "Report \(id) does not exist. See `confab report list --all`.")
                }
                reports = [report]
            } else {
                reports = try await storage.reports(includingClosed: true, limit: 1_000_000)
            }
            for report in reports { print(try report.json()) }
            try await storage.close()
        }
    }
}

/// The `confab ban` command. Adds, removes and lists bans.
struct BanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ban", abstract: "Ban people or IP addresses.", subcommands: [Add.self, Remove.self, List.self]
    )

    /// Returns what the text names. Throws if it is neither an identity nor an address or block.
    static func subject(_ text: String) throws -> BanSubject {
        guard let subject = BanSubject(text: text) else {
            throw ValidationError(
                "\"\(text)\" is neither an identity (32 hexadecimal digits, as in reports) nor an IP address or block.")
        }
        return subject
    }

    /// Bans an identity, an address, or the person in a report.
    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a ban. A running server applies it within a second."
        )
        @OptionGroup var data: DataOptions
        @Argument(
            help:
                "Identity, IP address or block of addresses (203.0.113.0/24). For an IPv6 address, its whole /64 is banned."
        )
        var subject: String?
        @Option(help: "Number of a report. Bans the reported person, and their address if the report has it.")
        var report: Int64?
        @Option(help: "Reason, for your own records.") var reason = ""
        @Option(help: "Duration, for example 2h or 30d (default: permanent).") var expires: String?

        func validate() throws {
            guard (subject == nil) != (report == nil) else {
                throw ValidationError(
                    "Specify an identity, an address or --report with a report's number, but only one of them.")
            }
        }

        func run() async throws {
            var end: Timestamp?
            if let expires {
                guard let duration = Duration(expires) else {
                    throw ValidationError("--expires must be a number and a unit, for example 2h or 30d.")
                }
                end = .now + duration
            }
            let storage = try data.storage()
            for (subject, note) in try await subjects(storage) {
                try await storage.addBan(
                    Ban(subject: subject, reason: reason, createdAt: .now, expiresAt: end),
                    recording: .byOperator("ban.add", subject.text, detail: reason))
                print("Banned \(subject.text)\(note) \(end.map { "until \($0.text)" } ?? "permanently").")
            }
            try await storage.close()
        }

        /// Returns the subjects to ban, each with a note for the output.
        private func subjects(_ storage: any Storage) async throws -> [(subject: BanSubject, note: String)] {
            if let subject { return [(try BanCommand.subject(subject), "")] }
            guard let report, let stored = try await storage.report(id: report) else {
                throw CommandError(description: "Report \(report ?? 0) does not exist. See `confab report list --all`.")
            }
            let reported = stored.report.against
            return try await storage.banSubjects(of: stored.report).map { subject in
                guard case .identity(let identity) = subject, identity != reported else { return (subject, "") }
                return (subject, " (the account that \(reported) is linked to)")
            }
        }
    }

    /// Removes a ban.
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a ban.")
        @OptionGroup var data: DataOptions
        @Argument(help: "Identity or address, as shown by `confab ban list`.") var subject: String

        func run() async throws {
            let subject = try BanCommand.subject(subject)
            let storage = try data.storage()
            guard try await storage.removeBan(subject, recording: .byOperator("ban.remove", subject.text)) else {
                throw CommandError(description: "There is no ban for this identity or address. See `confab ban list`.")
            }
            try await storage.close()
        }
    }

    /// Lists active bans.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List active bans.")
        @OptionGroup var data: DataOptions

        func run() async throws {
            let storage = try data.storage()
            let bans = try await storage.bans(at: .now)
            for ban in bans {
                print(
                    "\(ban.subject.text)  \(ban.expiresAt.map { "until \($0.text)" } ?? "permanent")  \(inert(ban.reason))"
                )
            }
            if bans.isEmpty { print("No bans.") }
            try await storage.close()
        }
    }
}

/// The `confab audit` command. Shows the audit log.
struct Audit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List actions of operators and moderators, newest first.")
    @OptionGroup var data: DataOptions
    @Option(help: "How far back to list, for example 2h or 30d (default: all stored entries).") var since: String?

    func run() async throws {
        var start = Timestamp(milliseconds: 0)
        if let since {
            guard let duration = Duration(since) else {
                throw ValidationError("--since must be a number and a unit, for example 2h or 30d.")
            }
            start = .now - duration
        }
        let storage = try data.storage()
        let entries = try await storage.audit(since: start, limit: 10_000)
        for entry in entries {
            let detail = entry.detail.isEmpty ? "" : "  \(inert(entry.detail))"
            print("\(entry.at.text)  \(entry.actor)  \(entry.action)  \(entry.subject)\(detail)")
        }
        if entries.isEmpty { print("No entries.") }
        try await storage.close()
    }
}

/// The `confab backup` command. Copies the database.
struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a consistent copy of the database, even while the server is running."
    )
    @OptionGroup var data: DataOptions
    @Argument(help: "File to write. It must not exist yet.") var file: String

    func run() async throws {
        let storage = try data.storage()
        try await storage.backup(to: file)
        try await storage.close()
    }
}

/// Replaces control and format characters in untrusted text, so that it is safe to print in a terminal.
func inert(_ text: String) -> String {
    String(
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " "
            default: Character(scalar)
            }
        })
}

private func place(_ address: String) -> String { address.isEmpty ? "" : "  from \(address)" }

extension AuditEntry {
    /// Returns the audit log entry for an action of a `confab` command.
    static func byOperator(_ action: String, _ subject: String, detail: String = "") -> AuditEntry {
        AuditEntry(at: .now, actor: operatorActor, action: action, subject: subject, detail: detail)
    }
}

extension StoredReport {
    /// Returns the report as JSON, with all stored data.
    fileprivate func json() throws -> String {
        /// One line of the text chat.
        struct Line: Encodable {
            var at: String
            var from: String
            var text: String
        }
        /// The report in its JSON form.
        struct Document: Encodable {
            var id: Int64
            var createdAt: String
            var closedAt: String?
            var match: String
            var reason: String
            var against: String
            var againstAddress: String
            var by: String
            var byAddress: String
            var lines: [Line]
        }
        let document = Document(
            id: id, createdAt: report.createdAt.text, closedAt: closedAt?.text, match: "\(report.match)",
            reason: report.reason, against: "\(report.against)", againstAddress: report.againstAddress,
            by: "\(report.by)",
            byAddress: report.byAddress,
            lines: report.lines.map { Line(at: $0.at.text, from: "\($0.from)", text: $0.text) })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(document), as: UTF8.self)
    }
}

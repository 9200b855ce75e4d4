import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Review reports from users.",
        subcommands: [List.self, Show.self, Close.self]
    )

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

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show a report and its chat messages.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard let stored = try await storage.report(id: id) else {
                throw CommandError(description: "Report \(id) does not exist.")
            }
            let report = stored.report
            print(
                "Report \(stored.id), \(report.createdAt.text)" + (stored.closedAt.map { ", closed \($0.text)" } ?? ""))
            print("against  \(report.against)\nby       \(report.by)\nmatch    \(report.match)")
            print("reason   \(inert(report.reason))")
            for line in report.lines {
                print("  \(line.at.text)  \(line.from == report.by ? "reporter" : "reported")  \(inert(line.text))")
            }
            print("To ban the reported person: confab ban add \(report.against) --reason …")
            try await storage.close()
        }
    }

    struct Close: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Close a report.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard try await storage.closeReport(id: id, at: .now) else {
                throw CommandError(description: "Report \(id) does not exist or is already closed.")
            }
            try await storage.close()
        }
    }
}

struct BanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ban", abstract: "Ban people or IP addresses.", subcommands: [Add.self, Remove.self, List.self]
    )

    /// Parses an identity (32 hexadecimal digits), an IP address or a block of addresses.
    static func subject(_ text: String) throws -> BanSubject {
        if let identity = IdentityID(text) { return .identity(identity) }
        guard let block = CIDRBlock(text) else {
            throw ValidationError(
                "\"\(text)\" is neither an identity (32 hexadecimal digits, as in reports) nor an IP address or block.")
        }
        return .address("\(block)")
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a ban. A running server applies it within a second."
        )
        @OptionGroup var data: DataOptions
        @Argument(help: "Identity, IP address or block of addresses (203.0.113.0/24).") var subject: String
        @Option(help: "Reason, for your own records.") var reason = ""
        @Option(help: "Duration, for example 2h or 30d (default: permanent).") var expires: String?

        func run() async throws {
            let subject = try BanCommand.subject(subject)
            var end: Timestamp?
            if let expires {
                guard let duration = Duration(expires) else {
                    throw ValidationError("--expires must be a number and a unit, for example 2h or 30d.")
                }
                end = .now + duration
            }
            let storage = try data.storage()
            try await storage.addBan(Ban(subject: subject, reason: reason, createdAt: .now, expiresAt: end))
            try await storage.close()
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a ban.")
        @OptionGroup var data: DataOptions
        @Argument(help: "Identity or address, as shown by `confab ban list`.") var subject: String

        func run() async throws {
            let subject = try BanCommand.subject(subject)
            let storage = try data.storage()
            guard try await storage.removeBan(subject) else {
                throw CommandError(description: "There is no ban for this identity or address. See `confab ban list`.")
            }
            try await storage.close()
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List active bans.")
        @OptionGroup var data: DataOptions

        func run() async throws {
            let storage = try data.storage()
            let bans = try await storage.bans(at: .now)
            for ban in bans {
                let subject =
                    switch ban.subject {
                    case .identity(let id): "\(id)"
                    case .address(let text): text
                    }
                print("\(subject)  \(ban.expiresAt.map { "until \($0.text)" } ?? "permanent")  \(inert(ban.reason))")
            }
            if bans.isEmpty { print("No bans.") }
            try await storage.close()
        }
    }
}

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a consistent copy of the database. The server may be running."
    )
    @OptionGroup var data: DataOptions
    @Argument(help: "File to write. It must not exist.") var file: String

    func run() async throws {
        let storage = try data.storage()
        try await storage.backup(to: file)
        try await storage.close()
    }
}

/// Replaces control and format characters in untrusted text, so that it is safe to print in a terminal.
private func inert(_ text: String) -> String {
    String(
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " "
            default: Character(scalar)
            }
        })
}

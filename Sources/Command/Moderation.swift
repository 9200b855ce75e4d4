import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "What people complained about.",
        subcommands: [List.self, Show.self, Close.self]
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List reports, newest first.")
        @OptionGroup var data: DataOptions
        @Flag(help: "Closed ones too.") var all = false

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
        static let configuration = CommandConfiguration(abstract: "Show one report with its chat.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard let stored = try await storage.report(id: id) else {
                throw Complaint(description: "There is no report \(id).")
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
        static let configuration = CommandConfiguration(abstract: "Mark a report as dealt with.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The report's number.") var id: Int64

        func run() async throws {
            let storage = try data.storage()
            guard try await storage.closeReport(id: id, at: .now) else {
                throw Complaint(description: "There is no open report \(id).")
            }
            try await storage.close()
        }
    }
}

struct BanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ban", abstract: "Keep people or addresses out.", subcommands: [Add.self, Remove.self, List.self]
    )

    /// An identity's 32 digits, or an address, or a block of them.
    static func subject(_ text: String) throws -> BanSubject {
        if let identity = IdentityID(text) { return .identity(identity) }
        guard let block = CIDRBlock(text) else {
            throw ValidationError(
                "\"\(text)\" is neither an identity (32 digits, as reports show them) nor an address.")
        }
        return .address("\(block)")
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ban somebody; the running server puts them out within a second."
        )
        @OptionGroup var data: DataOptions
        @Argument(help: "An identity, an address or a block of addresses (203.0.113.0/24).") var subject: String
        @Option(help: "Why, for yourself.") var reason = ""
        @Option(help: "For how long: 2h, 30d. Without it, for ever.") var expires: String?

        func run() async throws {
            let subject = try BanCommand.subject(subject)
            var end: Timestamp?
            if let expires {
                guard let duration = Duration(expires) else {
                    throw ValidationError("--expires takes a number and a unit: 2h, 30d.")
                }
                end = .now + duration
            }
            let storage = try data.storage()
            try await storage.addBan(Ban(subject: subject, reason: reason, createdAt: .now, expiresAt: end))
            try await storage.close()
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lift a ban.")
        @OptionGroup var data: DataOptions
        @Argument(help: "The identity or address, as `ban list` shows it.") var subject: String

        func run() async throws {
            let subject = try BanCommand.subject(subject)
            let storage = try data.storage()
            guard try await storage.removeBan(subject) else { throw Complaint(description: "There is no such ban.") }
            try await storage.close()
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List bans in force.")
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
                print("\(subject)  \(ban.expiresAt.map { "until \($0.text)" } ?? "for ever")  \(inert(ban.reason))")
            }
            if bans.isEmpty { print("No bans.") }
            try await storage.close()
        }
    }
}

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a consistent copy of the database, while the server runs."
    )
    @OptionGroup var data: DataOptions
    @Argument(help: "The file to write; it must not exist.") var file: String

    func run() async throws {
        let storage = try data.storage()
        try await storage.backup(to: file)
        try await storage.close()
    }
}

/// Text from strangers, harmless in a terminal.
private func inert(_ text: String) -> String {
    String(
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " "
            default: Character(scalar)
            }
        })
}

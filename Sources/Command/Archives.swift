import ArgumentParser
import Server
import Signaling
import Wire

/// The `confab archive` command. It sends requests to the running server, as an application of the main project does.
struct ArchiveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "archive", abstract: "Record sessions of the main project on the running server.",
        discussion: "Applications of other projects use OpenTok's REST API (docs/opentok.md).",
        subcommands: [Start.self, Stop.self, List.self, Get.self, Delete.self]
    )

    private static let path = "/archive"

    /// Starts to record a session.
    struct Start: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Start to record a session and print the archive's ID.",
            discussion: "At least one client must be in the session. Everyone in it is notified.")
        @OptionGroup var target: RoomCommand.ServerOptions

        @Argument(help: "ID of the session.")
        var session: String

        @Option(help: "Name of the archive.")
        var name: String?

        @Flag(help: "Compose the streams into one file afterwards, instead of keeping a file for each.")
        var composed = false

        @Flag(help: "Record only audio.")
        var audioOnly = false

        func run() async throws {
            let members: [(String, JSONValue)] = [
                ("sessionId", .string(session)), ("outputMode", .string(composed ? "composed" : "individual")),
                ("name", name.map { .string($0) } ?? .null), ("hasVideo", .bool(!audioOnly)),
            ]
            print(try await target.send(ofProject: "POST", path, members).text("id"))
        }
    }

    /// Stops an archive.
    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Stop a recording.")
        @OptionGroup var target: RoomCommand.ServerOptions
        @Argument(help: "ID of the archive.") var id: String

        func run() async throws {
            _ = try await target.send(ofProject: "POST", "\(path)/\(try archiveID(id))/stop")
        }
    }

    /// Lists archives.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List archives, newest first.")
        @OptionGroup var target: RoomCommand.ServerOptions

        @Option(help: "ID of the session whose archives are listed (default: all sessions).")
        var session: String?

        func run() async throws {
            try await target.printAll("archives", in: path, of: session) { $0.archiveLine }
        }
    }

    /// Shows one archive.
    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an archive, and the URL at which it can be downloaded for a while.")
        @OptionGroup var target: RoomCommand.ServerOptions
        @Argument(help: "ID of the archive.") var id: String

        func run() async throws {
            let archive = try await target.send(ofProject: "GET", "\(path)/\(try archiveID(id))")
            print(archive.archiveLine)
            if archive["reason"] != nil { print("reason: \(archive.text("reason"))") }
            if archive["url"] != nil { print("url: \(archive.text("url"))") }
        }
    }

    /// Deletes an archive, or all archives of a session.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an archive that is available, with its files, or all such archives of a session.")
        @OptionGroup var target: RoomCommand.ServerOptions
        @Argument(help: "ID of the archive.") var id: String?
        @Option(help: "ID of the session whose archives are deleted.") var session: String?

        func run() async throws {
            switch (id, session) {
            case (let id?, nil): _ = try await target.send(ofProject: "DELETE", "\(path)/\(try archiveID(id))")
            case (nil, let session?): try await deleteAll(of: try SessionID(argument: session))
            default: throw ValidationError("Specify either the ID of an archive or --session.")
            }
        }

        private func deleteAll(of session: SessionID) async throws {
            // List them first, because each deletion moves the following ones to another page.
            var archives: [JSONObject] = []
            try await target.forEach(in: path, of: session) { archives.append($0) }
            // A server that ignores the filter must not make this command delete the archives of other sessions.
            archives.removeAll { $0.text("sessionId") != session.text }
            var kept: [String] = []
            for archive in archives {
                let (id, status) = (archive.text("id"), archive.text("status"))
                guard status == "available" || status == "uploaded" else {
                    kept.append("\(id) is \(status), so it was not deleted.")
                    continue
                }
                do {
                    _ = try await target.send(ofProject: "DELETE", "\(path)/\(id)")
                } catch {
                    kept.append("\(id) was not deleted: \(error)")
                }
            }
            print("Deleted \(archives.count - kept.count) of \(archives.count) archives.")
            for line in kept { print(line) }
            if kept.contains(where: { $0.contains("was not deleted:") }) { throw ExitCode.failure }
        }
    }
}

private func archiveID(_ text: String) throws -> ArchiveID {
    guard let id = ArchiveID(text) else {
        throw ValidationError("The ID of an archive has 32 hexadecimal digits. See confab archive list.")
    }
    return id
}

extension JSONObject {
    /// One line about an archive.
    fileprivate var archiveLine: String {
        let parts = [
            text("id"), text("status"), "\(text("duration")) s", "\(text("size")) bytes",
            text("outputMode"), text("name"),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "  ")
    }
}

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

    /// The server, and the path of the main project's archives.
    struct Target: ParsableArguments {
        private static let page = 100
        @OptionGroup var server: RoomCommand.ServerOptions

        /// Calls `body` with each archive, newest first.
        ///
        /// - Parameter session: only archives of this session; nil for all.
        func forEach(of session: SessionID?, _ body: (JSONObject) -> Void) async throws {
            let query = session.map { "&sessionId=\($0.text)" } ?? ""
            var offset = 0
            while true {
                let answer = try await send("GET", "?count=\(Self.page)&offset=\(offset)\(query)")
                guard case .array(let items)? = answer["items"] else { return }
                for case .object(let archive) in items { body(archive) }
                guard items.count == Self.page else { return }
                offset += items.count
            }
        }

        func send(_ method: String, _ path: String = "", _ body: JSONObject? = nil) async throws -> JSONObject {
            let (project, _) = try server.data.project()
            var writer = JSONWriter()
            if let body { writer.value(.object(body)) }
            return try await server.send(
                method, "/v2/project/\(project.apiKey)/archive\(path)", body == nil ? nil : writer.bytes)
        }
    }

    /// Starts to record a session.
    struct Start: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Start to record a session and print the archive's ID.",
            discussion: "Somebody must be connected to the session. Everyone in it is notified.")
        @OptionGroup var target: Target

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
            let archive = try await target.send(
                "POST", "", JSONObject(members.map { .init(name: $0.0, value: $0.1) }))
            print(archive.archiveText("id"))
        }
    }

    /// Stops an archive.
    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Stop a recording.")
        @OptionGroup var target: Target
        @Argument(help: "ID of the archive.") var id: String

        func run() async throws { _ = try await target.send("POST", "/\(try archiveID(id))/stop") }
    }

    /// Lists archives.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List archives, newest first.")
        @OptionGroup var target: Target

        @Option(help: "ID of the session whose archives are listed (default: all sessions).")
        var session: String?

        func run() async throws {
            var isEmpty = true
            try await target.forEach(of: try session.map(sessionID)) { archive in
                isEmpty = false
                print(archive.archiveLine)
            }
            if isEmpty { print("No archives.") }
        }
    }

    /// Shows one archive.
    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show an archive, and the URL at which it can be downloaded for a while.")
        @OptionGroup var target: Target
        @Argument(help: "ID of the archive.") var id: String

        func run() async throws {
            let archive = try await target.send("GET", "/\(try archiveID(id))")
            print(archive.archiveLine)
            if archive["reason"] != nil { print("reason: \(archive.archiveText("reason"))") }
            if archive["url"] != nil { print("url: \(archive.archiveText("url"))") }
        }
    }

    /// Deletes an archive, or all archives of a session.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an archive that is available, with its files, or all such archives of a session.")
        @OptionGroup var target: Target
        @Argument(help: "ID of the archive.") var id: String?
        @Option(help: "ID of the session whose archives are deleted.") var session: String?

        func run() async throws {
            switch (id, session) {
            case (let id?, nil): _ = try await target.send("DELETE", "/\(try archiveID(id))")
            case (nil, let session?): try await deleteAll(of: try sessionID(session))
            default: throw ValidationError("Specify either the ID of an archive or --session.")
            }
        }

        private func deleteAll(of session: SessionID) async throws {
            // List them first, because each deletion moves the following ones to another page.
            var archives: [JSONObject] = []
            try await target.forEach(of: session) { archives.append($0) }
            // A server that ignores the filter must not make this command delete the archives of other sessions.
            archives.removeAll { $0.archiveText("sessionId") != session.text }
            var kept: [String] = []
            for archive in archives {
                let (id, status) = (archive.archiveText("id"), archive.archiveText("status"))
                guard status == "available" || status == "uploaded" else {
                    kept.append("\(id) is \(status), so it was not deleted.")
                    continue
                }
                do {
                    _ = try await target.send("DELETE", "/\(id)")
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

private func sessionID(_ text: String) throws -> SessionID {
    guard let id = SessionID(text) else {
        throw ValidationError(
            "\"\(text)\" is not the ID of a session. Specify the ID that confab session create printed.")
    }
    return id
}

private func archiveID(_ text: String) throws -> ArchiveID {
    guard let id = ArchiveID(text) else {
        throw ValidationError("The ID of an archive has 32 hexadecimal digits. See confab archive list.")
    }
    return id
}

extension JSONObject {
    /// A member of the server's description of an archive, as text.
    fileprivate func archiveText(_ name: String) -> String {
        switch self[name] {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: ""
        }
    }

    /// One line about an archive.
    fileprivate var archiveLine: String {
        let parts = [
            archiveText("id"), archiveText("status"), "\(archiveText("duration")) s", "\(archiveText("size")) bytes",
            archiveText("outputMode"), archiveText("name"),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "  ")
    }
}

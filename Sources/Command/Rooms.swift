import ArgumentParser
import Server
import Wire

/// The `confab room` command. Rooms exist in the server's memory, so the command sends requests to the running server.
struct RoomCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room", abstract: "Create, list and close rooms of the running server.",
        subcommands: [Create.self, List.self, Close.self, Token.self]
    )

    /// Options that locate the server.
    struct ServerOptions: ParsableArguments {
        @OptionGroup var data: DataOptions

        @Option(help: "URL of the server (default: the server that uses this data directory).")
        var server: String?

        func send(_ method: String, _ path: String, _ body: [UInt8]? = nil) async throws -> JSONObject {
            let (project, _) = try data.project()
            do {
                let client = try OperatorClient(
                    server: server, dataDirectory: try data.configuration().dataDirectory, project: project)
                return try await client.send(method, path, body)
            } catch let error as OperatorClientError {
                throw CommandError(description: error.description)
            }
        }
    }

    /// Creates a room.
    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a room and print its name.",
            discussion: "The room exists until it is closed, unless --temporary is given.")
        @OptionGroup var target: ServerOptions

        @Argument(help: "Name of the room (default: a random one).")
        var name: String?

        @Option(help: "Media mode: routed (through the server) or mesh (from browser to browser).")
        var media: RoomMedia?

        @Option(help: "Maximum number of people.")
        var capacity: Int?

        @Flag(help: "Make people wait in a lobby until a host admits them.")
        var lobby = false

        @Option(help: "Password for joining. Other users of this machine can see it while the command runs.")
        var password: String?

        @Option(help: "Who may share a screen: all or hosts.")
        var share: RoomSharing?

        @Flag(help: "End the room when it is empty.")
        var temporary = false

        func run() async throws {
            var options = RoomChanges()
            (options.media, options.capacity, options.share) = (media, capacity, share)
            (options.lobby, options.password, options.persistent) = (lobby, password, !temporary)
            let request = RoomCreationRequest(name: try name.map(roomName), options: options)
            let answer = try await target.send("POST", "/v1/rooms", request.json)
            print(try description(answer).summary.name)
        }

        private func description(_ answer: JSONObject) throws -> RoomDescription {
            do throws(WireError) { return try RoomDescription(members: answer) } catch { throw unreadable(error) }
        }
    }

    /// Lists the rooms.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List rooms, oldest first.")
        @OptionGroup var target: ServerOptions

        func run() async throws {
            var page = try await page(after: nil)
            if page.rooms.isEmpty { print("No rooms.") }
            while true {
                for room in page.rooms { print(line(room)) }
                guard let next = page.next else { return }
                page = try await self.page(after: next)
            }
        }

        private func page(after cursor: String?) async throws -> RoomList {
            let answer = try await target.send("GET", "/v1/rooms" + (cursor.map { "?after=\($0)" } ?? ""))
            do throws(WireError) { return try RoomList(members: answer) } catch { throw unreadable(error) }
        }

        private func line(_ room: RoomSummary) -> String {
            let options = room.options
            let traits = [
                options.media.rawValue, options.persistent ? "persistent" : nil, options.locked ? "locked" : nil,
                options.lobby ? "lobby" : nil, options.password ? "password" : nil,
            ].compactMap { $0 }
            let waiting = room.waitingCount > 0 ? ", \(room.waitingCount) waiting" : ""
            return "\(room.name)  \(room.peopleCount) of \(options.capacity) people\(waiting)  "
                + traits.joined(separator: ", ")
        }
    }

    /// Ends a room.
    struct Close: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a room for everyone in it.")
        @OptionGroup var target: ServerOptions
        @Argument(help: "Name of the room.") var name: String

        func run() async throws {
            _ = try await target.send("DELETE", "/v1/rooms/\(try roomName(name).pathComponent)")
        }
    }

    /// Creates a token for a room.
    struct Token: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a token that lets one person join a room, and print it.",
            discussion: "The holder needs no password and does not wait in the lobby.")
        @OptionGroup var target: ServerOptions
        @Argument(help: "Name of the room.") var name: String

        @Option(help: "Role: host, cohost or guest.")
        var role: RoomRole = .guest

        @Option(help: "Display name (default: chosen by the holder).")
        var displayName: String = ""

        @Option(help: "How long the token can be used to join, for example 90s, 10m, 24h or 30d.")
        var expires: String = "24h"

        func run() async throws {
            guard let lifetime = Duration(expires), lifetime > .zero,
                lifetime <= .seconds(Limits.roomTokenLifetime)
            else {
                throw ValidationError("--expires must be a number and a unit, for example 24h, and at most 30d.")
            }
            let request = RoomTokenRequest(
                role: role, displayName: displayName, lifetime: Int(lifetime.components.seconds))
            let path = "/v1/rooms/\(try roomName(name).pathComponent)/tokens"
            let answer = try await target.send("POST", path, request.json)
            do throws(WireError) {
                print(try RoomToken(members: answer).token)
            } catch {
                throw unreadable(error)
            }
        }
    }
}

private func roomName(_ text: String) throws -> RoomName {
    guard let name = RoomName(text) else {
        throw ValidationError("The name must have 1 to \(Limits.roomName) characters, without / or invisible ones.")
    }
    return name
}

/// Returns the error for a response that cannot be read. The likely reason is that the server and this program have
/// different versions.
private func unreadable(_ error: WireError) -> CommandError {
    CommandError(
        description: "Cannot read the server's response. Use the confab program of the server's version. "
            + "(\(error.message))")
}

extension RoomMedia: ExpressibleByArgument {}
extension RoomSharing: ExpressibleByArgument {}
extension RoomRole: ExpressibleByArgument {}

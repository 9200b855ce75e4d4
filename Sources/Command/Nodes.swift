import ArgumentParser
import Server
import Wire

/// The `confab node` command. Takes a running server out of service, or puts it back.
struct NodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node", abstract: "Take the running server out of service, or put it back.",
        subcommands: [Drain.self, Serve.self, Show.self]
    )

    /// The server, and which node it should be.
    struct Target: ParsableArguments {
        @OptionGroup var server: RoomCommand.ServerOptions

        @Argument(help: "Name of the node, for example n2. The command fails if the server is another one.")
        var node: String?

        func change(to state: String) async throws {
            let node = node.map { [JSONObject.Member(name: "node", value: .string($0))] } ?? []
            let request = JSONObject([.init(name: "state", value: .string(state))] + node)
            var writer = JSONWriter()
            writer.value(.object(request))
            printState(try await server.send("PATCH", "/v1/node", writer.bytes))
        }
    }

    /// Starts to drain.
    struct Drain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take the server out of service without ending what people do on it.",
            discussion:
                "The load balancer sends nobody else to it. Everyone who is still there after cluster.drainGrace is "
                + "disconnected, and connects again.")
        @OptionGroup var target: Target
        func run() async throws { try await target.change(to: "draining") }
    }

    /// Ends a drain.
    struct Serve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Put the server into service again.")
        @OptionGroup var target: Target
        func run() async throws { try await target.change(to: "serving") }
    }

    /// Prints the state.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print whether the server is in service.")
        @OptionGroup var server: RoomCommand.ServerOptions
        func run() async throws { printState(try await server.send("GET", "/v1/node")) }
    }
}

/// Prints the state of a node, as `n2  draining, 12 connections, disconnects everyone in 29 min`.
private func printState(_ answer: JSONObject) {
    var parts: [String] = []
    if case .string(let state)? = answer["state"] { parts.append(state) }
    if case .integer(let count)? = answer["connections"] { parts.append("\(count) connections") }
    if case .integer(let left)? = answer["disconnectsInMs"] {
        parts.append("disconnects everyone in \((left + 999) / 1000) s")
    }
    var name = ""
    if case .string(let node)? = answer["node"] { name = node + "  " }
    print(name + parts.joined(separator: ", "))
}

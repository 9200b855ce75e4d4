import ArgumentParser
import Server
import Wire

/// The `confab node` command. Lists the nodes of a cluster, and takes a server out of service or puts it back.
struct NodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node", abstract: "List the nodes of a cluster, and take a server out of service or put it back.",
        subcommands: [List.self, Drain.self, Serve.self, Show.self]
    )

    /// The server, and which node is meant.
    struct Target: ParsableArguments {
        /// How long to wait until another node has carried out a request. It looks once a second.
        private static let longestWait = Duration.seconds(10)
        private static let pollInterval = Duration.milliseconds(500)

        @OptionGroup var server: RoomCommand.ServerOptions

        @Argument(
            help: """
                Name of the node, for example n2 (default: the server that is asked). Any node of the cluster can be asked about any \
                other.
                """)
        var node: String?

        func validate() throws {
            guard let node, node.wholeMatch(of: /n[1-9][0-9]{0,4}/) == nil else { return }
            throw ValidationError(
                "\"\(node)\" is not the name of a node. Specify one that confab node list prints, for example n2.")
        }

        func change(to state: String) async throws {
            var writer = JSONWriter()
            writer.value(.object(JSONObject([.init(name: "state", value: .string(state))])))
            guard let node else { return printState(try await server.send("PATCH", "/v1/node", writer.bytes)) }
            let answer = try await server.send("PATCH", "/v1/nodes/\(node)", writer.bytes)
            guard answer["requested"] != nil else { return print(NodeTable.summary(of: answer)) }
            try await wait(for: answer, node, isDraining: state == "draining")
        }

        /// Waits until another node has carried out a request.
        private func wait(for answer: JSONObject, _ node: String, isDraining: Bool) async throws {
            let end = ContinuousClock.now + Self.longestWait
            while ContinuousClock.now < end {
                try await Task.sleep(for: Self.pollInterval)
                switch try await server.table().progress(of: answer, isDraining: isDraining) {
                case .done(let summary): return print(summary)
                case .ended:
                    throw CommandError(
                        description: "\(node) has ended or was restarted meanwhile. A server that starts is in "
                            + "service. Look at the nodes: confab node list")
                case .pending: continue
                }
            }
            throw CommandError(
                description: "\(node) was asked, and has not done it within \(Self.longestWait.components.seconds) s. "
                    + "It will when it reaches PostgreSQL, if its release knows such requests. Look at the nodes "
                    + "(confab node list), or use the command on the machine of \(node).")
        }
    }

    /// Lists the nodes.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the nodes of the cluster.",
            discussion:
                "Each node that lives, and the last life of each that does not, as the server that is asked knows them."
        )
        @OptionGroup var server: RoomCommand.ServerOptions

        @Flag(help: "Print JSON.")
        var json = false

        func run() async throws {
            guard json else { return print(try await server.table().lines.joined(separator: "\n")) }
            var writer = JSONWriter()
            writer.value(.object(try await server.send("GET", "/v1/nodes")))
            print(String(decoding: writer.bytes, as: UTF8.self))
        }
    }

    /// Starts to drain.
    struct Drain: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take a server out of service without ending what people do on it.",
            discussion:
                "The load balancer sends nobody else to it. Everyone who is still there after cluster.drainGrace is "
                + "disconnected, and connects again.")
        @OptionGroup var target: Target
        func run() async throws { try await target.change(to: "draining") }
    }

    /// Ends a drain.
    struct Serve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Put a server into service again.")
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

extension RoomCommand.ServerOptions {
    /// Asks the server for the nodes of its cluster.
    fileprivate func table() async throws -> NodeTable {
        let answer = try await send("GET", "/v1/nodes")
        do throws(WireError) { return try NodeTable(answer) } catch {
            throw CommandError(
                description: "Cannot read the server's response. Use the confab program of the server's version. "
                    + "(\(error.message))")
        }
    }
}

/// Prints the state of a server, as `n2  draining, 12 connections, disconnects everyone in 29 min`.
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

import ArgumentParser
import Signaling
import Wire

// Requests about archives and broadcasts of the main project, as an application sends them.
extension RoomCommand.ServerOptions {
    /// How many items are requested at a time.
    private static let page = 100

    /// Sends a request.
    ///
    /// - Parameter path: the path below that of the main project, such as `/archive`.
    func send(
        ofProject method: String, _ path: String, _ body: [(String, JSONValue)]? = nil
    ) async throws -> JSONObject {
        let (project, _) = try data.project()
        var writer = JSONWriter()
        if let body { writer.value(.object(JSONObject(body.map { .init(name: $0.0, value: $0.1) }))) }
        return try await send(method, "/v2/project/\(project.apiKey)\(path)", body == nil ? nil : writer.bytes)
    }

    /// Calls `body` with each item of a list, newest first.
    ///
    /// - Parameter session: only those of this session; nil for all.
    func forEach(in path: String, of session: SessionID?, _ body: (JSONObject) -> Void) async throws {
        let query = session.map { "&sessionId=\($0.text)" } ?? ""
        var offset = 0
        while true {
            let answer = try await send(ofProject: "GET", "\(path)?count=\(Self.page)&offset=\(offset)\(query)")
            guard case .array(let items)? = answer["items"] else { return }
            for case .object(let item) in items { body(item) }
            guard items.count == Self.page else { return }
            offset += items.count
        }
    }

    /// Prints a line about each item of a list, newest first, or that there is none.
    ///
    /// - Parameters:
    ///   - session: the argument of the command: the ID of the session whose items are listed; nil for all.
    ///   - noun: what the items are, such as "archives".
    func printAll(_ noun: String, in path: String, of session: String?, line: (JSONObject) -> String) async throws {
        var isEmpty = true
        try await forEach(in: path, of: try session.map(SessionID.init(argument:))) { item in
            isEmpty = false
            print(line(item))
        }
        if isEmpty { print("No \(noun).") }
    }
}

extension SessionID {
    /// Parses the argument of a command.
    init(argument text: String) throws {
        guard let id = SessionID(text) else {
            throw ValidationError(
                "\"\(text)\" is not the ID of a session. Specify the ID that confab session create printed.")
        }
        self = id
    }
}

extension JSONObject {
    /// A member of the server's description of an archive or a broadcast, as text; empty if it is missing.
    func text(_ name: String) -> String {
        switch self[name] {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: ""
        }
    }
}

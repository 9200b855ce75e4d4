import Server
import Signaling
import Wire

/// The archives of a load test, one for each session.
actor BenchRecordings {
    private let client: Result<OperatorClient, OperatorClientError>
    private let path: String
    private let sessions: [SessionID]
    private var archives: [String] = []

    init(_ target: BenchSFU.Target, of sessions: [SessionID]) {
        client = Result { () throws(OperatorClientError) in
            try OperatorClient(server: target.server, dataDirectory: "", project: target.project)
        }
        (path, self.sessions) = ("/v2/project/\(target.project.apiKey)/archive", sessions)
    }

    func start() async throws {
        for session in sessions {
            var writer = JSONWriter()
            writer.value(
                .object(
                    JSONObject([
                        .init(name: "sessionId", value: .string(session.text)),
                        .init(name: "outputMode", value: .string("individual")),
                    ])))
            archives.append(try id(try await client.get().send("POST", path, writer.bytes)))
        }
    }

    /// Stops the archives. Returns the number of bytes that were recorded.
    func stop() async throws -> Int64 {
        var bytes: Int64 = 0
        for archive in archives {
            _ = try await client.get().send("POST", "\(path)/\(archive)/stop")
            while true {
                let state = try await client.get().send("GET", "\(path)/\(archive)")
                guard case .string(let status)? = state["status"] else { break }
                if case .integer(let size)? = state["size"], status == "available" {
                    bytes += size
                    break
                }
                guard status == "stopped" || status == "started" || status == "paused" else {
                    throw CommandError(description: "A recording has the status \(status).")
                }
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        guard bytes > 0 else { throw CommandError(description: "Nothing was recorded.") }
        return bytes
    }

    private func id(_ archive: JSONObject) throws -> String {
        guard case .string(let id)? = archive["id"] else {
            throw CommandError(description: "The server did not start the recording.")
        }
        return id
    }
}

import Confab
import Foundation
import Peers
import Synchronization

/// A session description in a Janus message.
struct JanusDescription: Codable, Sendable {
    var type: String
    var sdp: String
}

/// The body of a VideoRoom request, with the members that a load test needs.
struct JanusBody: Encodable, Sendable {
    /// A publisher to subscribe to.
    struct Feed: Encodable, Sendable {
        var feed: Int64
    }

    var request: String
    var room: Int64?
    var ptype: String?
    var display: String?
    var streams: [Feed]?
    // These members are for `create` requests.
    var publishers: Int?
    var bitrate: Int?
    var audiocodec: String?
    var videocodec: String?
}

/// A request to Janus.
private struct JanusRequest: Encodable {
    var janus: String
    var transaction: String
    var plugin: String?
    var body: JanusBody?
    var jsep: JanusDescription?
}

/// A Janus response or event.
struct JanusMessage: Decodable, Sendable {
    /// The session or handle that Janus created.
    struct Made: Decodable, Sendable {
        var id: Int64
    }
    /// An error of Janus itself.
    struct Failure: Decodable, Sendable {
        var code: Int
        var reason: String
    }
    /// The part of a message that a plugin sent.
    struct PluginData: Decodable, Sendable {
        var data: PluginAnswer?
    }
    /// The response of the VideoRoom plugin.
    struct PluginAnswer: Decodable, Sendable {
        var videoroom: String?
        var error: String?
        var id: Int64?
    }

    var janus: String
    var transaction: String?
    var data: Made?
    var error: Failure?
    var plugindata: PluginData?
    var jsep: JanusDescription?
}

/// A session with Janus over its HTTP API (https://janus.conf.meetecho.com/docs/rest.html). All clients of a load test
/// share one session, so that one long poll receives the events of all of them.
final class JanusSession: Sendable {
    private typealias Waiting = CheckedContinuation<JanusMessage, any Error>

    private let http: LoadHTTP
    private let path: String
    private let transactions = Mutex(0)
    private let waiting = Mutex<[String: Waiting]>([:])
    private let poll = Mutex<Task<Void, Never>?>(nil)

    private init(_ http: LoadHTTP, _ path: String) { (self.http, self.path) = (http, path) }

    /// Opens a session on a Janus server.
    ///
    /// - Parameter server: the URL of the API, such as `http://host:8088/janus`.
    static func open(_ server: String) async throws -> JanusSession {
        let place = try HostEndpoint(server)
        let base = URLComponents(string: server)?.path ?? ""
        let outer = JanusSession(LoadHTTP(place: place), base.isEmpty || base == "/" ? "/janus" : base)
        let made = try await outer.say("create")
        guard let id = made.data?.id else { throw RobotError("\(server) is not a Janus server.") }
        let session = JanusSession(outer.http, "\(outer.path)/\(id)")
        session.poll.withLock { $0 = Task { await session.listen() } }
        return session
    }

    func close() async {
        poll.withLock { $0?.cancel() }
        _ = try? await say("destroy")
    }

    /// Creates a handle of the VideoRoom plugin, and returns its id.
    func attach() async throws -> Int64 {
        guard let id = try await say("attach", plugin: "janus.plugin.videoroom").data?.id else {
            throw RobotError("This Janus server has no VideoRoom plugin.")
        }
        return id
    }

    /// Sends a request to the plugin and waits for its response or event.
    func ask(_ handle: Int64, _ body: JanusBody, _ jsep: JanusDescription? = nil) async throws -> JanusMessage {
        let transaction = next()
        let answer = try await withCheckedThrowingContinuation { (asker: Waiting) in
            waiting.withLock { $0[transaction] = asker }
            Task {
                do {
                    let first = try await self.post(
                        JanusRequest(janus: "message", transaction: transaction, body: body, jsep: jsep),
                        to: "\(self.path)/\(handle)")
                    // If Janus sends only an ack, the response arrives later as an event.
                    if first.janus != "ack" { self.take(transaction)?.resume(returning: first) }
                } catch {
                    self.take(transaction)?.resume(throwing: error)
                }
            }
        }
        try Self.check(answer)
        return answer
    }

    private func take(_ transaction: String) -> Waiting? {
        waiting.withLock { $0.removeValue(forKey: transaction) }
    }

    private func next() -> String {
        transactions.withLock {
            $0 += 1
            return "t\($0)"
        }
    }

    private func say(_ verb: String, plugin: String? = nil) async throws -> JanusMessage {
        let answer = try await post(JanusRequest(janus: verb, transaction: next(), plugin: plugin), to: path)
        try Self.check(answer)
        return answer
    }

    private func post(_ request: JanusRequest, to path: String) async throws -> JanusMessage {
        let answer = try await http.post(path, Array(try JSONEncoder().encode(request)))
        return try JSONDecoder().decode(JanusMessage.self, from: Data(answer))
    }

    private static func check(_ message: JanusMessage) throws {
        if let error = message.error { throw RobotError("Janus reported an error: \(error.reason) (\(error.code))") }
        if let error = message.plugindata?.data?.error {
            throw RobotError("The Janus VideoRoom plugin reported an error: \(error)")
        }
    }

    private func listen() async {
        while !Task.isCancelled {
            guard let answer = try? await http.get("\(path)?maxev=20") else { continue }
            let events = (try? JSONDecoder().decode([JanusMessage].self, from: Data(answer))) ?? []
            for event in events {
                guard let transaction = event.transaction else { continue }
                take(transaction)?.resume(returning: event)
            }
        }
    }
}

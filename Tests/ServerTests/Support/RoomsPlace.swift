import Foundation
import Server
import Signaling
import Testing
import Wire

/// An operator of a test server, with its API secret.
struct RoomsPlace: Sendable {
    let place: WHIPPlace
    var project: Project { place.project }

    init(_ server: TestServer) throws { place = try WHIPPlace(server) }

    /// The wall clock's time.
    static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    /// Sends a request with a fresh token.
    func ask(
        _ method: String, _ path: String, _ headers: [String: String] = [:], _ body: String = ""
    ) async throws -> WHIPPlace.Answer {
        var headers = headers
        headers["X-OPENTOK-AUTH"] = project.makeRequestToken(now: Self.now)
        return try await place.ask(method, path, headers, body)
    }

    func ask(_ method: String, _ path: String, _ body: String) async throws -> WHIPPlace.Answer {
        try await ask(method, path, [:], body)
    }
}

extension WHIPPlace.Answer {
    /// The JSON object in the body.
    func object() throws -> JSONObject {
        guard case .object(let object) = try JSONReader.parse(Array(text.utf8)) else { return JSONObject() }
        return object
    }

    func room() throws -> RoomDescription { try RoomDescription(members: object()) }
    func rooms() throws -> RoomList { try RoomList(members: object()) }
    func roomToken() throws -> RoomToken { try RoomToken(members: object()) }
}

extension SocketClient {
    /// Joins a room and returns the answer.
    func enter(_ join: RoomVerb.Join) async throws -> RoomNotice.Joined {
        try await say(.room(.join(join)))
        return try await hear("room.joined") { if case .room(.joined(let joined)) = $0 { joined } else { nil } }
    }
}

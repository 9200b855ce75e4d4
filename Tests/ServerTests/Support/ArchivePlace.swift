import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

/// A server that records, and a routed session in it.
struct ArchivePlace: Sendable {
    let server: TestServer
    let rooms: RoomsPlace
    var session: SessionID { rooms.place.session }
    var path: String { "/v2/project/\(server.project.apiKey)/archive" }

    init(_ server: TestServer) throws { (self.server, rooms) = (server, try RoomsPlace(server)) }

    func ask(_ method: String, _ path: String = "", _ body: String = "") async throws
        -> WHIPPlace.Answer
    {
        let headers = body.isEmpty ? [:] : ["Content-Type": "application/json"]
        return try await rooms.ask(method, self.path + path, headers, body)
    }

    func start(_ members: String = "") async throws -> WHIPPlace.Answer {
        try await ask(
            "POST", "",
            #"{"sessionId":"\#(session.text)","outputMode":"individual","hasAudio":true,"hasVideo":true,"#
                + #""resolution":null,"streamMode":null,"multiArchiveTag":null,"maxBitrate":null,"name":null\#(members)}"#
        )
    }

    /// A client in the session that publishes a stream.
    func publisher() async throws -> (SocketClient, StreamID) {
        let client = try await server.client()
        try await client.say(.session(.join(.init(session: session, token: rooms.place.token()))))
        _ = try await client.hear("session.joined") {
            if case .session(.joined(let joined)) = $0 { joined } else { nil }
        }
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, MediaMids(audio: "0", video: "1"))
        try await client.say(.session(.publish(publish)))
        let stream = try await client.hear("session.published") {
            if case .session(.published(let published)) = $0 { published.stream.id } else { nil }
        }
        return (client, stream)
    }

    func archive(_ id: String) async throws -> JSONObject { try await ask("GET", "/\(id)").object() }

    /// Waits until an archive has this status, and returns it.
    func archive(_ id: String, is status: String) async throws -> JSONObject {
        try await eventually {
            let archive = try await archive(id)
            return archive["status"] == .string(status)
                ? nil : "the status is \(archive["status"] ?? .null)"
        }
        return try await archive(id)
    }

    /// Returns a member of an object that is a string; nil if there is none.
    static func text(_ object: JSONObject, _ name: String) -> String? {
        if case .string(let text)? = object[name] { text } else { nil }
    }
}

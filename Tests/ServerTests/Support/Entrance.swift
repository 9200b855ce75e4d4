import Signaling
import Testing
import Wire

@testable import Server

/// A way to reach an admission point over a real connection.
struct Entrance: Sendable, CustomTestStringConvertible {
    /// Tries to get admitted, and returns the error if it is rejected.
    typealias Knock = @Sendable () async throws -> WireError.Code?

    let name: String
    let door: Gateway.AdmissionPoint
    /// Whether the page's origin is checked, either by the admission point or by the HTTP endpoint before it.
    let checksOrigin: Bool
    /// Performs the steps that precede admission, and returns a function for the remaining steps.
    let approach: @Sendable (TestServer, _ origin: String?) async throws -> Knock

    var testDescription: String { name }

    private init(
        _ name: String, _ door: Gateway.AdmissionPoint, checksOrigin: Bool = true,
        _ approach: @escaping @Sendable (TestServer, _ origin: String?) async throws -> Knock
    ) {
        (self.name, self.door, self.checksOrigin, self.approach) = (name, door, checksOrigin, approach)
    }

    static let all = Gateway.AdmissionPoint.allCases.flatMap(entrances)

    /// The entrances of an admission point. The switch does not compile until a new admission point has an entrance
    /// here.
    private static func entrances(to door: Gateway.AdmissionPoint) -> [Entrance] {
        switch door {
        case .upgrade: [Entrance("a WebSocket", door, upgrade)]
        case .hello: [Entrance("a WebSocket's hello", door, hello)]
        case .welcome: [Entrance("an open WebSocket", door, checksOrigin: false, welcome)]
        case .handshake: [Entrance("Socket.IO", door, handshake)]
        // `OriginAttacks` and `SocketIOAddresses` in the hostile tests open WebSockets.
        case .transport:
            [
                Entrance("a poll of Socket.IO", door) { server, origin in try await transport(server, origin, "GET") },
                Entrance("a post of Socket.IO", door) { server, origin in try await transport(server, origin, "POST") },
            ]
        case .resource:
            [
                Entrance("WHIP", door) { server, origin in
                    try post(server, origin, SampleOffer.obs) { $0.whip }
                },
                // There is no publisher, so an admitted client gets an error about a missing stream.
                Entrance("WHEP", door) { server, origin in
                    try post(server, origin, SampleOffer.player) { $0.whep }
                },
            ]
        case .export: [Entrance("the export of a person", door, export)]
        case .drawing: [Entrance("the drawing of a QR code", door, drawing)]
        case .operation: [Entrance("the list of rooms", door, operation)]
        case .file: [Entrance("a file in a room", door, file)]
        case .viewing: [Entrance("the playlist of a broadcast", door, checksOrigin: false, viewing)]
        }
    }

    // MARK: WebSocket

    private static func open(_ server: TestServer, _ origin: String?) async throws -> SocketClient {
        try await SocketClient.connect(port: server.port, headers: origin.map { [("Origin", $0)] } ?? [])
    }

    /// Sends nothing. An admitted client then gets an error about a missing hello.
    private static func upgrade(_ server: TestServer, _ origin: String?) -> Knock {
        {
            let code = try await refusal(of: open(server, origin))
            return code == .helloTimeout ? nil : code
        }
    }

    private static func hello(_ server: TestServer, _ origin: String?) -> Knock {
        { try await greet(open(server, origin)) }
    }

    private static func welcome(_ server: TestServer, _ origin: String?) async throws -> Knock {
        let client = try await open(server, origin)
        return { try await greet(client) }
    }

    private static func greet(_ client: SocketClient) async throws -> WireError.Code? {
        do {
            try await client.greet()
            try await client.close()
            _ = try await client.hearClose()
            return nil
        } catch {
            return try await refusal(of: client)
        }
    }

    /// Returns the error that a client got before the server closed. A stopping server only sends the close code.
    private static func refusal(of client: SocketClient) async throws -> WireError.Code {
        let closeCode = try await client.hearClose()
        if closeCode == CloseCode.goingAway.rawValue { return .draining }
        return try #require(await client.refusal, "closed with \(closeCode)").code
    }

    // MARK: HTTP

    private static func originHeader(_ origin: String?) -> [String: String] { origin.map { ["Origin": $0] } ?? [:] }

    private static func handshake(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try WHIPPlace(server)
        return {
            let answer = try await place.ask("GET", "/socket.io/1/?t=1", originHeader(origin))
            // The body has the format "code: sentence".
            return answer.status == 200 ? nil : WireError.Code(rawValue: String(answer.text.prefix { $0 != ":" }))
        }
    }

    private static func transport(_ server: TestServer, _ origin: String?, _ method: String) async throws -> Knock {
        let place = try WHIPPlace(server)
        let id = try await place.ask("GET", "/socket.io/1/?t=1").text.prefix { $0 != ":" }
        return {
            let path = "/socket.io/1/xhr-polling/\(id)?t=2"
            let answer = try await place.ask(method, path, originHeader(origin), method == "POST" ? "2::" : "")
            return answer.status == 200 ? nil : WireError.Code(rawValue: String(answer.text.prefix { $0 != ":" }))
        }
    }

    private static func post(
        _ server: TestServer, _ origin: String?, _ offer: String, _ path: (WHIPPlace) -> String
    ) throws -> Knock {
        let place = try WHIPPlace(server)
        let url = path(place)
        return {
            var headers = originHeader(origin)
            headers["Content-Type"] = "application/sdp"
            let answer = try await place.ask("POST", url, token: place.token(), headers, offer)
            return answer.code == "not_found" ? nil : answer.code.map(WireError.Code.init(rawValue:))
        }
    }

    private static func export(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try WHIPPlace(server)
        let secret = place.project.secret(of: IdentityID(high: 1, low: 1))
        return {
            let answer = try await place.ask("GET", "/v1/person", token: secret, originHeader(origin))
            return answer.code.map(WireError.Code.init(rawValue:))
        }
    }

    private static func operation(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try RoomsPlace(server)
        return {
            let answer = try await place.ask("GET", "/v1/rooms", originHeader(origin))
            return answer.code.map(WireError.Code.init(rawValue:))
        }
    }

    private static func file(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try RoomsPlace(server)
        return {
            // There is no such file, so an admitted client gets an error about that.
            let path = "/v1/rooms/Tea/files/\(RoomFileID(high: 1, low: 1))"
            let answer = try await place.ask("GET", path, originHeader(origin))
            return answer.code == "not_found" ? nil : answer.code.map(WireError.Code.init(rawValue:))
        }
    }

    private static func viewing(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try WHIPPlace(server)
        return {
            // There is no such broadcast, so an admitted client gets an error about that.
            let path = "/broadcasts/\(BroadcastID(high: 1, low: 1))/\(BroadcastKey(high: 1, low: 1))/index.m3u8"
            let answer = try await place.ask("GET", path, originHeader(origin))
            return answer.code == "not_found" ? nil : answer.code.map(WireError.Code.init(rawValue:))
        }
    }

    private static func drawing(_ server: TestServer, _ origin: String?) throws -> Knock {
        let place = try WHIPPlace(server)
        return {
            let answer = try await place.ask("POST", "/v1/qr", originHeader(origin), "https://chat.example.org/")
            return answer.code.map(WireError.Code.init(rawValue:))
        }
    }
}

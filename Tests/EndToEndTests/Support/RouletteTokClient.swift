import Confab
import Foundation
import Testing
import Wire

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A client on RouletteTok's original wire: Socket.IO 0.9 over polling (`protocol/roulettetok.md`).
actor RouletteTokClient {
    /// A session and a token for it, the argument of some events.
    struct Admission: Decodable, Sendable {
        var sessionId: String
        var token: String

        var session: SessionID { get throws { try #require(SessionID(sessionId)) } }
    }

    private struct Packet: Decodable {
        var name: String
        var args: [Admission]?
    }

    private let base: String
    private let transport: String
    private var unread: [Packet] = []

    init(_ server: TestServer) async throws {
        base = "http://127.0.0.1:\(server.port)/socket.io/1/"
        let answer = try await Self.ask(base, "GET")
        let id = try #require(answer.split(separator: ":").first, "no handshake, but \(answer)")
        transport = base + "xhr-polling/\(id)"
    }

    private static func ask(_ address: String, _ method: String, _ body: String = "") async throws -> String {
        var request = URLRequest(url: try #require(URL(string: address)))
        request.httpMethod = method
        if !body.isEmpty { request.httpBody = Data(body.utf8) }
        let (data, _) = try await URLSession.shared.data(for: request)
        return String(decoding: data, as: UTF8.self)
    }

    func send(_ event: String) async throws {
        _ = try await Self.ask(transport, "POST", #"5:::{"name":"\#(event)"}"#)
    }

    /// Polls until the server sends this event, and skips others.
    func hear(_ name: String) async throws { _ = try await packet(name) }

    /// Polls until the server sends this event, and returns its argument.
    func hearAdmission(_ name: String) async throws -> Admission {
        try #require(await packet(name).args?.first, "\(name) has no argument")
    }

    private func packet(_ name: String) async throws -> Packet {
        while true {
            while !unread.isEmpty {
                let packet = unread.removeFirst()
                if packet.name == name { return packet }
            }
            for text in Self.packets(try await Self.ask(transport, "GET")) {
                try #require(!text.hasPrefix("7") && !text.hasPrefix("0"), "no \(name), but \(text)")
                guard text.hasPrefix("5:::") else { continue }
                unread.append(try JSONDecoder().decode(Packet.self, from: Data(text.dropFirst(4).utf8)))
            }
        }
    }

    /// Splits a payload into packets, which are ASCII here.
    private static func packets(_ payload: String) -> [String] {
        let parts = payload.components(separatedBy: "\u{FFFD}")
        guard parts.count > 1 else { return [payload] }
        return stride(from: 2, to: parts.count, by: 2).map { parts[$0] }
    }
}

import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    @Suite("Case 27: rooms over HTTP") struct RoomRequestAttacks {
        @Test("rooms are managed only with the API secret")
        func requests() async throws {
            try await Attack(number: 27, name: "managing rooms without the secret").run { server in
                let host = try Person.arrive(port: server.port)
                let join = RoomVerb.join(.init(name: RoomName("Stand-up"), displayName: "A"))
                #expect(try host.verdict(.room(join)) == "room.joined")
                let forging = try await Forging(server)
                let claims = #"{"iss":"\#(forging.apiKey)","ist":"project","exp":\#(forging.now + 60)}"#
                let good = forging.token(claims)
                let wrong = [
                    nil, "", "x", forging.apiKey, forging.secret, "Bearer " + good,
                    forging.token(claims, secret: String(repeating: "0", count: 48)),
                    forging.token(claims, header: #"{"alg":"none"}"#), good + "x", String(good.dropLast()),
                    forging.token(forging.userClaims()), String(repeating: "a", count: 9_000),
                ]
                var tally = Tally()
                for token in wrong {
                    for (method, path) in [
                        ("GET", "/v1/rooms"), ("POST", "/v1/rooms"), ("GET", "/v1/rooms/Stand-up"),
                        ("PATCH", "/v1/rooms/Stand-up"), ("DELETE", "/v1/rooms/Stand-up"),
                        ("POST", "/v1/rooms/Stand-up/tokens"),
                    ] {
                        let headers = token.map { [("X-OPENTOK-AUTH", $0)] } ?? []
                        let answer = try RawSocket(port: server.port).ask(
                            path, method: method, headers: headers, body: Array("{}".utf8))
                        tally.count("\(answer.status)")
                        #expect(answer.status == 401, "\(method) \(path): \(answer)")
                        #expect(!answer.text.contains("Stand-up") && !answer.text.contains(forging.secret))
                    }
                }
                let bodies = [
                    [UInt8](repeating: 0x5B, count: 10_000), [0xFF, 0xFE], Array(#"{"name":"\#u{0}"}"#.utf8),
                    [UInt8](repeating: 0x20, count: 1 << 20), Array(#"{"options":{"capacity":1e999}}"#.utf8),
                ]
                for body in bodies {
                    let answer = try RawSocket(port: server.port).ask(
                        "/v1/rooms", method: "POST", headers: [("X-OPENTOK-AUTH", good)], body: body)
                    tally.count("\(answer.status)")
                    #expect([400, 413].contains(answer.status), "\(answer)")
                }
                let list = try RawSocket(port: server.port).ask("/v1/rooms", headers: [("X-OPENTOK-AUTH", good)])
                #expect(list.status == 200 && list.text.contains("Stand-up"))
                _ = try host.ask(.iceServers)
                #expect(!host.heard.contains { if case .room(.ended) = $0 { true } else { false } })
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }
    }
}

import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    @Suite("Case 7: WHIP and WHEP") struct WHIPAttacks {
        private static let offerType = ("Content-Type", "application/sdp")
        private static let fragmentType = ("Content-Type", "application/trickle-ice-sdpfrag")
        private static let timeout: Duration = .seconds(30)

        private func offer(_ random: inout Random) throws -> String {
            let certificate = try #require(MediaRobot.certificate)
            return MediaOffering(
                [.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)], certificate.fingerprint, using: &random
            ).text
        }

        private func ask(
            _ port: Int, _ method: String, _ path: String, _ token: String, _ headers: [(String, String)] = [],
            _ body: String = ""
        ) throws -> HTTPResponse {
            let own = [("Authorization", "Bearer \(token)")] + headers
            return try RawSocket(port: port).ask(path, method: method, headers: own, body: Array(body.utf8))
        }

        @Test("500 POSTs that disconnect before the response leave nothing behind")
        func broken() async throws {
            let settings = ["CONFAB_WHIP_RESOURCES_PER_TOKEN": "20", "CONFAB_WHIP_CONNECT_TIMEOUT": "1s"]
            try await Attack(number: 7, name: "broken POSTs", settings: settings).run { server in
                let place = try await MediaPlace(server)
                var random = Random(seed: 1)
                let (token, body) = (place.token("publisher"), try offer(&random))
                for index in 0..<500 {
                    let socket = try RawSocket(port: server.port)
                    try socket.send(
                        "POST /whip/\(place.session.text) HTTP/1.1\r\nHost: confab.test\r\n"
                            + "Authorization: Bearer \(token)\r\nContent-Type: application/sdp\r\n"
                            + "Content-Length: \(body.utf8.count)\r\n\r\n" + body.prefix(body.count - index % 2))
                    if index.isMultiple(of: 3) { socket.reset() } else { socket.close() }
                }
                // Some responses went to closed connections. The resources of those requests end because they get no
                // media.
                var statuses = Tally()
                try eventually("the token still has too many resources", within: Self.timeout) {
                    let answer = try? ask(
                        server.port, "POST", "/whip/\(place.session.text)", token, [Self.offerType], body)
                    statuses.count("\(answer?.status ?? 0)")
                    return answer?.status == 201
                }
                return AttackOutcome(sent: "500 broken POSTs", cameBack: statuses.text)
            }
        }

        @Test("invalid bodies and guessed paths are refused")
        func garbage() async throws {
            try await Attack(number: 7, name: "garbage for WHIP").run { server in
                let place = try await MediaPlace(server)
                var random = Random(seed: 2)
                let (token, body) = (place.token("publisher"), try offer(&random))
                let made = try ask(
                    server.port, "POST", "/whip/\(place.session.text)", token, [Self.offerType], body)
                #expect(made.status == 201, "\(made)")
                let location = try #require(made["Location"])
                var statuses = Tally()
                let bytes = Array(body.utf8)
                for index in 0..<150 {
                    var spoilt = bytes
                    for _ in 0...(index % 8) {
                        spoilt[Int(random.next() % UInt64(spoilt.count))] = UInt8(truncatingIfNeeded: random.next())
                    }
                    let headers = [("Authorization", "Bearer \(token)"), Self.offerType]
                    let answer = try RawSocket(port: server.port).ask(
                        "/whip/\(place.session.text)", method: "POST", headers: headers, body: spoilt)
                    #expect([201, 400, 422, 429].contains(answer.status), "\(answer)")
                    statuses.count("\(answer.status)")
                }
                for tag in ["*,*", "\"", "W/\"\"", String(repeating: "\"x\",", count: 2000), "\"\u{1}\""] {
                    let answer = try ask(
                        server.port, "PATCH", location, token, [Self.fragmentType, ("If-Match", tag)],
                        "a=end-of-candidates\r\n")
                    #expect([204, 400, 412].contains(answer.status), "\(tag.prefix(20)): \(answer)")
                    statuses.count("\(answer.status)")
                }
                for index in 0..<100 {
                    let guess = String(location.dropLast(2)) + String(format: "%02x", index)
                    if guess == location { continue }
                    #expect(try ask(server.port, "DELETE", guess, token).status == 404)
                }
                #expect(try ask(server.port, "DELETE", location, token).status == 200)
                return AttackOutcome(sent: "255 requests of garbage", cameBack: statuses.text)
            }
        }
    }
}

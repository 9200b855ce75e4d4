import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    /// Session descriptions in `media.offer`, which the server parses for any visitor.
    @Suite("Cases 5, 18: descriptions") struct MediaDescriptions {
        /// A description that must be refused.
        private struct Bad {
            var name: String
            var sdp: String
        }

        /// A valid offer, as a robot would send it.
        private static func good(_ change: (inout MediaOffering) -> Void = { _ in }) throws -> String {
            guard let certificate = MediaRobot.certificate else { throw TimedOut("OpenSSL makes no certificate") }
            var random = SystemRandomNumberGenerator()
            let sections = MediaSource(using: &random, now: MediaWaiting.now).sections
            var offering = MediaOffering(sections, certificate.fingerprint, using: &random)
            change(&offering)
            return offering.description.text
        }

        @Test("bad descriptions are refused with a message, use no memory, and the protocol's limits hold")
        func badDescriptions() async throws {
            try await MediaAttack(number: 5, name: "bad descriptions").run { place, _ in
                var tally = Tally()
                var slowest = (time: Duration.zero, name: "")
                let bad = try Self.small() + Self.large()
                for chunk in stride(from: 0, to: bad.count, by: 6) {
                    // A few on each connection, because a large one uses the budget of many small ones.
                    let person = try Person.arrive(port: place.port, from: MediaAttack.elsewhere)
                    for one in bad[chunk..<min(chunk + 6, bad.count)] {
                        let began = ContinuousClock.now
                        let seq = try person.say(.media(.offer(.init(side: .send, sdp: one.sdp))))
                        let verdict = try person.hear("answer to \(one.name)") { message -> WireError? in
                            switch message {
                            case .error(let error) where error.re == seq: return error.error
                            case .media(.answer(let answer)) where answer.re == seq: return WireError("answered", "")
                            default: return nil
                            }
                        }
                        let time = ContinuousClock.now - began
                        if time > slowest.time { slowest = (time, one.name) }
                        tally.count(verdict.code.rawValue)
                        #expect(verdict.code == .descriptionInvalid, "\(one.name): \(verdict)")
                        let isSentence = verdict.message.hasSuffix(".") && verdict.message.utf8.count < 300
                        #expect(isSentence, "\(one.name): \(verdict.message)")
                        let isPlain = verdict.message.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7f }
                        #expect(isPlain, "\(one.name): \(verdict.message)")
                        #expect(person.closeCode == nil)
                    }
                }
                let limits = try Self.breakLimits(place)
                return AttackOutcome(
                    sent: "\(bad.count) descriptions, \(limits.total) beyond limits",
                    cameBack: "\(tally.text), \(limits.text); slowest \(slowest.time.text) (\(slowest.name))")
            }
        }

        /// Invalid descriptions, each made by a small change to a valid one.
        private static func small() throws -> [Bad] {
            let good = try good()
            func without(_ line: String) -> String {
                good.components(separatedBy: "\r\n").filter { !$0.hasPrefix(line) }.joined(separator: "\r\n")
            }
            func changed(_ what: String, _ other: String) -> String { good.replacingOccurrences(of: what, with: other) }
            func after(_ line: String) -> String { good + line + "\r\n" }
            let fingerprint = good.components(separatedBy: "\r\n").first { $0.hasPrefix("a=fingerprint") } ?? ""
            let origin = good.components(separatedBy: "\r\n").first { $0.hasPrefix("o=") } ?? ""
            let texts: [(String, String)] = [
                ("nothing", ""), ("a version", "v=0\r\n"), ("no lines", String(repeating: "x", count: 9000)),
                ("no version", without("v=")), ("no origin", without("o=")), ("no sections", without("m=")),
                ("no fingerprint", without("a=fingerprint")), ("no ufrag", without("a=ice-ufrag")),
                ("no password", without("a=ice-pwd")), ("no group", without("a=group")),
                ("no mids", without("a=mid")), ("no rtcp-mux", without("a=rtcp-mux")),
                ("no payload types' names", without("a=rtpmap")),
                ("ICE-lite", changed("s=-", "s=-\r\na=ice-lite")),
                ("passive", changed("a=setup:actpass", "a=setup:passive")),
                ("no such setup", changed("a=setup:actpass", "a=setup:sideways")),
                ("md5", changed(fingerprint, "a=fingerprint:md5 " + (0..<16).map { _ in "AB" }.joined(separator: ":"))),
                ("half a fingerprint", changed(fingerprint, String(fingerprint.prefix(60)))),
                ("a fingerprint of letters", changed(fingerprint, "a=fingerprint:sha-256 XY:ZZ")),
                ("the same mid twice", changed("a=mid:v", "a=mid:a")),
                ("a mid that is too long", changed("a=mid:v", "a=mid:" + String(repeating: "v", count: 300))),
                ("two groups", changed("a=group", "a=group:BUNDLE a\r\na=group")),
                ("a group of nobody", changed("BUNDLE a v", "BUNDLE x y")),
                ("an id for two extensions", changed("a=extmap:1 ", "a=extmap:2 ")),
                ("extension 256", after("a=extmap:256 urn:x")), ("extension -1", after("a=extmap:-1 urn:x")),
                ("a session id without end", changed(origin, "o=- 99999999999999999999999 1 IN IP4 0.0.0.0")),
                ("a negative version", changed(origin, "o=- 1 -1 IN IP4 0.0.0.0")),
                ("port 65536", changed("m=audio 9 ", "m=audio 65536 ")),
                ("payload type 128", changed("m=video 9 UDP/TLS/RTP/SAVPF 96", "m=video 9 UDP/TLS/RTP/SAVPF 128 96")),
                ("an SSRC of 33 bits", after("a=ssrc:4294967296 cname:x")),
                ("a clock without end", after("a=rtpmap:96 VP8/99999999999999999999")),
                ("a short password", changed("a=ice-pwd:", "a=ice-pwd:x\r\na=x:")),
                ("a ufrag of controls", changed("a=ice-ufrag:", "a=ice-ufrag:\u{1}\u{2}\u{3}\u{4}\r\na=x:")),
                ("a NUL", changed("s=-", "s=\u{0}")), ("a NUL in a name", changed("a=mid:v", "a=mid:\u{0}v")),
                ("a lone CR", changed("s=-", "s=\rm=audio")),
                ("a long line", after("a=" + String(repeating: "x", count: 8193))),
                ("the same SSRC in two sections", Self.sharing(good)),
                ("only a data channel", Self.dataChannel(good)),
            ]
            return texts.map { Bad(name: $0.0, sdp: $0.1) }
        }

        /// Returns the description with the video's SSRC announced for the audio too.
        private static func sharing(_ good: String) -> String {
            let lines = good.components(separatedBy: "\r\n")
            guard let ssrc = lines.last(where: { $0.hasPrefix("a=ssrc:") }),
                let audio = lines.firstIndex(where: { $0.hasPrefix("m=video") })
            else { return "" }
            return (lines[..<audio] + [ssrc] + lines[audio...]).joined(separator: "\r\n")
        }

        private static func dataChannel(_ good: String) -> String {
            let lines = good.components(separatedBy: "\r\n")
            let media = lines.firstIndex { $0.hasPrefix("m=") } ?? 0
            return
                (lines[..<media] + [
                    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "a=mid:a", "a=sctp-port:5000", "",
                ]).joined(separator: "\r\n")
        }

        /// Descriptions that repeat one element as often as a message can hold. A line feed takes two bytes in JSON.
        private static func large() throws -> [Bad] {
            let room = 256 * 1024 - 200
            func full(_ name: String, _ head: String, _ line: (Int) -> String) -> Bad {
                var text = head
                var (size, index) = (head.utf8.count + 100, 0)
                while true {
                    let next = line(index)
                    size += next.utf8.count + 3
                    guard size < room else { return Bad(name: "\(index) \(name)", sdp: text) }
                    text += next + "\n"
                    index += 1
                }
            }
            let good = try good().replacingOccurrences(of: "\r\n", with: "\n")
            return [
                full("m-lines", "v=0\no=- 1 1 IN IP4 0.0.0.0\n") { _ in "m=audio 9 RTP/AVPF 0" },
                full("m-lines with mids", good) { "m=audio 9 UDP/TLS/RTP/SAVPF 111\na=mid:\($0)" },
                full("candidates", good) { "a=candidate:\($0) 1 udp 1 192.168.1.1 \($0 & 0xffff) typ host" },
                full("session candidates", "v=0\no=- 1 1 IN IP4 0.0.0.0\n") {
                    "a=candidate:\($0) 1 udp 1 10.0.0.1 9 typ host"
                },
                full("sources", good) { "a=ssrc:\($0)" },
                full("source groups", good) { "a=ssrc-group:FID \($0) \($0 + 1)" },
                full("extensions", good) { "a=extmap:\($0 % 255 + 1) urn:\($0)" },
                full("fingerprints", good) { _ in
                    "a=fingerprint:sha-256 " + (0..<32).map { _ in "AB" }.joined(separator: ":")
                },
                full("rids", good) { "a=rid:\($0) send" }, full("msids", good) { "a=msid:\($0) x" },
                full("groups", "v=0\no=- 1 1 IN IP4 0.0.0.0\n") { _ in "a=group:BUNDLE 1 2" },
                // A description whose only fault is at the very end.
                full("lines of no meaning, and no sections", "v=0\no=- 1 1 IN IP4 0.0.0.0\n") { _ in "a=x" },
            ]
        }

        /// Offers that the gateway refuses without parsing the description.
        private static func breakLimits(_ place: MediaPlace) throws -> Tally {
            var tally = Tally()
            func line() throws -> RawWebSocket {
                try RawWebSocket.openWelcomed(port: place.port, from: MediaAttack.elsewhere)
            }
            func offer(_ sdp: [UInt8]) -> [UInt8] {
                Array(#"{"type":"media.offer","seq":1,"side":"send","sdp":""#.utf8) + sdp + Array("\"}".utf8)
            }
            let good = Array(try Self.good().replacingOccurrences(of: "\r\n", with: "\\n").utf8)
            let cases: [(String, [UInt8], Set<UInt16>)] = [
                ("more than 256 KiB", offer([UInt8](repeating: 0x78, count: 256 * 1024)), [1009]),
                (
                    "64 KiB of media.close",
                    Array(#"{"type":"media.close","seq":1,"side":"send","x":""#.utf8)
                        + [UInt8](repeating: 0x78, count: 70_000) + Array("\"}".utf8), [4413]
                ),
                ("no UTF-8", offer(good + [0xff, 0xfe]), [1007]),
                ("half a character", offer(good + [0xe2, 0x82]), [1007]),
            ]
            for (name, bytes, codes) in cases {
                let socket = try line()
                socket.socket.sendWhatGoes(RawFrame.text(bytes).bytes)
                let code = try socket.readClose()
                tally.count("\(code)")
                #expect(codes.contains(code), "\(name): \(code)")
            }
            // An offer with a raw NUL, which JSON does not allow, and an offer for a side that does not exist.
            for bytes in [
                offer([0x76, 0, 0x3d]), offer(good).replacing(Array("send".utf8), with: Array("both".utf8)),
            ] {
                let socket = try line()
                try socket.send(text: bytes)
                let answer = try socket.readText() ?? ""
                #expect(answer.contains(#""code":"malformed""#), "\(answer)")
                tally.count("malformed")
            }
            return tally
        }

        @Test("floods of valid offers are throttled, then closed with 4429; other calls continue")
        func storms() async throws {
            try await MediaAttack(number: 5, name: "storms of good offers").run { place, _ in
                // Offer a new connection each time, and ICE restarts of one connection.
                let kinds = [try (0..<4).map { _ in try Self.good() }, try Self.restarts()]
                var tally = Tally()
                for texts in kinds {
                    let offers = texts.map { ClientMessage.media(.offer(.init(side: .send, sdp: $0))) }
                    let line = try Person.arrive(port: place.port, from: MediaAttack.elsewhere).line
                    // Enough offers to exhaust the budget despite the refill, even on a busy machine.
                    let frames = Flooder.frames(offers, numbers: 1..<4000)
                    for start in stride(from: 0, to: frames.count, by: 40) where line.closeCode == nil {
                        line.socket.sendWhatGoes(Array(frames[start..<min(start + 40, frames.count)].joined()))
                        while line.socket.isReadable(until: .now), line.closeCode == nil {
                            try Self.count(line, &tally)
                        }
                    }
                    while line.closeCode == nil { try Self.count(line, &tally) }
                    tally.count("\(line.closeCode ?? 0)")
                }
                #expect(tally["4429"] == 2 && tally["rate_limited"] > 0 && tally["other"] == 0, "\(tally.text)")
                let slowest = try Self.sendLarge(place)
                return AttackOutcome(
                    sent: "storms of good offers, 8 of 230 KiB",
                    cameBack: "\(tally.text); the slowest large one \(slowest.text)")
            }
        }

        /// Counts the next answer to a flood.
        private static func count(_ line: RawWebSocket, _ tally: inout Tally) throws {
            guard let frame = try line.read(within: .seconds(20)), frame.opcode == 1 else { return }
            // Check only the beginning, because searching long messages would take too much of the test's time.
            if frame.payload.count > 1000 { return tally.count("answered") }
            tally.count(frame.text.contains(#""code":"rate_limited""#) ? "rate_limited" : "other")
        }

        /// Returns two offers of one connection (RFC 8829 §5.2.1) with different ufrags.
        private static func restarts() throws -> [String] {
            let one = try good()
            let lines = one.components(separatedBy: "\r\n")
            let other = lines.map { $0.hasPrefix("a=ice-ufrag:") ? "a=ice-ufrag:another" : $0 }
            return [one, other.joined(separator: "\r\n")]
        }

        /// Sends as many fully parsed offers as a connection may send at once, and returns the longest time until an
        /// answer. An offer costs one unit of the budget, plus one per 4 KiB.
        private static func sendLarge(_ place: MediaPlace) throws -> Duration {
            let padding = String(repeating: "a=ssrc:1 cname:a-name\\r\\n", count: 9_000)
            let good = try good().replacingOccurrences(of: "\r\n", with: "\\r\\n")
            let body = Array((good + padding + "\"}").utf8)
            let line = try RawWebSocket.openWelcomed(port: place.port, from: MediaAttack.elsewhere)
            var slowest = Duration.zero
            for number in 1...8 {
                let head = Array(#"{"type":"media.offer","seq":\#(number),"side":"receive","sdp":""#.utf8)
                var frame = RawFrame(opcode: 1, claimedLength: UInt64(head.count + body.count))
                frame.mask = [0, 0, 0, 0]
                let began = ContinuousClock.now
                try line.socket.send(frame.bytes + head)
                try line.socket.send(body)
                let answer = try line.readText(within: .seconds(30)) ?? "closed"
                slowest = max(slowest, ContinuousClock.now - began)
                #expect(
                    answer.contains("media.answer") || answer.contains("description_invalid"), "\(answer.prefix(300))")
            }
            return slowest
        }

        @Test("the server neither connects to an offer's addresses nor resolves its names")
        func candidates() async throws {
            try await MediaAttack(number: 18, name: "candidates of others").run { place, _ in
                let udp = try MediaDatagrams()
                let listener = try MediaListener()
                let hosts: [(String, String)] = [
                    ("udp", "127.0.0.1 \(udp.port) typ host"),
                    ("tcp", "127.0.0.1 \(listener.port) typ host tcptype passive"),
                    ("udp", "::ffff:127.0.0.1 \(udp.port) typ srflx raddr 0.0.0.0 rport 0"),
                    ("udp", "169.254.169.254 80 typ host"), ("udp", "0.0.0.0 \(udp.port) typ host"),
                    ("udp", "255.255.255.255 \(udp.port) typ relay raddr 0.0.0.0 rport 0"),
                    ("udp", "1b2c3d4e-0000-4000-8000-123456789abc.local 5000 typ host"),
                    ("udp", "localhost \(udp.port) typ host"),
                    ("tcp", "localhost \(listener.port) typ host tcptype passive"),
                ]
                let lines = hosts.enumerated().map { index, host in
                    "a=candidate:\(index) 1 \(host.0) 2130706431 \(host.1)\r\n"
                }.joined()
                // A robot offers these candidates. The server must not contact any of them.
                let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
                try robot.open(.receive, MediaOffering.slots(1)) { $0.edit = { $0 + lines } }
                try robot.connect()
                try robot.run(for: .seconds(1))
                let came = udp.receiveAll(within: .zero)
                #expect(came.isEmpty, "\(came.count) datagrams came")
                let calls = listener.accepted
                #expect(calls == 0, "\(calls) connections came")
                return AttackOutcome(
                    sent: "an offer with \(hosts.count) candidates",
                    cameBack: "\(came.count) datagrams, \(calls) connections there")
            }
        }
    }
}

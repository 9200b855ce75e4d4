import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    /// Attacks on the media port with datagrams that need no credentials.
    @Suite("Cases 3, 4, 18: connection checks") struct MediaChecks {
        private static let ports = 20

        /// Sends `count` datagrams from several ports and collects the replies.
        ///
        /// - Parameter pace: datagrams every five milliseconds; 100 send twenty thousand per second.
        private static func flood(
            _ count: Int, pace: Int = 100, to server: TransportAddress, _ datagram: (Int) -> [UInt8]
        ) throws -> (sent: Int, answers: [[UInt8]]) {
            let sockets = try (0..<ports).map { _ in try MediaDatagrams(from: MediaAttack.elsewhere) }
            var answers: [[UInt8]] = []
            var due = ContinuousClock.now
            for index in 0..<count {
                sockets[index % sockets.count].send(datagram(index), to: server)
                guard index % pace == pace - 1 else { continue }
                due = max(due + .milliseconds(5), .now - .milliseconds(20))
                answers += sockets[index / pace % sockets.count].receiveAll(within: due - .now)
            }
            for socket in sockets { answers += socket.receiveAll(within: .milliseconds(10)) }
            return (sockets.reduce(0) { $0 + $1.sent.bytes }, answers)
        }

        /// A client that has negotiated with the server and knows its answer.
        private static func insider(_ place: MediaPlace) throws -> Insider {
            let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
            let (offering, answer) = try robot.offer(.receive, MediaOffering.slots(1))
            guard let server = answer.candidates.first?.address else { throw TimedOut("no candidate") }
            return Insider(robot: robot, answer: answer, ufrag: offering.credentials.ufrag, server: server)
        }

        private struct Insider {
            /// Retained, because the client's connection would end with the client.
            var robot: MediaRobot
            var answer: MediaOffering.Answer
            var ufrag: String
            var server: TransportAddress

            var check: MediaCheck { MediaCheck(to: answer, from: ufrag) }
        }

        @Test("without a password there is no reply; with one the reply is no longer than the request")
        func amplification() async throws {
            try await MediaAttack(number: 3, name: "STUN without a password").run { place, _ in
                let insider = try Self.insider(place)
                var kinds: [[UInt8]] = []
                func add(_ change: (inout MediaCheck) -> Void) {
                    var check = MediaCheck()
                    change(&check)
                    kinds.append(check.bytes)
                }
                add { $0.hasFingerprint = false }
                add { _ in }
                // RFC 3489 had no cookie: these four bytes were random.
                add { ($0.hasFingerprint, $0.start) = (false, [9, 8, 7, 6]) }
                add { $0.add(MediaCheck.username, Array("abcdefgh:ijkl".utf8)) }
                add { check in
                    check.add(MediaCheck.username, Array("abcdefgh:ijkl".utf8))
                    check.key = "a password that is none of it"
                }
                add { check in
                    check = insider.check
                    check.key = "a password that is none of it"
                }
                add { check in
                    check = insider.check
                    check.key = nil
                }
                add { check in
                    check = MediaCheck(to: insider.answer, from: insider.ufrag, nominates: true)
                    check.key = insider.ufrag
                }
                // An indication, a response, and requests of TURN clients (RFC 8656 §18).
                for type: UInt16 in [0x0011, 0x0101, 0x0111, 0x0003, 0x0004, 0x0016] {
                    add { $0.type = type }
                }
                let (sent, answers) = try Self.flood(10_000, to: insider.server) { kinds[$0 % kinds.count] }
                let returned = answers.reduce(0) { $0 + $1.count }
                #expect(answers.isEmpty, "\(answers.count) answers, \(returned) bytes")
                let worst = try Self.worstRatio(insider)
                #expect(worst <= 1, "× \(worst) with a password")
                return AttackOutcome(
                    sent: "10,000 requests of \(kinds.count) kinds, \(sent) bytes",
                    cameBack: "\(returned) bytes; with a password × \(String(format: "%.2f", worst))")
            }
        }

        /// The largest ratio of reply bytes to request bytes.
        private static func worstRatio(_ insider: Insider) throws -> Double {
            var worst = 0.0
            let socket = try MediaDatagrams(from: MediaAttack.elsewhere)
            for unknown in [0, 1, 8] {
                var check = MediaCheck()
                check.add(MediaCheck.username, Array("\(insider.answer.credentials.ufrag):\(insider.ufrag)".utf8))
                for index in 0..<unknown { check.add(0x7f00 + UInt16(index)) }
                (check.key, check.hasFingerprint) = (insider.answer.credentials.password, false)
                let request = check.bytes
                socket.send(request, to: insider.server)
                guard let answer = socket.next() else { throw TimedOut("no answer to the right password") }
                #expect(MediaCheck.code(of: answer) == (unknown == 0 ? 0 : 420))
                worst = max(worst, Double(answer.count) / Double(request.count))
            }
            return worst
        }

        @Test("malformed checks get no reply, or 420 if they have a password")
        func brokenChecks() async throws {
            let seed = UInt64.random(in: .min ... .max)
            print("seed \(seed)")
            try await MediaAttack(number: 4, name: "broken STUN").run { place, _ in
                let insider = try Self.insider(place)
                var random = Random(seed: seed)
                let broken = Self.broken(insider)
                let good = insider.check.bytes
                let (sent, answers) = try Self.flood(12_000, to: insider.server) { index in
                    if index % 4 == 0 { return broken[index / 4 % broken.count] }
                    var bytes = good
                    switch index % 4 {
                    case 1:
                        bytes[Int.random(in: bytes.indices, using: &random)] ^=
                            1 << UInt8.random(in: 0..<8, using: &random)
                    case 2: bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
                    default:
                        let count = Int.random(in: 1...200, using: &random)
                        bytes = [0, 1] + (0..<count).map { _ in .random(in: .min ... .max, using: &random) }
                    }
                    return bytes
                }
                var tally = Tally()
                for answer in answers { tally.count(MediaCheck.code(of: answer).map { "\($0)" } ?? "no STUN") }
                // FINGERPRINT with a changed bit in its type is an optional unknown attribute, so the check is valid.
                #expect(tally["420"] + tally["487"] + tally["0"] == tally.total, "\(tally.text)")
                #expect(tally["0"] < 200, "\(tally.text)")
                return AttackOutcome(
                    sent: "12,000 broken checks, \(sent) bytes", cameBack: "silence, \(tally.text)")
            }
        }

        private static func broken(_ insider: Insider) -> [[UInt8]] {
            var all: [[UInt8]] = []
            func add(_ change: (inout MediaCheck) -> Void) {
                var check = insider.check
                change(&check)
                all.append(check.bytes)
            }
            for length: UInt16 in [0, 1, 3, 4, 0xfffc, 0xffff] { add { $0.claimedLength = length } }
            for length: UInt16 in [0, 0x7fff, 0xffff] {
                add { $0.add(MediaCheck.username, Array("x:y".utf8), claimedLength: length) }
                add { $0.attributes[0].claimedLength = length }
            }
            // Types below 0x8000 are comprehension-required (RFC 8489 §14).
            for type: UInt16 in [0x0000, 0x0001, 0x0019, 0x7fff] { add { $0.add(type) } }
            add { check in for _ in 0..<300 { check.add(0x7001) } }
            add { check in for _ in 0..<31 { check.add(0x7001) } }
            add { $0.add(MediaCheck.controlled, [0, 0, 0, 0, 0, 0, 0, 1]) }
            add { $0.add(MediaCheck.messageIntegrity, [UInt8](repeating: 7, count: 20)) }
            add { $0.add(MediaCheck.fingerprintType, [1, 2, 3, 4]) }
            add { $0.attributes[0].value = [] }
            add { $0.attributes[0].value = Array(":".utf8) }
            add { $0.attributes[0].value = [UInt8](repeating: 0xff, count: 513) }
            add { $0.attributes[0].value = Array((insider.answer.credentials.ufrag + ":\u{0}").utf8) }
            add { $0.attributes[1].value = [] }
            add { $0.attributes[2].value = [1] }
            add { $0.add(0x0020, [0, 9, 0, 0]) }
            all.append([0])
            all.append([0, 1])
            all.append([UInt8](repeating: 0, count: 20))
            // Longer than the server's maximum datagram.
            all.append([0, 1, 0xff, 0x00] + MediaCheck.cookie + [UInt8](repeating: 0, count: 60_000))
            return all
        }

        @Test("a hundred thousand guessed ICE usernames find no one")
        func guessedNames() async throws {
            let seed = UInt64.random(in: .min ... .max)
            print("seed \(seed)")
            try await MediaAttack(number: 18, name: "guessed username fragments").run { place, _ in
                let insider = try Self.insider(place)
                var random = Random(seed: seed)
                var check = MediaCheck()
                check.add(MediaCheck.username, Array("NAMELESS:\(insider.ufrag)".utf8))
                check.hasFingerprint = false
                // Only the username changes, at a fixed offset, and nothing is signed. Encoding every datagram would
                // take too long.
                var bytes = check.bytes
                let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
                let known = Array(insider.answer.credentials.ufrag.utf8)
                var noise = known
                let (sent, answers) = try Self.flood(100_000, pace: 400, to: insider.server) { index in
                    // Half of them are not random: they differ from a valid username in two characters.
                    if index % 4096 == 0 {
                        for place in 0..<8 { noise[place] = alphabet[Int(random.next() & 63)] }
                    }
                    let name = index % 2 == 0 ? known : noise
                    for place in 0..<6 { bytes[24 + place] = name[place] }
                    bytes[30] = alphabet[index & 63]
                    bytes[31] = alphabet[index >> 6 & 63]
                    return bytes
                }
                #expect(answers.isEmpty, "\(answers.count) answers")
                return AttackOutcome(
                    sent: "100,000 names, \(sent) bytes", cameBack: "\(answers.count) answers")
            }
        }
    }
}

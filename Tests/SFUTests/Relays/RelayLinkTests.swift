import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("The connection of a relay")
struct RelayLinkTests {
    private static func at(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    /// Returns a link whose first attempt has succeeded at 100 ms.
    private func connected() -> RelayLink {
        var link = RelayLink(now: Self.at(0))
        #expect(link.handle(.credentials(attempt: 1), now: Self.at(50)) == [.connect])
        #expect(link.handle(.connected, now: Self.at(100)) == [.started])
        return link
    }

    @Test("is up once both ends have each other's credentials and the transport is connected")
    func connecting() {
        var link = RelayLink(now: Self.at(0))
        #expect(!link.isUp && !link.hasConnection)
        // The transport cannot be connected before the other end's credentials are known.
        #expect(link.handle(.connected, now: Self.at(10)) == [])
        #expect(link.handle(.credentials(attempt: 1), now: Self.at(50)) == [.connect])
        #expect(link.handle(.credentials(attempt: 1), now: Self.at(60)) == [])
        #expect(!link.isUp)
        #expect(link.handle(.connected, now: Self.at(100)) == [.started])
        #expect(link.isUp && link.hasConnection)
    }

    @Test("begins again if the other end does not answer, or if the transport does not connect")
    func connectTimeout() {
        var link = RelayLink(now: Self.at(0))
        #expect(link.handleTimeout(now: Self.at(4999)) == [])
        #expect(link.handleTimeout(now: Self.at(5000)) == [.open(attempt: 2)])
        #expect(link.handle(.credentials(attempt: 2), now: Self.at(6000)) == [.connect])
        #expect(link.handleTimeout(now: Self.at(10_999)) == [])
        #expect(link.handleTimeout(now: Self.at(11_000)) == [.open(attempt: 3)])
    }

    @Test("follows the other end to a later attempt, and ignores an earlier one")
    func attempts() {
        var link = connected()
        #expect(link.handle(.credentials(attempt: 4), now: Self.at(200)) == [.ended, .open(attempt: 4), .connect])
        #expect(link.handle(.credentials(attempt: 3), now: Self.at(210)) == [])
        #expect(link.handle(.credentials(attempt: 4), now: Self.at(220)) == [])
        #expect(link.attempt == 4 && link.state == .connecting(since: Self.at(200)))
    }

    @Test("pauses after 1.5 s of silence, and resumes with the next packet")
    func silence() {
        var link = connected()
        #expect(link.heard(now: Self.at(1000)) == false)
        #expect(link.handleTimeout(now: Self.at(2499)) == [])
        #expect(link.handleTimeout(now: Self.at(2500)) == [.paused])
        #expect(!link.isUp && link.hasConnection)
        #expect(link.handleTimeout(now: Self.at(3000)) == [])
        #expect(link.heard(now: Self.at(3100)) == true)
        #expect(link.isUp && !link.heard(now: Self.at(3200)))
    }

    @Test("begins again after 6 s of silence, counted from the last packet")
    func end() {
        var link = connected()
        #expect(link.handleTimeout(now: Self.at(1600)) == [.paused])
        #expect(link.handleTimeout(now: Self.at(6099)) == [])
        #expect(link.handleTimeout(now: Self.at(6100)) == [.ended, .open(attempt: 2)])
        // Packets of the previous connection cannot resume it.
        #expect(!link.heard(now: Self.at(6200)) && !link.hasConnection)
    }

    @Test("does nothing after it was closed")
    func closing() {
        var link = connected()
        #expect(link.handle(.close, now: Self.at(200)) == [.ended, .closed])
        #expect(link.handle(.credentials(attempt: 9), now: Self.at(300)) == [])
        #expect(link.handle(.close, now: Self.at(300)) == [] && link.handleTimeout(now: Self.at(99_000)) == [])
        #expect(link.heard(now: Self.at(300)) == false)
        var opening = RelayLink(now: Self.at(0))
        #expect(opening.handle(.close, now: Self.at(1)) == [.closed])
    }

    @Test(
        "two ends agree on an attempt, whichever begins again, and however late letters arrive",
        arguments: 1...200 as ClosedRange<UInt64>)
    func agreement(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var links = [RelayLink(now: Self.at(0)), RelayLink(now: Self.at(0))]
        /// The attempt of the transport that each end has, and the other end's credentials in it.
        var transports: [(attempt: UInt32, isPaired: Bool)] = [(1, false), (1, false)]
        var letters: [(to: Int, attempt: UInt32, at: Int64)] = [(1, 1, 30), (0, 1, 40)]
        func carryOut(_ effects: [RelayLink.Effect], at now: Int64, of end: Int) {
            for effect in effects {
                switch effect {
                case .open(let attempt):
                    transports[end] = (attempt, false)
                    letters.append((1 - end, attempt, now + Int64.random(in: 1...2000, using: &random)))
                case .connect: transports[end].isPaired = true
                case .started, .paused, .ended, .closed: break
                }
            }
        }
        for now in stride(from: Int64(0), to: 60_000, by: 20) {
            for letter in letters.filter({ $0.at <= now }) {
                let effects = links[letter.to].handle(.credentials(attempt: letter.attempt), now: Self.at(now))
                carryOut(effects, at: now, of: letter.to)
            }
            letters.removeAll { $0.at <= now }
            let isConnected = transports.allSatisfy { $0.isPaired } && transports[0].attempt == transports[1].attempt
            for end in 0..<2 {
                if isConnected { carryOut(links[end].handle(.connected, now: Self.at(now)), at: now, of: end) }
                // The network is down for a while.
                if !(20_000..<30_000).contains(now) { _ = links[end].heard(now: Self.at(now)) }
                carryOut(links[end].handleTimeout(now: Self.at(now)), at: now, of: end)
            }
        }
        #expect(links.allSatisfy(\.isUp) && links[0].attempt == links[1].attempt, "seed \(seed): \(links)")
    }
}

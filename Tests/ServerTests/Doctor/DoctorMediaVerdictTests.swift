import Testing
import Wire

@testable import Server

/// What `confab doctor` concludes from answers and silence of the media ports.
@Suite("What the doctor concludes about media") struct DoctorMediaVerdictTests {
    private static let server = "8.8.8.8"

    /// - Parameter paths: the address, the transport, whether it is announced, and what happened.
    private func verdicts(
        _ paths: [(String, isTCP: Bool, isAnnounced: Bool, ExchangeOutcome)], _ place: DoctorPlace = .outside
    ) throws -> [DoctorFinding] {
        let observed = try paths.map { address, isTCP, isAnnounced, outcome in
            MediaPathObservation(
                address: try #require(IPAddress(address)), port: 40000, isTCP: isTCP, isAnnounced: isAnnounced,
                outcome: outcome)
        }
        let seen = SocketObservation(upgrade: .opened, greeting: .welcome, routesMedia: true, paths: observed)
        return DoctorVerdicts.media(seen, site: [try #require(IPAddress(Self.server))], place)
    }

    private func announced(_ udp: ExchangeOutcome, _ tcp: ExchangeOutcome) throws -> [DoctorFinding] {
        try verdicts([(Self.server, false, true, udp), (Self.server, true, true, tcp)])
    }

    private func outcomes(_ findings: [DoctorFinding]) -> [String] {
        findings.map { "\($0.check.rawValue) \($0.outcome.rawValue)" }
    }

    @Test("ports that are open pass")
    func open() throws {
        #expect(
            try outcomes(announced(.answered, .answered)) == [
                "media_address passed", "media_udp passed", "media_tcp passed",
            ])
    }

    @Test("blocked UDP is found, with the port to open")
    func blockedUDP() throws {
        let findings = try announced(.silent, .answered)
        #expect(outcomes(findings) == ["media_address passed", "media_udp failed", "media_tcp passed"])
        #expect(findings[1].seen.contains("UDP is blocked") && findings[1].fix?.contains("UDP port 40000") == true)
    }

    @Test("blocked TCP is a warning, because most people have UDP")
    func blockedTCP() throws {
        let findings = try announced(.answered, .silent)
        #expect(outcomes(findings) == ["media_address passed", "media_udp passed", "media_tcp warning"])
        #expect(findings[2].fix?.contains("TCP port 40000") == true)
    }

    @Test("blocked UDP and TCP are found, and a closed port is named")
    func blockedBoth() throws {
        let findings = try announced(.silent, .silent)
        #expect(outcomes(findings) == ["media_address skipped", "media_udp failed", "media_tcp failed"])
        #expect(findings[1].seen.contains("neither over UDP nor over TCP"))
        #expect(try announced(.refused, .refused)[1].seen.contains("the port is closed"))
        #expect(try announced(.unreachable("no route"), .silent)[1].seen.contains("no route"))
    }

    @Test("a wrong address is found if the server answers at another one, and the fix names it")
    func wrongAddress() throws {
        let findings = try verdicts([
            ("10.0.0.5", false, true, .silent), ("10.0.0.5", true, true, .silent),
            (Self.server, false, false, .answered), (Self.server, true, false, .silent),
        ])
        #expect(outcomes(findings) == ["media_address failed"])
        #expect(findings[0].seen.contains("10.0.0.5") && findings[0].fix?.contains("media.address to 8.8.8.8") == true)
    }

    @Test("a private address is found even if no other one answers")
    func privateAddress() throws {
        let findings = try verdicts([("10.0.0.5", false, true, .silent), ("10.0.0.5", true, true, .refused)])
        #expect(outcomes(findings) == ["media_address failed"])
        #expect(findings[0].fix?.contains("media.address to 8.8.8.8") == true)
    }

    @Test("from inside, a public address behind NAT need not answer")
    func behindNAT() throws {
        let paths: [(String, isTCP: Bool, isAnnounced: Bool, ExchangeOutcome)] = [
            (Self.server, false, true, .silent), (Self.server, true, true, .silent),
            ("10.0.0.5", false, false, .answered),
        ]
        let findings = try verdicts(paths, .inside)
        #expect(outcomes(findings) == ["media_address warning"])
        #expect(findings[0].fix?.contains("confab doctor --url") == true)
        #expect(try outcomes(verdicts(paths, .outside)) == ["media_address failed"])
    }

    @Test("one address of two is enough")
    func oneOfTwo() throws {
        let findings = try verdicts([
            ("2001:db8::1", false, true, .unreachable("no IPv6")), ("2001:db8::1", true, true, .unreachable("no IPv6")),
            (Self.server, false, true, .answered), (Self.server, true, true, .answered),
        ])
        #expect(findings.allSatisfy { $0.outcome == .passed })
    }

    @Test("without a WebSocket, media or an answer, the reason is given")
    func reasons() {
        func verdict(_ seen: SocketObservation) -> DoctorFinding? {
            DoctorVerdicts.media(seen, site: [], .outside).first
        }
        #expect(verdict(SocketObservation())?.outcome == .skipped)
        #expect(verdict(SocketObservation(greeting: .welcome))?.seen.contains("does not route media") == true)
        let error = SocketObservation(greeting: .welcome, routesMedia: true, offerError: "The server is full.")
        #expect(verdict(error)?.outcome == .failed && verdict(error)?.seen.contains("full") == true)
        #expect(verdict(SocketObservation(greeting: .welcome, routesMedia: true))?.outcome == .failed)
    }
}

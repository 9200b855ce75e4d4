import Foundation
import Testing
import Wire

@testable import Server

/// What `confab doctor` concludes about the machine, the configuration and the databases, and how it reports it.
@Suite("What the doctor concludes about a machine") struct DoctorMachineVerdictTests {
    private func machine(_ change: (inout MachineObservation) -> Void = { _ in }) -> MachineObservation {
        var seen = MachineObservation(data: .init(directory: "/data", free: 10 << 30))
        seen.descriptorLimit = 65536
        (seen.receiveBuffer, seen.sendBuffer) = (4 << 20, 4 << 20)
        change(&seen)
        return seen
    }

    @Test("a full disk is a fault, and one that is nearly full a warning")
    func disk() {
        func verdict(_ free: Int?) -> DoctorFinding {
            DoctorVerdicts.disk(machine { $0.data.free = free }, ConfabConfiguration())[0]
        }
        #expect(verdict(10 << 30).outcome == .passed)
        let (low, full) = (verdict(100 << 20), verdict(1 << 20))
        #expect(low.outcome == .warning && low.seen.contains("storage.lowSpace"))
        #expect(full.outcome == .failed && full.seen.contains("storage.minFreeSpace"))
        #expect(full.fix?.contains("Free space") == true)
        #expect(verdict(nil).outcome == .failed)
        let recordings = DoctorVerdicts.disk(
            machine { $0.recordings = .init(directory: "/r", free: 1 << 30) }, ConfabConfiguration())
        #expect(
            recordings.map(\.outcome) == [.passed, .warning] && recordings[1].seen.contains("recording.minFreeSpace"))
    }

    @Test("few descriptors are a fault, and the fix names the limit of the unit")
    func descriptors() {
        func verdict(_ limit: Int?, open: Int? = nil) -> DoctorFinding {
            let seen = machine { ($0.descriptorLimit, $0.openDescriptors, $0.isOfServer) = (limit, open, true) }
            return DoctorVerdicts.descriptors(seen, requests: 32, loops: 1)
        }
        #expect(verdict(65536).outcome == .passed)
        #expect(verdict(4096).outcome == .warning)
        #expect(verdict(256).outcome == .failed && verdict(256).fix?.contains("LimitNOFILE") == true)
        #expect(verdict(65536, open: 60000).outcome == .warning)
        #expect(verdict(nil).outcome == .skipped)
        for limit in [0, 1, 5] { #expect(verdict(limit).outcome == .failed) }
    }

    @Test("small socket buffers are a warning that names the settings")
    func buffers() {
        #expect(DoctorVerdicts.socketBuffers(machine()).outcome == .passed)
        let small = DoctorVerdicts.socketBuffers(machine { $0.receiveBuffer = 212_992 })
        #expect(small.outcome == .warning && small.seen.contains("net.core.rmem_max to 208 KiB"))
        #expect(small.fix?.contains("sysctl.conf.sample") == true)
        #expect(DoctorVerdicts.socketBuffers(machine { $0.sendBuffer = nil }).outcome == .skipped)
    }

    @Test("a clock that nothing corrects is a warning")
    func synchronization() {
        #expect(DoctorVerdicts.synchronization(machine { $0.isClockSynchronized = true }).outcome == .passed)
        #expect(DoctorVerdicts.synchronization(machine { $0.isClockSynchronized = false }).outcome == .warning)
        #expect(DoctorVerdicts.synchronization(machine()).outcome == .skipped)
    }

    @Test("HTTPS and the trust in the proxy are checked together")
    func proxy() throws {
        func verdict(_ change: (inout ConfabConfiguration) -> Void) -> DoctorFinding {
            var configuration = ConfabConfiguration()
            change(&configuration)
            return DoctorVerdicts.proxy(configuration)
        }
        let block = try #require(CIDRBlock("127.0.0.1"))
        #expect(verdict { $0.tls.certificate = "/c.pem" }.outcome == .passed)
        #expect(verdict { _ in }.outcome == .warning)
        let open = verdict { $0.host = "0.0.0.0" }
        #expect(open.outcome == .warning && open.seen.contains("no camera"))
        let untrusted = verdict { $0.publicURL = "https://chat.example.org" }
        #expect(untrusted.outcome == .warning && untrusted.fix?.contains("trustedProxies") == true)
        #expect(
            verdict { ($0.publicURL, $0.trustedProxies.blocks) = ("https://chat.example.org", [block]) }.outcome
                == .passed)
        #expect(verdict { $0.publicURL = "http://chat.example.org" }.seen.contains("no camera"))
    }

    @Test("the notes of the media addresses become what was seen and what to do")
    func addresses() throws {
        let local = try #require(IPAddress("10.0.0.5"))
        let good = try MediaAddresses(configured: local, local: [local], publicHost: nil, port: 40000)
        #expect(DoctorVerdicts.addresses(good, error: nil).outcome == .passed)
        let bad = try MediaAddresses(configured: nil, local: [local], publicHost: "chat.example.org", port: 40000)
        let finding = DoctorVerdicts.addresses(bad, error: nil)
        #expect(finding.outcome == .warning && finding.fix?.hasPrefix("Set media.address") == true)
        #expect(DoctorVerdicts.addresses(nil, error: "It is multicast.").outcome == .failed)
    }

    @Test("ports that another program uses are named")
    func ports() {
        #expect(DoctorVerdicts.ports("TCP 8080", taken: []).outcome == .passed)
        let finding = DoctorVerdicts.ports("TCP 8080", taken: [("TCP 8080", "Address already in use")])
        #expect(
            finding.outcome == .failed && finding.seen.contains("TCP 8080") && finding.fix?.contains("ss -") == true)
    }

    @Test("databases that do not answer, and clocks that a cluster cannot work with, are faults")
    func databases() {
        let down = DoctorVerdicts.postgresql(DatabaseObservation(error: "connection refused."), isCluster: true)
        #expect(down.map(\.outcome) == [.failed] && down[0].seen.contains("connection refused"))
        func verdict(_ ahead: Duration, isCluster: Bool) -> [DoctorFinding.Outcome] {
            let seen = DatabaseObservation(version: "15", clockAhead: ahead)
            return DoctorVerdicts.postgresql(seen, isCluster: isCluster).map(\.outcome)
        }
        #expect(verdict(.seconds(1), isCluster: true) == [.passed, .passed])
        #expect(verdict(.seconds(5), isCluster: true) == [.passed, .failed])
        #expect(verdict(.seconds(5), isCluster: false) == [.passed, .passed])
        #expect(verdict(.seconds(300), isCluster: false) == [.passed, .failed])
        #expect(DoctorVerdicts.redis(DatabaseObservation()).map(\.outcome) == [.failed])
    }

    @Test("a certificate file that has expired, expires soon or cannot be used is found")
    func files() {
        let now = Timestamp(milliseconds: 1_790_000_000_000)
        func verdict(_ end: Duration?) -> DoctorFinding {
            let facts = end.map {
                CertificateFacts(
                    subject: "a", issuer: "b", notBefore: now - .seconds(9), notAfter: now + $0, names: ["c"])
            }
            return DoctorVerdicts.certificateFiles("/c.pem", facts, error: "no such file", now: now)
        }
        #expect(verdict(.seconds(9_000_000)).outcome == .passed)
        #expect(verdict(.seconds(9)).outcome == .warning)
        #expect(verdict(.zero).outcome == .failed)
        #expect(verdict(nil).outcome == .failed && verdict(nil).seen.contains("no such file"))
    }

    @Test("an order that failed is found with the authority's sentence, as a fault only without a valid certificate")
    func orders() {
        let event = "The authority could not verify the domain a.example. The authority says: NXDOMAIN."
        func verdict(_ certificate: DoctorFinding?) -> DoctorFinding {
            DoctorVerdicts.certificateOrder("/c.pem", event, fix: "Check the records.", certificate)
        }
        let valid = DoctorFinding.passed(.certificateFiles, "/c.pem", "/c.pem is valid.")
        let expired = DoctorFinding.failed(.certificateFiles, "/c.pem", "It has expired.", fix: "Renew it.")
        #expect(verdict(nil).outcome == .failed && verdict(valid).outcome == .warning)
        #expect(verdict(expired).outcome == .failed)
        for finding in [verdict(nil), verdict(valid), verdict(expired)] {
            #expect(finding.seen.contains("NXDOMAIN") && finding.fix == "Check the records.")
        }
    }

    @Test("docs/operations.md lists exactly the checks")
    func documented() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/operations.md"), encoding: .utf8)
        let section = try #require(
            text.components(separatedBy: "\n## ").first { $0.hasPrefix("Finding out what is wrong") })
        let rows = section.components(separatedBy: "\n").filter { $0.hasPrefix("| `") }
        let codes = rows.flatMap { row in
            row.components(separatedBy: "|")[1].components(separatedBy: ",").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
        }
        #expect(codes.sorted() == DoctorFinding.Check.allCases.map(\.rawValue).sorted())
    }

    @Test("a report has a line for each finding, its fix, and counts, as text and as JSON")
    func report() throws {
        let report = DoctorReport([
            .passed(.dns, "a", "a has an address."), .failed(.mediaUDP, "b", "It is \"blocked\".", fix: "Open it."),
            .skipped(.turn, "", "None is set."),
        ])
        let warning = DoctorFinding.warning(.disk, "", "a", fix: "b")
        #expect(DoctorReport([warning]).text.hasSuffix("0 failed, 1 warning, 0 passed, 0 skipped"))
        #expect(DoctorReport([warning, warning]).text.contains("2 warnings"))
        #expect(report.hasFailed && !DoctorReport([.warning(.disk, "", "a", fix: "b")]).hasFailed)
        #expect(
            report.text == """
                ok       dns        a has an address.
                FAILED   media_udp  It is "blocked".
                         Fix: Open it.
                skipped  turn       None is set.
                1 failed, 0 warnings, 1 passed, 1 skipped
                """)
        guard case .object(let object) = try JSONReader.parse(Array(report.json.utf8)),
            case .array(let findings)? = object["findings"], case .object(let second) = findings[1]
        else {
            Issue.record("\(report.json)")
            return
        }
        #expect(object["failed"] == .integer(1) && object["warnings"] == .integer(0))
        #expect(second["check"] == .string("media_udp") && second["outcome"] == .string("failed"))
        #expect(second["seen"] == .string("It is \"blocked\".") && second["fix"] == .string("Open it."))
    }
}

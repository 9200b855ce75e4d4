import Foundation
import Signaling
import TestSupport
import Testing

@testable import Server

/// What `confab setup` changes on a machine.
@Suite("The plan of setup") struct SetupPlanTests {
    private static let configuration = SetupPaths().configuration

    private func machine(_ change: (inout SetupMachine) -> Void = { _ in }) throws -> SetupMachine {
        var machine = SetupMachine()
        machine.addresses = [try #require(IPAddress("9.9.9.9"))]
        machine.processors = 8
        machine.hasUser = true
        machine.programs = ["/usr/local/bin/confab"]
        change(&machine)
        return machine
    }

    /// The plan for a machine on which only these questions are answered, and all others get their defaults.
    private func plan(
        _ flags: [SetupQuestion: String], _ machine: SetupMachine, dns: [String] = ["9.9.9.9"]
    ) throws -> SetupPlan {
        let existing = try SetupConfiguration(machine.files[Self.configuration], Self.configuration)
        var interview = try SetupInterview(flags: flags, known: existing.known, local: machine.addresses)
        while interview.step != .done {
            if case .lookUp(let host) = interview.step {
                interview.found(NameObservation(host: host, addresses: dns.compactMap { IPAddress($0) }))
            } else {
                try interview.acceptDefault()
            }
        }
        var random = SeededGenerator(seed: 1)
        return try SetupPlanner.plan(interview, machine, using: &random)
    }

    /// The machine after the plan was carried out.
    private func after(_ plan: SetupPlan, _ machine: SetupMachine) -> SetupMachine {
        var machine = machine
        for file in plan.files { machine.files[file.path] = file.new }
        return machine
    }

    private func text(_ plan: SetupPlan, _ path: String = SetupPlanTests.configuration) -> String? {
        plan.files.first { $0.path == path }?.new
    }

    private let direct: [SetupQuestion: String] = [
        .mode: "direct", .domain: "chat.example.org", .terms: "yes", .email: "a@example.org",
    ]
    private let proxy: [SetupQuestion: String] = [.mode: "proxy", .domain: "chat.example.org"]

    @Test("under a domain, Confab listens on 443 and orders a certificate of the test authority")
    func directly() throws {
        let plan = try plan(direct, try machine())
        #expect(
            text(plan) == SetupConfiguration.heading + """
                host: 0.0.0.0
                port: 443
                publicURL: https://chat.example.org

                acme:
                  domains: [chat.example.org]
                  directory: letsencrypt-staging
                  agreeToTerms: true
                  email: a@example.org

                """)
        #expect(plan.configuration.acme.domains == ["chat.example.org"] && plan.configuration.port == 443)
        #expect(text(plan, SetupPaths.unit) == DeploySample.unit)
        #expect(text(plan, SetupPaths.unitAddition)?.contains("\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n") == true)
        #expect(plan.ports.map(\.text) == ["TCP 443", "TCP 80", "UDP 40000-40003", "TCP 40000"])
        #expect(plan.ports[2].command(.ufw) == "ufw allow 40000:40003/udp")
        #expect(plan.ports[2].command(.firewalld) == "firewall-cmd --permanent --add-port=40000-40003/udp")
        #expect(plan.findings.allSatisfy { $0.outcome == .passed })
        #expect(plan.steps.contains { $0.contains("confab setup --authority letsencrypt") })
        #expect(plan.steps.contains("systemctl enable --now confab"))
    }

    @Test("the executable has the samples of the folder deploy")
    func samples() throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../../..").standardized
        let unit = try String(contentsOf: root.appending(path: "deploy/confab.service"), encoding: .utf8)
        #expect(unit == DeploySample.unit)
        let site = try String(contentsOf: root.appending(path: "deploy/nginx.conf.sample"), encoding: .utf8)
        let filled = DeploySample.nginx(domain: "chat.example.org", port: 8080).split(separator: "\n")
        #expect(filled.count > 40 && filled.dropFirst().allSatisfy { site.contains($0) })
    }

    @Test("a second run changes nothing", arguments: ["direct", "proxy", "lan"])
    func again(mode: String) throws {
        let flags = mode == "direct" ? direct : mode == "proxy" ? proxy : [.mode: "lan"]
        let machine = try machine { $0.hasNginx = true }
        let first = try plan(flags.merging([.turnServer: "turn.example.org"]) { $1 }, machine)
        #expect(!first.files.isEmpty)
        let second = after(first, machine)
        #expect(try plan(flags.merging([.turnServer: "turn.example.org"]) { $1 }, second).files == [])
        #expect(try plan([:], second).files == [], "without flags, the present answers count")
        #expect(try plan([:], second).changesText.hasPrefix("Nothing changes"))
    }

    @Test("a changed answer changes only that, and a changed authority needs a restart")
    func changedAnswer() throws {
        var machine = after(try plan(direct, try machine()), try machine())
        machine.isRunning = true
        machine.hasTestCertificate = true
        let edited = "# Mine\nroulette:\n  interestWait: 7s # long\n" + (machine.files[Self.configuration] ?? "")
        machine.files[Self.configuration] = edited
        let plan = try plan([.authority: "letsencrypt"], machine)
        #expect(plan.files.map(\.path) == [Self.configuration])
        #expect(text(plan) == edited.replacing("letsencrypt-staging", with: "letsencrypt"))
        #expect(plan.changesText.contains("  - ") && plan.changesText.contains("  +   directory: letsencrypt\n"))
        #expect(plan.steps.first == "systemctl restart confab")
        #expect(plan.configuration.rules.interestWait == .seconds(7))
    }

    @Test("port 80 stays closed if the authority verifies the domain over TLS")
    func overTLS() throws {
        let machine = try machine {
            $0.files[Self.configuration] = """
                port: 443
                acme:
                  domains: [chat.example.org]
                  agreeToTerms: true
                  challenge: tls
                """
        }
        let plan = try plan(direct, machine)
        #expect(plan.configuration.acme.challenge == .tls)
        #expect(plan.ports.map(\.text) == ["TCP 443", "UDP 40000-40003", "TCP 40000"])
    }

    @Test("behind nginx, the site comes from the sample, and the port of an existing one is changed")
    func nginx() throws {
        let machine = try machine { $0.hasNginx = true }
        let first = try plan(proxy, machine)
        let site = try #require(text(first, SetupPaths().nginxSite))
        #expect(site.contains("server_name chat.example.org;") && site.contains("server 127.0.0.1:8080;"))
        #expect(first.configuration.host == "127.0.0.1" && first.configuration.publicURL == "https://chat.example.org")
        #expect(first.configuration.trustedProxies.blocks.map(\.description) == ["127.0.0.1/32"])
        #expect(text(first, SetupPaths.unitAddition) == nil, "a port above 1023 needs no capability")
        #expect(first.ports.map(\.text).starts(with: ["TCP 443", "TCP 80"]))
        var second = after(first, machine)
        // As certbot and operators do.
        second.files[SetupPaths().nginxSite] = site.replacing("    #listen 443 ssl;", with: "    listen 443 ssl;")
            .replacing("127.0.0.1:8080;", with: "127.0.0.1:8080 max_fails=0; # one server")
        let moved = try plan([.port: "9000"], second)
        #expect(
            text(moved, SetupPaths().nginxSite)
                == second.files[SetupPaths().nginxSite]?.replacing("127.0.0.1:8080", with: "127.0.0.1:9000"))
        let renamed = try plan([.domain: "other.example.org"], second)
        #expect(text(renamed, SetupPaths().nginxSite) == nil)
        #expect(renamed.findings.contains { $0.check == .proxy && $0.fix?.contains("certbot") == true })
        #expect(try plan(proxy, try self.machine()).sample?.contains("server_name chat.example.org;") == true)
    }

    @Test("from one way to another, settings of the old one are removed")
    func otherMode() throws {
        let machine = after(try plan(direct, try machine()), try machine())
        let proxied = try plan([.mode: "proxy"], machine)
        #expect(proxied.configuration.acme.domains == [] && proxied.configuration.host == "127.0.0.1")
        #expect(proxied.configuration.port == 8080)
        #expect(text(proxied, SetupPaths.unitAddition)?.contains("CAP_NET") == false)
        let local = try plan([.mode: "lan"], after(proxied, machine))
        #expect(local.configuration.lan && local.configuration.publicURL == nil)
        #expect(local.configuration.trustedProxies.blocks.isEmpty)
        let back = try plan(direct, after(local, machine))
        #expect(!back.configuration.lan && back.configuration.port == 443)
    }

    @Test("a unit of a package stays, and other paths are written beside it")
    func packaged() throws {
        let unit = DeploySample.unit.replacing("/usr/local/bin/", with: "/usr/bin/")
        var machine = try machine {
            $0.files["/lib/systemd/system/confab.service"] = unit
            $0.programs = ["/usr/bin/confab"]
        }
        let plan = try plan(proxy, machine)
        #expect(plan.files.map(\.path) == [Self.configuration])
        #expect(!plan.steps.contains { $0.hasPrefix("install") })
        machine.paths.data = "/srv/confab"
        let moved = try self.plan(proxy, machine)
        let addition = try #require(text(moved, SetupPaths.unitAddition))
        #expect(
            addition.contains(
                "ExecStart=\nExecStart=/usr/bin/confab serve --config /etc/confab/confab.yaml --data-dir /srv/confab"))
        #expect(addition.contains("ReadWritePaths=/srv/confab"))
        let step = "install -d -m 0700 -o confab -g confab /srv/confab"
        #expect(moved.steps.contains(step), "the unit creates only its usual folder")
        #expect(try !self.plan(proxy, after(moved, machine)).steps.contains(step))
        machine.paths.data = "/srv/my confab"
        #expect(throws: SetupError.self) { try self.plan(proxy, machine) }
    }

    /// The plan for a machine whose unit has this command.
    private func plan(command: String, data: String = "/var/lib/confab") throws -> SetupPlan {
        let unit = DeploySample.unit.replacing(
            "/usr/local/bin/confab serve --config /etc/confab/confab.yaml --data-dir /var/lib/confab", with: command)
        return try plan(
            proxy,
            try machine {
                $0.files[SetupPaths.unit] = unit
                $0.paths.data = data
            })
    }

    @Test(
        "a unit that has the paths in its own way stays as it is",
        arguments: [
            "/usr/bin/confab serve --config=/etc/confab/confab.yaml --data-dir=/var/lib/confab --port 8081",
            "-/usr/bin/confab  serve --data-dir  /var/lib/confab '--config' \"/etc/confab/confab.yaml\"",
        ])
    func ownForm(command: String) throws {
        let plan = try plan(command: command)
        #expect(text(plan, SetupPaths.unitAddition) == nil && !plan.findings.contains { $0.subject == SetupPaths.unit })
    }

    @Test("other options of a unit stay when its paths change")
    func otherOptions() throws {
        let plan = try plan(
            command: "/usr/bin/confab serve --config=/etc/confab.yaml --host ::1 --data-dir /var/lib/confab --lan",
            data: "/srv/confab")
        let addition = try #require(text(plan, SetupPaths.unitAddition))
        let command =
            "/usr/bin/confab serve --config=/etc/confab/confab.yaml --host ::1 --data-dir /srv/confab --lan"
        #expect(addition.contains("\nExecStart=\nExecStart=\(command)\n"))
        let missing = try self.plan(command: "/usr/bin/confab serve --host ::1")
        let full = "serve --host ::1 --config /etc/confab/confab.yaml --data-dir /var/lib/confab\n"
        #expect(text(missing, SetupPaths.unitAddition)?.contains("=/usr/bin/confab \(full)") == true)
    }

    @Test(
        "a unit whose command setup cannot change is named",
        arguments: [
            "/bin/sh -c 'exec confab serve --config /etc/confab.yaml'", "/opt/start-confab",
            #"/usr/bin/confab serve --config "/etc/my confab.yaml""#,
        ])
    func otherCommand(command: String) throws {
        let plan = try plan(command: command)
        #expect(text(plan, SetupPaths.unitAddition) == nil)
        let finding = try #require(plan.findings.first { $0.subject == SetupPaths.unit })
        #expect(finding.seen.contains(command) && finding.fix?.contains("--config /etc/confab/confab.yaml") == true)
        #expect(!plan.steps.contains { $0.hasPrefix("install -m") && !$0.hasSuffix("/confab") })
    }

    @Test("a command of a unit can be on several lines")
    func severalLines() throws {
        let unit = "[Service]\nExecStart = /usr/bin/confab serve \\\n  --config /a \\\n  --data-dir /b\nUser=me\n"
        let command = try #require(UnitCommand(in: unit))
        #expect(command.program == "/usr/bin/confab")
        #expect(command.setting(["--config": "/a", "--data-dir": "/b"]) == command)
        let words = command.setting(["--config": "/c"])?.text.split(separator: " ")
        #expect(words == ["/usr/bin/confab", "serve", "--config", "/c", "--data-dir", "/b"])
        #expect(UnitCommand(in: "[Service]\nExecStart=/usr/bin/confab\nExecStart=\n") == nil)
    }

    @Test("the TURN secret is generated once, and is not shown")
    func secrets() throws {
        let flags = proxy.merging([.turnServer: "turn.example.org"]) { $1 }
        let machine = try machine { $0.files[SetupPaths.environment] = "CONFAB_LOG_LEVEL=debug" }
        let first = try plan(flags, machine)
        let file = try #require(first.files.first { $0.path == SetupPaths.environment })
        #expect(file.isSecret && file.new.hasPrefix("CONFAB_LOG_LEVEL=debug\nCONFAB_ICE_TURN_SECRET="))
        let secret = String(try #require(file.new.split(separator: "=").last)).trimmingBlanks()
        #expect(secret.count == 48 && !first.changesText.contains(secret))
        #expect(first.configuration.ice.turnServers.count == 2)
        #expect(first.steps.contains { $0.contains("static-auth-secret") && !$0.contains(secret) })
        let second = after(first, machine)
        #expect(try plan(flags, second).files == [])
        #expect(try !plan(flags, second).steps.contains { $0.contains("static-auth-secret") })
        let other = try plan([.turnServer: "other.example.org"], second)
        #expect(other.files.map(\.path) == [Self.configuration])
        #expect(try plan([.turnServer: "none"], second).configuration.ice.turnServers == [])
    }

    @Test("a domain that leads elsewhere, and variables that override the file, are reported")
    func findings() throws {
        let elsewhere = try plan(direct, try machine(), dns: ["8.8.8.8"])
        let finding = try #require(elsewhere.findings.first { $0.check == .addresses })
        #expect(finding.outcome == .warning && finding.fix?.contains("--media-address 8.8.8.8") == true)
        let also = try plan(direct, try machine(), dns: ["9.9.9.9", "8.8.8.8"])
        #expect(also.findings.contains { $0.seen.contains("also leads to 8.8.8.8") })
        #expect(
            try plan(direct, try machine(), dns: []).findings.contains { $0.check == .dns && $0.outcome == .failed })
        let overridden = try plan(proxy, try machine { $0.files[SetupPaths.environment] = "CONFAB_PORT=\"81\"\n" })
        #expect(overridden.findings.contains { $0.seen.contains("CONFAB_PORT, which overrides port") })
    }

    @Test("a configuration with mistakes or conflicts is not written")
    func conflicts() throws {
        func error(_ yaml: String, _ flags: [SetupQuestion: String]) throws -> String {
            let machine = try machine { $0.files[Self.configuration] = yaml }
            return #expect(throws: SetupError.self) { try plan(flags, machine) }?.description ?? ""
        }
        #expect(try error("prot: 1\n", direct).contains("did you mean port?"))
        #expect(try error("tls:\n  certificate: /a\n  privateKey: /b\n", direct).contains("not both"))
        #expect(try error("acme: {email: a@b.c}\n", direct).contains("acme.domains: chat.example.org"))
        #expect(try error("", direct.merging([.mediaPort: "65535"]) { $1 }).contains("--media-port"))
        #expect(try error("", [.mode: "lan", .domain: "a.example.org"]).contains("--domain has no effect"))
        #expect(try error("", proxy.merging([.email: "a@b.c"]) { $1 }).contains("--email has no effect"))
        #expect(try error("metrics:\n  port: 9000\n", proxy.merging([.port: "9000"]) { $1 }).contains("metrics.port"))
    }
}

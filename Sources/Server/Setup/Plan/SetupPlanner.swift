import Signaling
import Wire

/// Makes the plan of `confab setup` from the answers and from what was found on the machine. It reads and writes nothing.
///
/// Running it again with the same answers results in no changes: settings, comments and files of the operator are kept, and a
/// secret that exists is not generated again.
struct SetupPlanner {
    private let answers: [SetupQuestion: String]
    private let mode: SetupMode
    private let domain: String
    private let name: NameObservation?
    private let machine: SetupMachine
    private let existing: SetupConfiguration
    private var changes: [ConfigurationText.Change] = []
    private var plan = SetupPlan()

    /// - Parameters:
    ///   - interview: a finished one.
    ///   - random: for secrets.
    /// - Throws: `SetupError` if the answers do not suit each other or the existing files.
    static func plan(
        _ interview: SetupInterview, _ machine: SetupMachine, using random: inout some RandomNumberGenerator
    ) throws(SetupError) -> SetupPlan {
        var planner = try SetupPlanner(interview, machine)
        planner.chooseSettings()
        planner.planTURN(&random)
        try planner.planConfiguration()
        planner.planUnit()
        planner.planProxy()
        planner.planPorts()
        planner.compareAddresses()
        planner.planSteps()
        return planner.plan
    }

    private init(_ interview: SetupInterview, _ machine: SetupMachine) throws(SetupError) {
        guard interview.step == .done, let mode = interview.mode else {
            throw SetupError("Answers are missing. See confab help setup.")
        }
        try machine.paths.check()
        let unused = SetupQuestion.allCases.first { interview.answers[$0] != nil && !$0.applies(in: mode) }
        if let unused {
            throw SetupError(
                "\(unused.flag) has no effect with --mode \(mode.rawValue). Leave it out, or use another mode.")
        }
        answers = interview.answers
        self.mode = mode
        // A flag for the domain may have been checked before the mode was known.
        domain = try mode == .lan ? "" : SetupQuestion.domain.parse(answers[.domain] ?? "", mode: mode)
        name = mode == .lan ? nil : interview.name
        self.machine = machine
        existing = try SetupConfiguration(machine.files[machine.paths.configuration], machine.paths.configuration)
    }

    // MARK: Settings

    /// Changes a setting, unless the file has this value already. Nil is the default.
    private mutating func change(_ key: String, _ value: [String]?) {
        guard let setting = Setting.all.first(where: { $0.key.name == key }) else { return }
        let isSet = existing.keys.contains(key)
        var wanted = ConfabConfiguration()
        if let value { guard setting.store(value, &wanted) else { return } }
        let isSame = setting.text(wanted) == setting.text(existing.configuration)
        guard isSet ? !isSame : value != nil else { return }
        changes.append(.init(key: key, value: value, isList: setting.isList))
    }

    private mutating func chooseSettings() {
        chooseAddresses()
        let current = existing.configuration.acme
        if mode == .direct {
            if !current.domains.contains(domain) { change("acme.domains", [domain]) }
            change("acme.directory", answers[.authority].map { [$0] })
            change("acme.agreeToTerms", ["true"])
            change("acme.email", answers[.email].flatMap { $0.isEmpty ? nil : [$0] })
        } else {
            change("acme.domains", nil)
        }
        let media = existing.configuration.media
        if let port = answers[.mediaPort], Int(port) != media.port { change("media.port", [port]) }
        if let address = answers[.mediaAddress] { change("media.address", address.isEmpty ? nil : [address]) }
    }

    /// The settings without a group: where the server listens, and how people reach it.
    private mutating func chooseAddresses() {
        let current = existing.configuration
        let isLoopback = current.host == "localhost" || IPAddress(current.host)?.isLoopback == true
        switch mode {
        case .direct:
            // A socket of IPv6 accepts IPv4 too.
            if isLoopback { change("host", [machine.addresses.contains { !$0.isIPv4 } ? "::" : "0.0.0.0"]) }
        case .proxy: if !isLoopback { change("host", nil) }
        case .lan: break
        }
        change("port", [String(port)])
        change("lan", mode == .lan ? ["true"] : nil)
        if mode == .lan { change("publicURL", nil) } else { choosePublicURL() }
        let proxies = current.trustedProxies.blocks
        if mode == .proxy {
            let loopback = IPAddress.loopback
            guard !proxies.contains(where: { $0.contains(loopback) }) else { return }
            change("trustedProxies", proxies.map(\.description) + [loopback.description])
        } else if existing.known.mode == .proxy {
            change("trustedProxies", nil)
        }
    }

    /// The port of the server itself.
    private var port: Int {
        if let port = answers[.port].flatMap({ Int($0) }) { return port }
        if existing.known.mode == mode, existing.keys.contains("port") { return existing.configuration.port }
        return mode == .direct ? SiteAddress.securePort : ConfabConfiguration().port
    }

    private mutating func choosePublicURL() {
        let public443 = SiteAddress.securePort
        let publicPort = mode == .direct && port != public443 ? port : nil
        let current = existing.configuration.publicURL.flatMap { SiteAddress($0) }
        // Behind a proxy, the URL may have a path and another port.
        let isRight = mode == .proxy || current?.port == publicPort ?? public443
        guard current?.host != domain || current?.isSecure != true || !isRight else { return }
        change("publicURL", ["https://\(URLAuthority(host: domain, port: publicPort))"])
    }

    private mutating func planTURN(_ random: inout some RandomNumberGenerator) {
        guard let host = answers[.turnServer] else { return }
        guard !host.isEmpty else { return change("ice.turnServers", nil) }
        let authority = URLAuthority(host: host, port: 3478)
        change("ice.turnServers", ["udp", "tcp"].map { "turn:\(authority)?transport=\($0)" })
        let ice = existing.configuration.ice
        let text = machine.files[SetupPaths.environment]
        let variable = "CONFAB_ICE_TURN_SECRET"
        let variables = EnvironmentText.variables(text ?? "")
        guard ice.turnSecret == nil, ice.turnUsername == nil, variables[variable] == nil,
            variables["CONFAB_ICE_TURN_USERNAME"] == nil
        else { return }
        let start = text.map { $0.isEmpty || $0.hasSuffix("\n") ? $0 : $0 + "\n" } ?? ""
        let secret = SecretText.generated(using: &random)
        plan.files.append(
            .init(
                path: SetupPaths.environment, old: text, new: start + "\(variable)=\(secret.revealed)\n", isSecret: true
            ))
    }

    private mutating func planConfiguration() throws(SetupError) {
        let path = machine.paths.configuration
        let old = machine.files[path]
        var text = old == nil ? ConfigurationText(SetupConfiguration.heading) : existing.text
        let before = text
        for change in changes { text.apply(change) }
        guard text.isAsExpected(after: changes, before: before) else {
            let lines = changes.map { "\($0.key): \($0.value?.joined(separator: ", ") ?? "(remove)")" }
            throw SetupError(
                "\(path) is written in a form that setup cannot change. Set this in it yourself, and run setup again:\n"
                    + lines.map { "  \($0)" }.joined(separator: "\n"))
        }
        if text.text != old { plan.files.insert(.init(path: path, old: old, new: text.text), at: 0) }
        let secrets = plan.files.first { $0.isSecret }?.new ?? machine.files[SetupPaths.environment] ?? ""
        let variables = EnvironmentText.variables(secrets)
        do throws(ConfigurationError) {
            plan.configuration = try ConfabConfiguration.load(
                overrides: ["dataDirectory": machine.paths.data], environment: variables, yaml: text.text, named: path)
        } catch {
            throw SetupError("\(error)\nCorrect these settings in \(path) or the answers, and run setup again.")
        }
        let media = MediaPorts(
            first: plan.configuration.media.port,
            loops: plan.configuration.media.loopCount(processors: machine.processors))
        guard media.last <= 65535 else {
            throw SetupError(
                "Media uses \(media.loops) ports on this machine, and there are not so many from \(media.first) on. "
                    + "Use a smaller --media-port.")
        }
        let keys = existing.keys.union(changes.map(\.key))
        for setting in Setting.all where keys.contains(setting.key.name) {
            let variable = setting.key.environmentName
            guard variables[variable] != nil else { continue }
            plan.findings.append(
                .warning(
                    .configuration, variable,
                    "\(SetupPaths.environment) sets \(variable), which overrides \(setting.key.name) in \(path).",
                    fix: "Remove the variable from \(SetupPaths.environment)."))
        }
    }

    // MARK: The unit

    private mutating func planUnit() {
        if installedUnit == nil {
            plan.files.append(.init(path: SetupPaths.unit, old: nil, new: DeploySample.unit))
        }
        let needed = additions(to: installedUnit ?? DeploySample.unit)
        let old = machine.files[SetupPaths.unitAddition]
        guard old != nil || !needed.isEmpty else { return }
        let new =
            """
            # What confab.service needs in addition. confab setup writes this file: put your own settings into another one.
            [Service]

            """ + needed.map { $0 + "\n" }.joined()
        if new != old { plan.files.append(.init(path: SetupPaths.unitAddition, old: old, new: new)) }
    }

    /// The path of the unit that systemd uses; nil if there is none.
    private var unitPath: String? { SetupPaths.units.first { machine.files[$0] != nil } }

    /// The text of that unit.
    private var installedUnit: String? { unitPath.flatMap { machine.files[$0] } }

    /// The lines that the unit lacks.
    private mutating func additions(to unit: String) -> [String] {
        var needed: [String] = []
        let capability = "CAP_NET_BIND_SERVICE"
        let bindsLow = ownTCPPorts.contains { (1..<1024).contains($0) }
        let capabilities = UnitCommand.values(of: "AmbientCapabilities", in: unit)
        if bindsLow, !capabilities.contains(where: { $0.contains(capability) }) {
            needed += ["CapabilityBoundingSet=\(capability)", "AmbientCapabilities=\(capability)"]
        }
        guard let command = command(for: unit) else { return needed }
        needed += ["ExecStart=", "ExecStart=\(command)"]
        let data = machine.paths.data
        if data != SetupPaths().data { needed.append("ReadWritePaths=\(data)") }
        return needed
    }

    /// The command that the unit should run instead of its own; nil if its own is right, or setup cannot change it. It keeps the other
    /// options of the operator.
    private mutating func command(for unit: String) -> String? {
        let (file, data) = (machine.paths.configuration, machine.paths.data)
        let paths = "--config \(file) --data-dir \(data)"
        guard let own = UnitCommand(in: unit) else { return "\(Self.usualProgram) serve \(paths)" }
        guard let needed = own.setting(["--config": file, "--data-dir": data]) else {
            plan.findings.append(
                .warning(
                    .configuration, unitPath ?? SetupPaths.unit,
                    "Setup cannot change the command of this unit: \(own.text)",
                    fix: "Let it run confab serve \(paths), or run setup with the paths that it uses."))
            return nil
        }
        return needed == own ? nil : needed.text
    }

    private static let usualProgram = "/usr/local/bin/confab"

    /// The path of the executable in a unit.
    private static func program(of unit: String) -> String { UnitCommand(in: unit)?.program ?? usualProgram }

    /// The TCP ports on which the server accepts browsers and the authority.
    private var ownTCPPorts: [Int] {
        [plan.configuration.port, plan.configuration.plainHTTPPort].compactMap { $0 }
    }

    // MARK: nginx

    private mutating func planProxy() {
        guard mode == .proxy else { return }
        let path = machine.paths.nginxSite
        let port = plan.configuration.port
        guard let old = machine.files[path] else {
            let new = DeploySample.nginx(domain: domain, port: port)
            if machine.hasNginx {
                plan.files.append(.init(path: path, old: nil, new: new))
            } else {
                plan.sample = new
            }
            return
        }
        let site = NginxSite(old)
        let new = site.forwarding(to: port)
        if new != old { plan.files.append(.init(path: path, old: old, new: new)) }
        guard !site.names.contains(domain) else { return }
        // Its certificate is for the old name, so the operator has to get another one first.
        plan.findings.append(
            .warning(
                .proxy, path,
                "\(path) is not for \(domain): it has the server_name \(site.names.joined(separator: " ")).",
                fix: "Write server_name \(domain); there, and get a certificate: certbot --nginx -d \(domain)."))
    }

    // MARK: Firewall

    private mutating func planPorts() {
        let configuration = plan.configuration
        switch mode {
        case .direct:
            plan.ports.append(.init(ports: configuration.port...configuration.port, purpose: "pages"))
            if let port = configuration.plainHTTPPort {
                plan.ports.append(.init(ports: port...port, purpose: "the authority verifies the domain"))
            }
        case .proxy:
            plan.ports.append(.init(ports: 443...443, purpose: "nginx: pages"))
            plan.ports.append(.init(ports: 80...80, purpose: "nginx: certificates, and redirects to HTTPS"))
        case .lan: plan.ports.append(.init(ports: configuration.port...configuration.port, purpose: "pages"))
        }
        guard configuration.rules.routesMedia else { return }
        let loops = configuration.media.loopCount(processors: machine.processors)
        let media = MediaPorts(first: configuration.media.port, loops: loops)
        plan.ports.append(.init(isUDP: true, ports: media.first...max(media.first, media.last), purpose: "media"))
        plan.ports.append(
            .init(ports: media.first...media.first, purpose: "media from networks that block UDP"))
    }

    // MARK: DNS

    private mutating func compareAddresses() {
        guard let name else { return }
        plan.findings.append(DoctorVerdicts.dns(name))
        // The addresses of another system are not known here.
        guard machine.paths.prefix.isEmpty else { return }
        let announced = plan.configuration.media.address
        let addresses = name.addresses ?? []
        let foreign = addresses.filter { !machine.addresses.contains($0) && $0 != announced }
        guard let first = foreign.first, !machine.addresses.isEmpty else { return }
        let own = machine.addresses.prefix(4).map(\.description).joined(separator: ", ")
        let isElsewhere = foreign.count == addresses.count
        let ports = plan.ports.map(\.text).joined(separator: ", ")
        plan.findings.append(
            .warning(
                .addresses, domain,
                "\(domain) \(isElsewhere ? "leads" : "also leads") to \(first), and this machine has \(own).",
                fix: isElsewhere
                    ? "If \(first) is your router's address, forward \(ports) to this machine, and use "
                        + "--media-address \(first). Otherwise correct the A and AAAA records of \(domain)."
                    : "Remove the record with \(first), unless it leads to this machine: people and the authority may use it."
            ))
    }

    // MARK: Next steps

    private mutating func planSteps() {
        let paths = Set(plan.files.map(\.path))
        if !machine.hasUser {
            plan.steps.append("useradd --system --home-dir \(machine.paths.data) --shell /usr/sbin/nologin confab")
        }
        if paths.contains(SetupPaths.unitAddition), machine.paths.data != SetupPaths().data {
            // The unit creates only the usual folder, and cannot start without this one (`ReadWritePaths`).
            plan.steps.append("install -d -m 0700 -o confab -g confab \(machine.paths.data)")
        }
        let program = Self.program(of: installedUnit ?? DeploySample.unit)
        // The unit may run another program, which runs Confab.
        if program.hasSuffix("/confab"), !machine.programs.contains(program) {
            plan.steps.append("install -m 0755 \(machine.executable) \(program)")
        }
        if paths.contains(machine.paths.nginxSite) {
            plan.steps.append("nginx -t && systemctl reload nginx")
            if machine.files[machine.paths.nginxSite] == nil { plan.steps.append("certbot --nginx -d \(domain)") }
        }
        if paths.contains(SetupPaths.unit) || paths.contains(SetupPaths.unitAddition) {
            plan.steps.append("systemctl daemon-reload")
        }
        startSteps(paths)
        if paths.contains(SetupPaths.environment) {
            plan.steps.append(
                "Give the TURN server the secret: CONFAB_ICE_TURN_SECRET in \(SetupPaths.environment) is static-auth-secret "
                    + "in coturn's configuration.")
        }
        if mode == .direct { certificateSteps() }
        if mode == .lan {
            plan.steps.append("Open the URL in the log (journalctl -u confab), or scan the QR code there.")
        } else if let url = plan.configuration.publicURL {
            plan.steps.append("On another machine, such as at home: confab doctor --url \(url)")
        }
    }

    private mutating func startSteps(_ paths: Set<String>) {
        guard machine.isRunning else { return plan.steps.append("systemctl enable --now confab") }
        let live = Set(Setting.all.filter(\.key.isLive).map(\.key.name))
        let isLive = changes.allSatisfy { live.contains($0.key) }
        let others = [SetupPaths.unit, SetupPaths.unitAddition, SetupPaths.environment]
        if others.contains(where: { paths.contains($0) }) || !isLive {
            plan.steps.append("systemctl restart confab")
        } else if paths.contains(machine.paths.configuration) {
            plan.steps.append("systemctl reload confab")
        }
    }

    private mutating func certificateSteps() {
        guard ACMEAuthority.isForTests(plan.configuration.acme.directory) else { return }
        plan.steps.append(
            machine.hasTestCertificate
                ? "The test authority has issued a certificate. Get the real one: confab setup --authority letsencrypt"
                : "When the log says that the authority issued a certificate (journalctl -u confab), get the real one: "
                    + "confab setup --authority letsencrypt")
    }
}

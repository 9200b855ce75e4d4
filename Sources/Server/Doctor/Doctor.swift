import AsyncHTTPClient
import Foundation
import Wire

/// Finds out why people cannot reach a server, or soon will not: `confab doctor`.
///
/// From inside, it reads the configuration of the server, looks at the machine, and connects to the running server as a client
/// does, at its own address and at `publicURL`. From outside, it only has a URL. It changes nothing, takes less than a minute,
/// and needs no credentials. `DoctorVerdicts` has the rules.
///
/// ```swift
/// let report = await Doctor(configuration: configuration).run()
/// print(report.text)
/// ```
public struct Doctor: Sendable {
    /// What to look at.
    private enum Subject: Sendable {
        case inside(ConfabConfiguration)
        case outside(SiteAddress)
    }

    private let subject: Subject

    /// Looks at the machine of a server.
    public init(configuration: ConfabConfiguration) { subject = .inside(configuration) }

    /// Looks at a server from outside.
    ///
    /// - Parameter url: the server's public URL, such as `https://chat.example.org/video`.
    /// - Returns: nil if this is not a URL of a server.
    public init?(url: String) {
        guard let site = SiteAddress(url) else { return nil }
        subject = .outside(site)
    }

    /// The report for a configuration that cannot be loaded.
    public static func report(_ error: ConfigurationError) -> DoctorReport {
        let problems = error.problems.map { "\($0)" }.joined(separator: "; ")
        return DoctorReport([
            .failed(
                .configuration, "", "The configuration is invalid: \(problems).",
                fix: "Correct these settings; `confab serve --help-config` lists all of them.")
        ])
    }

    /// Makes all observations, and returns the findings.
    public func run() async -> DoctorReport {
        let client = SiteProbe.makeClient()
        let findings: [DoctorFinding]
        switch subject {
        case .outside(let site):
            let seen = await SiteProbe(site: site, client: client).observe()
            findings = Self.connecting(seen) + Self.serving(seen) + Self.media(seen, .outside)
        case .inside(let configuration):
            findings = await Self.inside(configuration, client)
        }
        try? await client.shutdown()
        return DoctorReport(findings)
    }

    private static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    // MARK: Inside

    private static func inside(_ configuration: ConfabConfiguration, _ client: HTTPClient) async -> [DoctorFinding] {
        let machine = MachineProbe(configuration: configuration)
        let directory = configuration.dataDirectory
        var findings: [DoctorFinding] = []
        let own: SiteAddress?
        do throws(DataDirectoryError) {
            own = try ServerAddressFile.read(in: directory).flatMap { SiteAddress($0) }
        } catch {
            own = nil
            findings.append(
                .failed(
                    .server, directory, "\(error)", fix: "Run the command as the server's user, with its --data-dir."))
        }
        let site = configuration.publicURL.flatMap { SiteAddress($0) }
        let others = (try? lanAddresses())?.map(\.address) ?? []
        // A trusted proxy is usually on this machine, so requests from here could pretend to come from it.
        async let publicSite = observe(site, client, others, triesForwarded: !configuration.handlesHTTPS)
        // If origins are restricted, its own address is not among them.
        let origin = site?.origin ?? configuration.allowedOrigins.first
        async let ownSite = observe(own, client, others + [.loopback], origin: origin, triesForwarded: false)
        async let stores = databases(configuration)
        let text = own == nil ? nil : await metrics(configuration.metrics, client)
        let machineSeen = await machine.observe(metrics: text)
        let (ownSeen, publicSeen) = await (ownSite, publicSite)

        if let ownSeen {
            findings.append(running(ownSeen))
            findings += serving(ownSeen)
            if publicSeen == nil, let socket = ownSeen.socket {
                findings.append(DoctorVerdicts.webSocket(ownSeen.site, socket))
            }
        } else if findings.isEmpty {
            findings.append(
                .warning(
                    .server, directory, "No server uses the data directory \(directory).",
                    fix: "Start it (confab serve), or name its directory with --data-dir."))
            findings.append(await machine.ports())
        }
        findings.append(machine.addresses())
        findings.append(DoctorVerdicts.proxy(configuration))
        if let files = machine.certificateFiles(now: now) { findings.append(files) }
        findings += DoctorVerdicts.disk(machineSeen, configuration)
        findings.append(
            DoctorVerdicts.descriptors(
                machineSeen, requests: DescriptorBudget.requests(configuration), loops: configuration.media.loopCount))
        findings.append(DoctorVerdicts.socketBuffers(machineSeen))
        findings.append(DoctorVerdicts.synchronization(machineSeen))
        findings += await stores
        if let publicSeen { findings += connecting(publicSeen) }
        // The server's own address shows the media ports even if the way through the proxy does not work.
        if let seen = publicSeen?.isGreeted == true ? publicSeen : ownSeen ?? publicSeen {
            findings += media(seen, .inside, site: publicSeen?.name.addresses)
        }
        return findings
    }

    private static func observe(
        _ site: SiteAddress?, _ client: HTTPClient, _ others: [IPAddress], origin: String? = nil, triesForwarded: Bool
    ) async -> SiteObservation? {
        guard let site else { return nil }
        return await SiteProbe(
            site: site, client: client, others: others, origin: origin, triesForwarded: triesForwarded
        ).observe()
    }

    private static func databases(_ configuration: ConfabConfiguration) async -> [DoctorFinding] {
        let isCluster = configuration.cluster.node != nil
        async let redis = isCluster ? DatabaseProbe.redis(configuration.cluster) : nil
        var findings: [DoctorFinding] = []
        if let url = configuration.storage.url {
            findings += DoctorVerdicts.postgresql(await DatabaseProbe.postgresql(url), isCluster: isCluster)
        }
        if let seen = await redis { findings += DoctorVerdicts.redis(seen) }
        return findings
    }

    private static func metrics(_ metrics: ConfabConfiguration.Metrics, _ client: HTTPClient) async -> String? {
        guard metrics.isEnabled else { return nil }
        let url = ServerURLs(host: metrics.host, port: metrics.port, isSecure: false).main + "/metrics"
        let seen = await SiteProbe.get(url, client)
        return seen.status == 200 ? seen.body : nil
    }

    private static func running(_ seen: SiteObservation) -> DoctorFinding {
        let url = seen.site.url
        guard seen.health?.text("version") != nil else {
            return .failed(
                .server, url, "The server at \(url) does not answer.",
                fix: "Start it again, and look into its log: it has crashed or hangs.")
        }
        return .passed(.server, url, "The server runs at \(url).")
    }

    // MARK: Findings of a site

    /// From the name to the WebSocket.
    private static func connecting(_ seen: SiteObservation) -> [DoctorFinding] {
        let site = seen.site
        var findings = [DoctorVerdicts.dns(seen.name)] + DoctorVerdicts.tcp(site, seen.connections)
        guard seen.connections.contains(where: { $0.outcome == .connected }) else { return findings }
        if let tls = seen.tls { findings.append(DoctorVerdicts.tls(site, tls, now: now)) }
        if !site.isSecure, !site.isLoopback {
            findings.append(
                .warning(
                    .tls, site.place, "\(site.url) is not encrypted, and browsers give such pages no camera.",
                    fix: "Use HTTPS (docs/operations.md, HTTPS)."))
        }
        if let health = seen.health { findings.append(DoctorVerdicts.http(site, health)) }
        if seen.health?.text("version") != nil, let forwarded = seen.forwarded {
            findings.append(DoctorVerdicts.forwarded(site, forwarded))
        }
        if let socket = seen.socket { findings.append(DoctorVerdicts.webSocket(site, socket)) }
        return findings
    }

    /// What a server that answers says about itself.
    private static func serving(_ seen: SiteObservation) -> [DoctorFinding] {
        guard let health = seen.health, health.text("version") != nil else { return [] }
        return [
            seen.ready.map { DoctorVerdicts.ready(seen.site, $0) },
            DoctorVerdicts.version(seen.site, health, own: ConfabServer.version),
            DoctorVerdicts.clock(seen.site, health),
        ].compactMap(\.self)
    }

    /// - Parameter addresses: those of the public URL's host; nil if they are the site's.
    private static func media(
        _ seen: SiteObservation, _ place: DoctorPlace, site addresses: [IPAddress]? = nil
    ) -> [DoctorFinding] {
        guard let socket = seen.socket else { return [] }
        var findings = DoctorVerdicts.media(socket, site: addresses ?? seen.name.addresses ?? [], place)
        if socket.greeting == .welcome, seen.relays.isEmpty {
            findings.append(
                .skipped(
                    .turn, "",
                    "No TURN server is set (ice.turnServers), so people whose networks block the media ports cannot connect."
                ))
        }
        findings += seen.relays.map { DoctorVerdicts.relay($0.url, $0.seen) }
        return findings
    }
}

import Cluster
import Datagrams
import Wire

/// The machine, the configuration and the databases.
extension DoctorVerdicts {
    /// With fewer descriptors, a page of a few hundred people does not work.
    static let minDescriptors = 1024
    /// With fewer descriptors, a server for thousands reaches its limit.
    static let recommendedDescriptors = 8192

    static func disk(_ seen: MachineObservation, _ configuration: ConfabConfiguration) -> [DoctorFinding] {
        let (minimum, low) = (configuration.storage.minFreeSpace, configuration.storage.lowSpace)
        var findings = [
            disk(
                seen.data, minimum: minimum, low: low,
                atMinimum: "the server is not ready with less than \(ByteCount(bytes: minimum)) (storage.minFreeSpace)",
                whenLow: "with less than \(ByteCount(bytes: low)) (storage.lowSpace) only essential data is stored")
        ]
        if let recordings = seen.recordings {
            let minimum = configuration.recording.minFreeSpace
            var finding = disk(
                recordings, minimum: 0, low: minimum, atMinimum: "",
                whenLow: "nothing is recorded with less than \(ByteCount(bytes: minimum)) (recording.minFreeSpace)")
            finding.subject = recordings.directory
            findings.append(finding)
        }
        return findings
    }

    private static func disk(
        _ space: MachineObservation.Space, minimum: Int, low: Int, atMinimum: String, whenLow: String
    ) -> DoctorFinding {
        let directory = space.directory
        guard let free = space.free else {
            return .failed(
                .disk, directory, "The free space of \(directory) cannot be read.",
                fix:
                    "Check that the directory exists and that its disk works; the server creates it at the first start."
            )
        }
        let text = "\(directory) has \(free >> 20) MiB of free space"
        let fix = "Free space on this disk, or move the directory to a larger one."
        if free < minimum { return .failed(.disk, directory, "\(text): \(atMinimum).", fix: fix) }
        if free < low { return .warning(.disk, directory, "\(text): \(whenLow).", fix: fix) }
        return .passed(.disk, directory, "\(text).")
    }

    /// - Parameters:
    ///   - requests: the descriptors for the server's own requests.
    ///   - loops: the number of media loops.
    static func descriptors(_ seen: MachineObservation, requests: Int, loops: Int) -> DoctorFinding {
        guard let limit = seen.descriptorLimit else {
            return .skipped(.descriptors, "", "The limit of descriptors is unknown.")
        }
        let budget = DescriptorBudget(limit: limit, requests: requests, loops: loops)
        let owner = seen.isOfServer ? "The server" : "A program that is started here"
        let seenText =
            "\(owner) may open \(limit) descriptors, which is enough for \(budget.connections) connections and "
            + "\(budget.mediaConnections) over TCP for media"
        let fix =
            "Set LimitNOFILE=65536 in the systemd unit (or `ulimit -n 65536` before the start), and restart the server."
        if limit < minDescriptors { return .failed(.descriptors, "", seenText + ".", fix: fix) }
        if let open = seen.openDescriptors, open > limit / 5 * 4 {
            return .warning(.descriptors, "", "The server has opened \(open) of \(limit) descriptors.", fix: fix)
        }
        if limit < recommendedDescriptors { return .warning(.descriptors, "", seenText + ".", fix: fix) }
        return .passed(.descriptors, "", seenText + ".")
    }

    static func socketBuffers(_ seen: MachineObservation) -> DoctorFinding {
        let sizes = [("net.core.rmem_max", seen.receiveBuffer), ("net.core.wmem_max", seen.sendBuffer)]
        let wanted = Int(SocketOptions.datagramBuffer)
        guard sizes.allSatisfy({ $0.1 != nil }) else {
            return .skipped(.socketBuffers, "", "The limits of socket buffers are unknown.")
        }
        let small = sizes.filter { ($0.1 ?? 0) < wanted }
        guard small.isEmpty else {
            let list = small.map { "\($0.0) to \(($0.1 ?? 0) >> 10) KiB" }.joined(separator: " and ")
            return .warning(
                .socketBuffers, "",
                "The system limits \(list), so packets are lost in sessions with many subscribers.",
                fix: "Install deploy/sysctl.conf.sample, which sets them to \(wanted), and restart the server.")
        }
        return .passed(.socketBuffers, "", "The system grants the \(wanted >> 20) MiB that media sockets need.")
    }

    static func synchronization(_ seen: MachineObservation) -> DoctorFinding {
        switch seen.isClockSynchronized {
        case nil: .skipped(.clock, "", "Whether a program keeps the clock right is unknown.")
        case true?: .passed(.clock, "", "The system's clock is synchronized.")
        case false?:
            .warning(
                .clock, "", "No program keeps the system's clock right.",
                fix: "Turn on synchronization (timedatectl set-ntp true, or install chrony).")
        }
    }

    // MARK: The configuration

    /// Whether browsers get HTTPS, and whether the proxy that must be there is trusted.
    static func proxy(_ configuration: ConfabConfiguration) -> DoctorFinding {
        let hasTLS = configuration.handlesHTTPS
        let isLocal = configuration.host == "localhost" || IPAddress(configuration.host)?.isLoopback == true
        guard let url = configuration.publicURL, let site = SiteAddress(url) else {
            if hasTLS { return .passed(.proxy, "", "Confab handles HTTPS itself.") }
            return isLocal
                ? .warning(
                    .proxy, "", "publicURL is not set, and the server listens only on \(configuration.host).",
                    fix: "If there is a proxy in front of the server, set publicURL and trustedProxies.")
                : .warning(
                    .proxy, "", "The server has no HTTPS, so browsers give its pages no camera except on localhost.",
                    fix:
                        "Set acme.domains, or tls.certificate and tls.privateKey, or use a proxy and set publicURL and trustedProxies."
                )
        }
        if !site.isSecure, !site.isLoopback {
            return .warning(
                .proxy, url, "publicURL begins with http://, and browsers give such pages no camera.",
                fix: "Use HTTPS, and set publicURL to the URL with https://.")
        }
        if hasTLS || !site.isSecure { return .passed(.proxy, url, "The public URL is \(url).") }
        guard !configuration.trustedProxies.blocks.isEmpty else {
            return .warning(
                .proxy, url,
                "A proxy must handle HTTPS for \(url), but trustedProxies is empty: all people count as one address.",
                fix: "Set trustedProxies to the address from which the proxy connects, such as 127.0.0.1.")
        }
        return .passed(.proxy, url, "The public URL is \(url), and the proxy is trusted.")
    }

    /// - Parameters:
    ///   - addresses: those that the server would announce; nil if the configuration does not allow any, for the given reason.
    static func addresses(_ addresses: MediaAddresses?, error: String?) -> DoctorFinding {
        guard let addresses else {
            return .failed(
                .addresses, "", error ?? "media.address cannot be used.",
                fix: "Set media.address to the address at which browsers reach this machine.")
        }
        let list = addresses.advertised.map(\.description).joined(separator: ", ")
        guard let note = addresses.notes.first else {
            return .passed(.addresses, list, "Media is announced at \(list).")
        }
        // The notes are what the server logs at its start. Their last sentence says what to do.
        let sentences = note.split(separator: ". ", maxSplits: 1).map(String.init)
        return .warning(
            .addresses, list, sentences.count == 2 ? sentences[0] + "." : note,
            fix: sentences.count == 2 ? sentences[1] : "Connect this machine to a network, or set media.address.")
    }

    /// - Parameter taken: the ports that cannot be opened, each with the reason.
    static func ports(_ all: String, taken: [(port: String, reason: String)]) -> DoctorFinding {
        guard let first = taken.first else { return .passed(.ports, all, "The ports are free: \(all).") }
        let list = taken.map { $0.port }.joined(separator: ", ")
        return .failed(
            .ports, list,
            "No server uses this data directory, but \(list) cannot be opened: \(printable(first.reason)).",
            fix:
                "Stop the program that uses it (ss -lntup shows it), set another port, or allow the server ports below 1024 "
                + "(CAP_NET_BIND_SERVICE).")
    }

    // MARK: Databases

    /// - Parameter isCluster: whether nodes and PostgreSQL must agree within seconds, because leases depend on it.
    static func postgresql(_ seen: DatabaseObservation, isCluster: Bool) -> [DoctorFinding] {
        database(
            .postgresql, "PostgreSQL", seen, isCluster: isCluster,
            fix: "Check that PostgreSQL runs, and storage.url with its user, password and database.")
    }

    static func redis(_ seen: DatabaseObservation) -> [DoctorFinding] {
        database(
            .redis, "Redis", seen, isCluster: true,
            fix: "Check that Redis runs, and cluster.redis with its user and password.")
    }

    private static func database(
        _ check: DoctorFinding.Check, _ name: String, _ seen: DatabaseObservation, isCluster: Bool, fix: String
    ) -> [DoctorFinding] {
        guard let version = seen.version, seen.error == nil else {
            return [
                .failed(check, "", "\(name) cannot be used: \(printable(seen.error ?? "no answer in time."))", fix: fix)
            ]
        }
        var findings: [DoctorFinding] = [.passed(check, "", "\(name) \(printable(version)) answers.")]
        guard let ahead = seen.clockAhead else { return findings }
        let size = max(ahead, .zero - ahead)
        if isCluster, size > ClockCheck.maxAtStart {
            let side = ahead > .zero ? "ahead of" : "behind"
            findings.append(
                .failed(
                    .clock, name,
                    "This machine's clock is \(size.components.seconds) s \(side) \(name)'s, so this node does not start.",
                    fix: "Synchronize the clocks of all machines of the cluster (timedatectl set-ntp true)."))
        } else {
            findings.append(clock(name, ahead: ahead, of: "\(name)'s"))
        }
        return findings
    }
}

import Wire

/// The media plane, STUN and TURN.
extension DoctorVerdicts {
    /// - Parameter addresses: those of the URL's host. One of them is probably the right address for media.
    static func media(_ seen: SocketObservation, site addresses: [IPAddress], _ place: DoctorPlace) -> [DoctorFinding] {
        guard seen.greeting == .welcome else {
            return [.skipped(.mediaAddress, "", "The media ports were not tried, because the WebSocket does not work.")]
        }
        guard seen.routesMedia else {
            return [.skipped(.mediaAddress, "", "This server does not route media.")]
        }
        if let error = seen.offerError {
            return [
                .failed(
                    .mediaAddress, "", "The server refuses a peer connection: \(printable(error))",
                    fix: "Look into the server's log.")
            ]
        }
        let announced = (seen.paths ?? []).filter(\.isAnnounced)
        guard !announced.isEmpty else {
            return [
                .failed(
                    .mediaAddress, "",
                    "The server announces no address for media, or its answer did not arrive in time.",
                    fix: "Set media.address to the address at which browsers reach this machine.")
            ]
        }
        let udp = announced.filter { !$0.isTCP }
        let tcp = announced.filter(\.isTCP)
        let works = (udp: udp.contains(where: isAnswered), tcp: tcp.contains(where: isAnswered))
        if !works.udp, !works.tcp {
            if let wrong = wrongAddress(announced, seen.paths ?? [], addresses, place) { return [wrong] }
        }
        return [mediaAddress(announced)] + ports(udp, tcp, works, place)
    }

    private static func isAnswered(_ path: MediaPathObservation) -> Bool { path.outcome == .answered }

    private static func list(_ paths: [MediaPathObservation]) -> String {
        var places: [String] = []
        for path in paths where !places.contains(path.place) { places.append(path.place) }
        return places.joined(separator: ", ")
    }

    private static func addressList(_ paths: [MediaPathObservation]) -> String {
        var found: [String] = []
        for path in paths where !found.contains(path.address.description) { found.append(path.address.description) }
        return found.joined(separator: ", ")
    }

    /// Returns the finding for addresses of which none answers, although the server does at another one, or could; nil if it is
    /// more likely that ports are blocked.
    private static func wrongAddress(
        _ announced: [MediaPathObservation], _ all: [MediaPathObservation], _ site: [IPAddress], _ place: DoctorPlace
    ) -> DoctorFinding? {
        let subject = addressList(announced)
        if let right = all.first(where: { !$0.isAnnounced && isAnswered($0) }) {
            guard place == .outside || announced.allSatisfy({ !PublicAddresses.contain($0.address) }) else {
                // A router need not let a machine reach itself at its public address.
                return .warning(
                    .mediaAddress, subject,
                    "Media is announced at \(subject), which does not answer from this machine, while \(right.address) does.",
                    fix: "Run `confab doctor --url` on a machine elsewhere: it shows whether \(subject) is right.")
            }
            if place == .inside, !site.contains(right.address) {
                return .failed(
                    .mediaAddress, subject,
                    "Media is announced at \(subject), which does not answer, while \(right.address) does.",
                    fix:
                        "Set media.address to the address at which browsers reach this machine, and restart the server."
                )
            }
            return .failed(
                .mediaAddress, subject,
                "Media is announced at \(subject), which does not answer, while \(right.address) does.",
                fix: "Set media.address to \(right.address), and restart the server.")
        }
        guard announced.allSatisfy({ !PublicAddresses.contain($0.address) }),
            let target = site.first(where: PublicAddresses.contain)
        else { return nil }
        return .failed(
            .mediaAddress, subject,
            "Media is announced at \(subject), which browsers on the internet cannot reach.",
            fix: "Set media.address to \(target), forward the media ports to this machine, and restart the server.")
    }

    private static func mediaAddress(_ announced: [MediaPathObservation]) -> DoctorFinding {
        let answering = announced.filter(isAnswered)
        guard !answering.isEmpty else {
            return .skipped(
                .mediaAddress, addressList(announced),
                "Media is announced at \(addressList(announced)). Nothing answers there, so this may be wrong."
            )
        }
        return .passed(.mediaAddress, addressList(announced), "Media is announced at \(addressList(announced)).")
    }

    private static func ports(
        _ udp: [MediaPathObservation], _ tcp: [MediaPathObservation], _ works: (udp: Bool, tcp: Bool),
        _ place: DoctorPlace
    ) -> [DoctorFinding] {
        let (udpPlaces, tcpPlaces) = (list(udp), list(tcp))
        let firewalls =
            place == .outside
            ? "in the firewalls of the server, of its provider and of this network" : "in this machine's firewall"
        let udpPort = udp.first.map { "UDP port \($0.port)" } ?? "the UDP ports"
        let tcpPort = tcp.first.map { "TCP port \($0.port)" } ?? "the TCP port"
        if works.udp, works.tcp {
            return [
                .passed(.mediaUDP, udpPlaces, "\(list(udp.filter(isAnswered))) answers over UDP."),
                .passed(.mediaTCP, tcpPlaces, "\(list(tcp.filter(isAnswered))) answers over TCP."),
            ]
        }
        if works.tcp {
            return [
                .failed(
                    .mediaUDP, udpPlaces,
                    "\(udpPlaces) does not answer over UDP\(detail(udp)), but over TCP: UDP is blocked.",
                    fix: "Open \(udpPort) \(firewalls), and the ports after it if there are several media loops."),
                .passed(.mediaTCP, tcpPlaces, "\(list(tcp.filter(isAnswered))) answers over TCP."),
            ]
        }
        if works.udp {
            return [
                .passed(.mediaUDP, udpPlaces, "\(list(udp.filter(isAnswered))) answers over UDP."),
                .warning(
                    .mediaTCP, tcpPlaces,
                    "\(tcpPlaces) does not answer over TCP\(detail(tcp)), so people whose networks block UDP cannot connect.",
                    fix: "Open \(tcpPort) \(firewalls)."),
            ]
        }
        return [
            .failed(
                .mediaUDP, udpPlaces, "\(udpPlaces) answers neither over UDP nor over TCP\(detail(udp)).",
                fix:
                    "Open \(udpPort) and \(tcpPort) \(firewalls), and check that media.address is the server's address."
            ),
            .failed(
                .mediaTCP, tcpPlaces, "\(tcpPlaces) does not answer over TCP\(detail(tcp)).",
                fix:
                    "Open \(tcpPort) \(firewalls), and offer TURN over port 443 to people in such networks (ice.turnServers)."
            ),
        ]
    }

    private static func detail(_ paths: [MediaPathObservation]) -> String {
        for path in paths {
            switch path.outcome {
            case .refused: return " (the port is closed)"
            case .unreachable(let reason): return " (\(reason))"
            case .answered, .silent: continue
            }
        }
        return ""
    }

    // MARK: STUN and TURN

    /// - Parameter url: the URL that clients get.
    static func relay(_ url: String, _ seen: RelayObservation) -> DoctorFinding {
        let isSTUN = url.lowercased().hasPrefix("stun:")
        let check: DoctorFinding.Check = isSTUN ? .stun : .turn
        let place = printable(url)
        let setting = isSTUN ? "ice.stunServers" : "ice.turnServers"
        func failed(_ seen: String, fix: String) -> DoctorFinding { .failed(check, place, seen, fix: fix) }
        switch seen {
        case .reflected: return .passed(check, place, "\(place) answers.")
        case .allocated(_, isOpen: true):
            return .warning(
                check, place, "\(place) relays for everyone, without credentials.",
                fix: "Set use-auth-secret and static-auth-secret in coturn's configuration.")
        case .allocated(let address, _) where !PublicAddresses.contain(address):
            return .warning(
                check, place,
                "\(place) accepts the credentials, but relays at \(address), which the internet cannot reach.",
                fix: "If the TURN server is behind NAT, set external-ip in coturn's configuration.")
        case .allocated(let address, _):
            return .passed(check, place, "\(place) accepts the credentials, and relays at \(address).")
        case .rejected(401):
            return failed(
                "\(place) rejects the credentials that Confab gives to clients (401).",
                fix:
                    "Set ice.turnSecret to coturn's static-auth-secret (or correct ice.turnUsername and ice.turnPassword), and "
                    + "compare the clocks of both machines.")
        case .rejected(let code):
            return failed(
                "\(place) refuses to relay (error \(code)\(meaning(of: code))).",
                fix: "Look into the log of the TURN server.")
        case .silent:
            return failed(
                "\(place) does not answer.",
                fix: "Start that server, open its port in the firewalls, or correct \(setting).")
        case .refused:
            return failed(
                "\(place) refuses the connection: nothing listens on this port.",
                fix: "Start that server, or correct the port in \(setting).")
        case .unknownName:
            return failed(
                "The host of \(place) has no address.", fix: "Correct the name in \(setting), or create its DNS record."
            )
        case .failed(let reason):
            return failed(
                "\(place) cannot be used: \(printable(reason)).",
                fix: "Check \(setting), and the certificate if it is a turns: URL.")
        }
    }

    /// What a code of RFC 8656 §19 means.
    private static func meaning(of code: Int) -> String {
        switch code {
        case 403: ", forbidden"
        case 437: ", allocation mismatch"
        case 438: ", stale nonce"
        case 442: ", unsupported transport"
        case 486: ", allocation quota reached"
        case 508: ", no free port"
        default: ""
        }
    }
}

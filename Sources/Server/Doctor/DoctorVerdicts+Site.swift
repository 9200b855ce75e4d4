import Wire

/// HTTP, proxies and the WebSocket.
extension DoctorVerdicts {
    static func http(_ site: SiteAddress, _ health: HTTPObservation) -> DoctorFinding {
        let request = "GET \(site.url)/health"
        guard let status = health.status else {
            return .failed(
                .http, site.place, "\(request) got no response: \(printable(health.error ?? "no answer in time")).",
                fix: "Check that Confab runs, and look into its log and that of the proxy.")
        }
        if let version = health.text("version"), health.text("srtp") != nil {
            guard status == 200 else {
                return .warning(
                    .http, site.place, "Confab \(printable(version)) answers, but is stopping.",
                    fix: "Wait until it has started again.")
            }
            return .passed(.http, site.place, "Confab \(printable(version)) answers.")
        }
        switch status {
        case 502, 503, 504:
            return .failed(
                .http, site.place, "The proxy answers with status \(status): it cannot reach Confab.",
                fix: "Start Confab, and check that the proxy forwards to Confab's host and port.")
        case 301, 302, 307, 308:
            return .failed(
                .http, site.place, "\(request) is redirected with status \(status).",
                fix: "Use the URL to which it leads, usually the one with https://.")
        default:
            return .failed(
                .http, site.place, "\(request) got status \(status), and not from Confab.",
                fix: "Check the URL and its path, and that the proxy forwards all paths to Confab.")
        }
    }

    static func ready(_ site: SiteAddress, _ answer: HTTPObservation) -> DoctorFinding {
        switch answer.status {
        case 200: return .passed(.ready, site.place, "The server is ready for new clients.")
        case 404 where answer.error == nil && !answer.body.isEmpty:
            return .warning(
                .ready, site.place, "The server takes no new clients: \(printable(firstLine(answer.body)))",
                fix: "Put it into service again with `confab node serve`, or free connections if it is full.")
        case 503:
            var parts: [String] = []
            if case .array(let values)? = answer.members["parts"] {
                parts = values.compactMap { if case .string(let part) = $0 { printable(part) } else { nil } }
            }
            let fixes = parts.compactMap { Readiness.Part(rawValue: $0)?.remedy }
            return .failed(
                .ready, site.place, "The server is not ready: \(parts.joined(separator: ", ")).",
                fix: fixes.isEmpty ? "Look into the server's log." : fixes.joined(separator: " "))
        default:
            return .failed(
                .ready, site.place,
                "GET /ready got \(answer.status.map { "status \($0)" } ?? printable(answer.error ?? "no response")).",
                fix: "Look into the log of the server and of the proxy.")
        }
    }

    /// What a proxy does with headers in which clients claim an address. A trusted one must set one of them, and remove or replace
    /// the other. Otherwise the server finds a contradiction: with the proxy's header, or between those of the client.
    static func forwarded(_ site: SiteAddress, _ seen: ForwardingObservation) -> DoctorFinding {
        let answers = (seen.forwarded.status, seen.xForwardedFor.status, seen.both.status)
        switch answers {
        case (200, 200, 200):
            return .passed(
                .forwarded, site.place,
                "The headers Forwarded and X-Forwarded-For of clients do not contradict those of the proxy.")
        case (400, 200, _), (400, 400, _):
            return .warning(
                .forwarded, site.place,
                "The proxy sets X-Forwarded-For and also passes on the header Forwarded of clients: they get status 400.",
                fix: "Let the proxy remove Forwarded (nginx: proxy_set_header Forwarded \"\").")
        case (200, 400, _):
            return .warning(
                .forwarded, site.place,
                "The proxy sets Forwarded and also passes on the header X-Forwarded-For of clients: they get status 400.",
                fix: "Let the proxy remove X-Forwarded-For (nginx: proxy_set_header X-Forwarded-For \"\").")
        case (200, 200, 400):
            return .failed(
                .forwarded, site.place,
                "The proxy sets neither X-Forwarded-For nor Forwarded and passes on those of clients, who can so claim any "
                    + "address: limits and bans by address do not hold.",
                fix: "Let the proxy set X-Forwarded-For and remove Forwarded (nginx: proxy_set_header X-Forwarded-For "
                    + "$remote_addr; proxy_set_header Forwarded \"\").")
        default:
            return .skipped(
                .forwarded, site.place,
                "The requests with the headers Forwarded and X-Forwarded-For got no usable response.")
        }
    }

    static func webSocket(_ site: SiteAddress, _ seen: SocketObservation) -> DoctorFinding {
        let sample = "deploy/nginx.conf.sample and deploy/Caddyfile.sample show how"
        func failed(_ what: String, fix: String) -> DoctorFinding { .failed(.websocket, site.place, what, fix: fix) }
        switch seen.upgrade {
        case nil:
            return failed(
                "The request for a WebSocket got no response in time.",
                fix: "Let the proxy forward Upgrade and Connection for /v1/socket with HTTP/1.1 (\(sample)).")
        case .refused(426), .refused(200):
            return failed(
                "The WebSocket's request arrived without Upgrade: a proxy in front of the server drops this header.",
                fix: "Let the proxy forward Upgrade and Connection for /v1/socket with HTTP/1.1 (\(sample)).")
        case .refused(let status) where (502...504).contains(status):
            return failed(
                "The proxy answers the WebSocket's request with status \(status): it cannot reach Confab.",
                fix: "Start Confab, and check that the proxy forwards /v1/socket to Confab's host and port.")
        case .refused(let status):
            return failed(
                "The WebSocket's request got status \(status).",
                fix:
                    "Let the proxy forward /v1/socket to Confab without requiring a login, and check allowedOrigins and bans."
            )
        case .wrongAnswer:
            return failed(
                "The WebSocket opened, but not to Confab.",
                fix: "Let the proxy forward /v1/socket with all headers to Confab (\(sample)).")
        case .failed(let reason):
            return failed(
                "The connection ended before the WebSocket opened: \(printable(reason)).",
                fix: "Look into the log of the server and of the proxy.")
        case .opened: break
        }
        switch seen.greeting {
        case .welcome: return .passed(.websocket, site.place, "The WebSocket opens, and the server answers the hello.")
        case .refused("forbidden_origin", _):
            return failed(
                "The server refuses pages of \(site.origin).",
                fix: "Add \(site.origin) to allowedOrigins, or empty that list.")
        case .refused(let code, let message):
            return failed(
                "The server refuses the hello: \(printable(message)) (\(printable(code)))",
                fix: "Do what the message says, and run the check again.")
        case .closed:
            return failed(
                "The WebSocket closed before the server answered the hello.",
                fix: "Look into the log of the proxy: it must not end or inspect WebSockets.")
        case nil:
            return failed(
                "The WebSocket opened, but nothing arrives over it.",
                fix: "Turn off buffering in the proxy for /v1/socket (\(sample)).")
        }
    }

    /// Compares the server's time in the answer of `/health` with this machine's.
    static func clock(_ site: SiteAddress, _ health: HTTPObservation) -> DoctorFinding? {
        guard case .integer(let milliseconds)? = health.members["time"] else { return nil }
        let ahead = health.at - Timestamp(milliseconds: milliseconds)
        // The server read its clock at some moment of the exchange.
        let half = health.took / 2
        let least = max(ahead, .zero - ahead) - half
        let size = max(least, .zero)
        return clock(site.place, ahead: ahead < .zero ? .zero - size : size, of: "the server's")
    }

    /// - Parameter own: the version of this program.
    static func version(_ site: SiteAddress, _ health: HTTPObservation, own: String) -> DoctorFinding? {
        guard let version = health.text("version").map(printable) else { return nil }
        let openssl = health.text("openssl").map { ", OpenSSL \(printable($0))" } ?? ""
        let srtp = health.text("srtp").map { ", media encrypted by \(printable($0))" } ?? ""
        guard version == own else {
            return .warning(
                .version, site.place, "The server is Confab \(version)\(openssl)\(srtp), and this program is \(own).",
                fix: "Use the confab program of the server's version, and restart the server after an upgrade.")
        }
        return .passed(.version, site.place, "Confab \(version)\(openssl)\(srtp).")
    }

    private static func firstLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }
}

extension Readiness.Part {
    /// What an operator can do if this part is not ready.
    fileprivate var remedy: String {
        switch self {
        case .storage: "Check that PostgreSQL can be reached, or that the disk of the data directory works."
        case .media: "Restart the server: a media loop hangs."
        case .disk: "Free space on the disk of the data directory."
        }
    }
}

import Foundation
import Testing
import Wire

extension Hostile {
    /// Responses of the ports to probing requests.
    @Suite("Case 24: paths that do not exist") struct SurfaceAttacks {
        private static let paths = [
            "/metrics", "/metrics/", "/Metrics", "/metrics?x=1", "/health/../metrics", "/health/metrics", "/admin",
            "/admin/",
            "/administrator", "/debug", "/debug/vars", "/debug/pprof/", "/debug/pprof/heap", "/pprof", "/actuator",
            "/actuator/env", "/server-status", "/status", "/stats", "/console", "/api", "/v1", "/v1/", "/v1/admin",
            "/v2/",
            "/graphql", "/swagger.json", "/phpinfo.php", "/wp-login.php", "/cgi-bin/", "/~root",
            "/.env", "/.git/config", "/.git/HEAD", "/.well-known/security.txt", "/Package.swift", "/package.json",
            "/project.json", "/confab.sqlite", "/confab.sqlite-wal", "/data/project.json", "/confab-data/project.json",
            "/../confab-data/project.json", "/%2e%2e/confab-data/project.json", "/..%2fdata%2fproject.json",
            "/%2e%2e%2f%2e%2e%2fetc/passwd", "/app/../../../../etc/passwd", "/app/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
            "/app/..%2f..%2fproject.json", "/lib/%2e%2e/%2e%2e/", "/app/%252e%252e/project.json", "/..;/project.json",
            "/app/..\\..\\project.json", "/app/..%5c..%5cproject.json", "/%c0%ae%c0%ae/project.json",
            "/app/....//project.json",
            "/%00", "/app/strangers/index.html%00.js", "/project.json%00.html", "//etc/passwd", "//127.0.0.1/metrics",
            "/file:///etc/passwd",
            "/etc/passwd", "/proc/self/environ", "/proc/self/fd/0", "/dev/zero", "/app", "/app/", "/lib", "/lib/",
            "/app/*",
            "/ca.crt", "/lan", "/lan/authority.pem", "/app/lan/index.html/..", "http://127.0.0.1:9464/metrics", "/%",
            "/%zz",
            "/?/../metrics/..",
            // These paths accept only requests with a body.
            "/v1/qr", "/v1/qr?text=a&text=b", "/v1/qr/..",
        ]

        /// Exceptions that return a page. The query is not part of the path, so this path is the first page.
        private static let pages: Set = ["/?/../metrics/.."]

        @Test("no path of the public port exposes metrics, files or controls with any method")
        func paths() async throws {
            try await Attack(number: 24, name: "paths that lead nowhere").run { server in
                let secret = try await Forging(server).secret
                var tally = Tally()
                for path in Self.paths {
                    for method in ["GET", "POST", "PUT", "DELETE", "PROPFIND"] {
                        let answer = try RawSocket(port: server.port).ask(path, method: method)
                        tally.count("\(answer.status)")
                        let isPage = Self.pages.contains(path) && method == "GET"
                        #expect((isPage ? [200] : [400, 404, 405, 501]).contains(answer.status), "\(method) \(path)")
                        #expect(
                            !answer.text.contains(secret) && !answer.text.contains("apiSecret"), "\(method) \(path)")
                        #expect(!answer.text.contains("root:") && !answer.text.contains("confab_"), "\(method) \(path)")
                    }
                }
                // Headers for rewriting proxies have no effect on a server without a proxy.
                for name in ["X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-HTTP-Method-Override"] {
                    let answer = try RawSocket(port: server.port).ask("/none", headers: [(name, "/metrics")])
                    tally.count("\(answer.status)")
                    #expect(answer.status == 404, "\(name)")
                }
                #expect(try RawSocket(port: server.port).ask("/").status == 200)
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }

        @Test("a QR code is drawn only for a short text, and the SVG does not contain the text")
        func drawings() async throws {
            try await Attack(number: 24, name: "invalid texts for a QR code").run { server in
                var tally = Tally()
                func refuses(_ bytes: [UInt8], headers: [(String, String)] = [], with codes: Set<Int>) throws {
                    let answer = try RawSocket(port: server.port)
                        .ask("/v1/qr?text=a&text=b", method: "POST", headers: headers, body: bytes)
                    tally.count("\(answer.status)")
                    #expect(codes.contains(answer.status) && !answer.text.contains("<svg"), "\(bytes.prefix(20))")
                }
                try refuses([], with: [400])
                try refuses([], headers: [("Content-Length", "0")], with: [400])
                for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0x61, 0xE2, 0x82]] {
                    try refuses(bytes, with: [400])
                }
                for size in [214, 4096, 1 << 20, 1 << 21] {
                    try refuses([UInt8](repeating: 0x61, count: size), with: [413])
                }
                // Two lengths, or a length with chunks, could be parsed as two requests.
                try refuses([0x61], headers: [("Content-Length", "213")], with: [400])
                try refuses([0x61], headers: [("Transfer-Encoding", "chunked")], with: [400])
                for text in ["<script>alert(1)</script>", "\"/><image href=\"//evil.example\"/>", "]]>&lt;\u{0}"] {
                    let answer = try RawSocket(port: server.port)
                        .ask("/v1/qr", method: "POST", body: Array(text.utf8))
                    tally.count("\(answer.status)")
                    #expect(answer.status == 200 && answer["Content-Type"] == "image/svg+xml", "\(text)")
                    #expect(answer["X-Content-Type-Options"] == "nosniff", "\(text)")
                    let code = /<svg [a-zA-Z0-9:\/."= -]*><path d="[Mhvz0-9 -]*"\/><\/svg>\n/
                    #expect(try code.wholeMatch(in: answer.text) != nil, "\(text)")
                }
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }

        @Test("health returns only status, versions and the time")
        func health() async throws {
            try await Attack(number: 24, name: "what health tells").run { server in
                var tally = Tally()
                for path in ["/health", "/health?verbose=1", "/health?format=json&debug=true"] {
                    for headers in [
                        [], [("Authorization", "Basic YWRtaW46YWRtaW4=")], [("X-Forwarded-For", "127.0.0.1")],
                    ] {
                        let answer = try RawSocket(port: server.port).ask(path, headers: headers)
                        tally.count(answer.text.trimmingCharacters(in: .newlines))
                        let members = try #require(
                            try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
                        #expect(answer.status == 200)
                        #expect(Set(members.keys) == ["status", "version", "openssl", "srtp", "time"])
                        #expect(members["status"] as? String == "ok" && members["time"] is Int)
                        #expect(answer["Server"] == nil && answer["X-Powered-By"] == nil)
                    }
                }
                for path in ["/ready", "/ready?verbose=1"] {
                    let answer = try RawSocket(port: server.port).ask(path)
                    tally.count(answer.text.trimmingCharacters(in: .newlines))
                    #expect(answer.status == 200 && answer.text == "{\"status\":\"ready\"}\n")
                }
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }

        #if os(Linux)
        @Test("metrics are served only on their own loopback port")
        func metrics() async throws {
            try await blocking {
                // The public port accepts connections from everywhere. The metrics port must not.
                let server = try PlainServer(
                    ["CONFAB_METRICS_ENABLED": "auto", "CONFAB_METRICS_PORT": "0"], flags: ["--host", "0.0.0.0"]
                )
                defer { server.end() }
                let port = try server.port()
                try eventually("the metrics are not ready: \(server.log)") { server.log.contains("Metrics ready url=") }
                let url =
                    server.log.components(separatedBy: "Metrics ready url=").last?.prefix { !$0.isWhitespace } ?? ""
                let own = try #require(url.split(separator: ":").last.flatMap { Int($0.prefix { $0.isNumber }) })
                let addresses = try Self.listening(server.id)
                #expect(addresses.contains("0.0.0.0:\(port)"))
                #expect(addresses.filter { $0.hasSuffix(":\(own)") } == ["127.0.0.1:\(own)"])
                let person = try Person.arrive(port: port, name: "Grace Hopper")
                let figures = try RawSocket(port: own).ask("/metrics", host: "127.0.0.1:\(own)")
                #expect(figures.status == 200 && figures.text.contains("# TYPE"))
                // DNS rebinding: a page's own name for this machine.
                for host in ["confab.test", "confab.test:\(own)", "127.0.0.1.evil.example", "localhost.evil.example"] {
                    let rebound = try RawSocket(port: own).ask("/metrics", host: host)
                    #expect(rebound.status == 403 && !rebound.text.contains("# TYPE"), "\(host)")
                }
                #expect(
                    !figures.text.contains("Grace") && !figures.text.contains(person.welcome.connection.description))
                #expect(try RawSocket(port: port).ask("/metrics").status == 404)
                for path in ["/", "/debug/pprof/", "/admin", "/health", "/project.json", "/metrics/../project.json"] {
                    #expect(try RawSocket(port: own).ask(path).status == 404, "\(path)")
                }
                print("hostile 24 | listening on \(addresses.sorted()) | metrics on loopback alone")
            }
        }

        @Test("metrics on a public address are off unless they were enabled explicitly")
        func metricsElsewhere() async throws {
            try await blocking {
                for host in ["0.0.0.0", "::", "127.0.0.1.example.org"] {
                    let server = try PlainServer(
                        ["CONFAB_METRICS_ENABLED": "auto", "CONFAB_METRICS_HOST": host, "CONFAB_METRICS_PORT": "0"])
                    defer { server.end() }
                    let port = try server.port()
                    #expect(try RawSocket(port: port).ask("/health").status == 200)
                    for address in try Self.listening(server.id) {
                        let other = try #require(address.split(separator: ":").last.flatMap { Int($0) })
                        let answer = try? RawSocket(port: other).ask("/metrics", host: "127.0.0.1", within: .seconds(2))
                        #expect(answer?.status != 200, "\(address), metrics.host \(host)")
                    }
                }
                print("hostile 24 | metrics.host not loopback | no port serves them")
            }
        }

        /// The addresses on which a process accepts TCP connections.
        private static func listening(_ id: Int32) throws -> Set<String> {
            let folder = "/proc/\(id)/fd"
            let own = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0)
            }
            var found: Set<String> = []
            for (table, size) in [("tcp", 8), ("tcp6", 32)] {
                guard let handle = FileHandle(forReadingAtPath: "/proc/\(id)/net/\(table)") else { continue }
                defer { try? handle.close() }
                let text = String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
                for line in text.split(separator: "\n").dropFirst() {
                    let fields = line.split(whereSeparator: \.isWhitespace)
                    // 0A is LISTEN; the tenth field is the socket's inode.
                    guard fields.count > 9, fields[3] == "0A", own.contains("socket:[\(fields[9])]") else { continue }
                    let parts = fields[1].split(separator: ":")
                    let port = parts.last.flatMap { Int($0, radix: 16) } ?? 0
                    found.insert((size == 8 ? dotted(parts[0]) : String(parts[0])) + ":\(port)")
                }
            }
            return found
        }

        /// Converts an IPv4 address from the kernel's notation, which is the integer value of its four bytes in memory.
        private static func dotted(_ hex: Substring) -> String {
            withUnsafeBytes(of: UInt32(hex, radix: 16) ?? 0) { $0.map { "\($0)" }.joined(separator: ".") }
        }
        #endif
    }
}

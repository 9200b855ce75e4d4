import Wire

/// Where `confab setup` reads and writes files.
public struct SetupPaths: Equatable, Sendable {
    /// The configuration file.
    public var configuration = "/etc/confab/confab.yaml"
    /// The data directory.
    public var data = "/var/lib/confab"
    /// What nginx includes: the server block that forwards to Confab.
    public var nginxSite = "/etc/nginx/conf.d/confab.conf"
    /// A folder in front of all paths, for tests and for images of systems: the files contain paths without it. Empty for this
    /// machine.
    public var prefix = ""

    /// Creates the usual paths.
    public init() {}

    /// The file of variables that the unit reads. It has the secrets.
    static let environment = "/etc/confab/environment"
    /// The unit that setup writes.
    static let unit = "/etc/systemd/system/confab.service"
    /// Where units are, the one that counts first.
    static let units = [unit, "/usr/lib/systemd/system/confab.service", "/lib/systemd/system/confab.service"]
    /// What setup adds to the unit, so that a unit of a package or of the operator stays as it is.
    static let unitAddition = "/etc/systemd/system/confab.service.d/setup.conf"

    /// - Throws: `SetupError` if a path cannot be written into a unit.
    func check() throws(SetupError) {
        for path in [configuration, data] {
            let isUsable =
                path.hasPrefix("/") && path.count > 1
                && path.allSatisfy { !$0.isWhitespace && !"%$\"'\\;".contains($0) }
            guard isUsable else {
                throw SetupError(
                    "\(LogText.escaped(path)) cannot be written into a systemd unit. Use an absolute path "
                        + "without spaces and quotation marks."
                )
            }
        }
    }
}

/// What `confab setup` finds on a machine, besides the answers.
struct SetupMachine: Equatable, Sendable {
    /// A program that manages the firewall.
    enum Firewall: Equatable, Sendable { case ufw, firewalld }

    var paths = SetupPaths()
    /// The texts of existing files by their paths.
    var files: [String: String] = [:]
    /// The addresses of this machine that others may reach.
    var addresses: [IPAddress] = []
    /// The number of processors, which decides how many ports media uses.
    var processors = 1
    /// Whether the folder of nginx's sites exists.
    var hasNginx = false
    /// Whether the user exists as whom the unit runs the server.
    var hasUser = false
    /// Paths of programs that exist.
    var programs: Set<String> = []
    /// The path of this program.
    var executable = ""
    var firewall: Firewall?
    /// Whether a server uses the data directory.
    var isRunning = false
    /// Whether the test authority has issued a certificate.
    var hasTestCertificate = false
}

/// A port that a firewall has to let through.
struct SetupPort: Equatable, Sendable {
    var isUDP = false
    var ports: ClosedRange<Int>
    /// What uses it.
    var purpose: String

    /// The protocol and the ports, such as `UDP 40000-40003`.
    var text: String { (isUDP ? "UDP " : "TCP ") + range("-") }

    /// A command that opens it.
    func command(_ firewall: SetupMachine.Firewall) -> String {
        let suffix = isUDP ? "/udp" : "/tcp"
        return switch firewall {
        case .ufw: "ufw allow \(range(":"))\(suffix)"
        case .firewalld: "firewall-cmd --permanent --add-port=\(range("-"))\(suffix)"
        }
    }

    private func range(_ separator: String) -> String {
        ports.count == 1 ? "\(ports.lowerBound)" : "\(ports.lowerBound)\(separator)\(ports.upperBound)"
    }
}

/// The samples in `deploy` that are part of the executable.
enum DeploySample {
    static let unit = text("confab.service")

    /// The site of nginx for a domain, without the comment at its beginning, which explains how to fill in the sample.
    static func nginx(domain: String, port: Int) -> String {
        let sample = text("nginx.conf.sample").split(separator: "\n", omittingEmptySubsequences: false)
        let body = sample.drop { !$0.isEmpty }.joined(separator: "\n")
        let heading =
            "# nginx in front of Confab. confab setup wrote this file from deploy/nginx.conf.sample, and keeps your changes.\n"
        return heading
            + body.replacing("chat.example.org", with: domain)
            .replacing("127.0.0.1:8080", with: URLAuthority(host: "127.0.0.1", port: port).description)
    }

    private static func text(_ name: String) -> String { embeddedDeployFiles[name].map { "\($0)" } ?? "" }
}

import ArgumentParser
import Server

/// The `confab setup` command. Sets up a server on this machine.
struct SetupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup", abstract: "Set up a server on this machine: configuration, certificate, systemd unit.",
        discussion: """
            Asks how people reach the server, checks DNS and ports, and writes the configuration file and a systemd unit. Then it prints \
            what to open in the firewall and what to do next. It shows all changes before it writes them. Run it as root.

            Run it again to change something. It changes only what is different, and keeps your settings and comments.

            Each question has an option. With --yes, nothing is asked: answers that are missing are taken from the present \
            configuration, or are the defaults.
            """)

    @Option(
        help: """
            How people reach the server: direct (under a domain, Confab gets the certificate), proxy (under a domain, nginx handles \
            HTTPS) or lan (on a local network, or at an address without a domain).
            """)
    var mode: String?

    @Option(help: "Domain of the pages, such as chat.example.org.")
    var domain: String?

    @Option(
        help: """
            Certificate authority: letsencrypt-staging for a test with certificates that browsers reject (the default), letsencrypt, or \
            the URL of another one.
            """)
    var authority: String?

    @Flag(help: "Agree to the authority's terms of service.")
    var agreeToTerms = false

    @Option(help: "Email address for messages of the authority, or none.")
    var email: String?

    @Option(
        help:
            "TCP port of the server itself (default: 443 for direct, otherwise \(String(ConfabConfiguration().port))).")
    var port: String?

    @Option(help: "First UDP and TCP port for media.")
    var mediaPort: String?

    @Option(help: "Address announced to browsers for media, or none for the addresses of this machine.")
    var mediaAddress: String?

    @Option(help: "Host of a TURN server, or none. Its secret is generated once, in /etc/confab/environment.")
    var turnServer: String?

    @Option(help: "Configuration file to write (default: \(SetupPaths().configuration)).")
    var config: String?

    @Option(help: "Data directory of the server (default: \(SetupPaths().data)).")
    var dataDir: String?

    @Option(help: "Site of nginx to write, with --mode proxy (default: \(SetupPaths().nginxSite)).")
    var nginxSite: String?

    @Option(help: "Folder in front of all paths that are read and written, for example to prepare another system.")
    var prefix: String?

    @Flag(help: "Ask nothing, and write the changes.")
    var yes = false

    @Flag(help: "Show what would change, and write nothing.")
    var dryRun = false

    func run() async throws {
        var options = Setup.Options()
        options.answers[.mode] = mode
        options.answers[.domain] = domain
        options.answers[.authority] = authority
        options.answers[.terms] = agreeToTerms ? "yes" : nil
        options.answers[.email] = email
        options.answers[.port] = port
        options.answers[.mediaPort] = mediaPort
        options.answers[.mediaAddress] = mediaAddress
        options.answers[.turnServer] = turnServer
        if let config { options.paths.configuration = config }
        if let dataDir { options.paths.data = dataDir }
        if let nginxSite { options.paths.nginxSite = nginxSite }
        if let prefix { options.paths.prefix = prefix }
        options.asks = !yes
        options.writes = !dryRun
        do {
            try await Setup(options).run()
        } catch {
            throw CommandError(description: "\(error)")
        }
    }
}

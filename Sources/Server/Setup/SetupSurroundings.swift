import Foundation

/// The network and the machine, as far as `confab setup` depends on them besides files.
struct SetupSurroundings: Sendable {
    /// Asks the name servers for a domain.
    var lookUp: @Sendable (String) async -> NameObservation
    /// Returns this machine's addresses, except loopback and link-local ones.
    var addresses: @Sendable () -> [IPAddress]
    /// The path of this program.
    var executable: String
    /// The number of processors.
    var processors: Int
    /// Looks whether the server would work with this configuration.
    var check: @Sendable (ConfabConfiguration, SetupMachine) async -> [DoctorFinding]

    /// Those of this machine.
    static var real: SetupSurroundings {
        SetupSurroundings(
            lookUp: { await SiteProbe.lookUp($0) },
            addresses: { (try? lanAddresses())?.map(\.address) ?? [] },
            executable: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
                ?? ProcessInfo.processInfo.arguments.first ?? "confab",
            processors: ProcessInfo.processInfo.activeProcessorCount,
            check: { configuration, machine in
                let probe = MachineProbe(configuration: configuration)
                // The ports of a running server are in use.
                guard !machine.isRunning else { return [probe.addresses()] }
                return [await probe.ports(), probe.addresses()]
            })
    }

    /// Finds out what is on the machine.
    ///
    /// - Throws: `SetupError` if a file cannot be read.
    func observe(_ paths: SetupPaths, _ files: SetupFiles) throws(SetupError) -> SetupMachine {
        var machine = SetupMachine()
        machine.paths = paths
        let names =
            [paths.configuration, paths.nginxSite, SetupPaths.environment, SetupPaths.unitAddition] + SetupPaths.units
        for name in names { machine.files[name] = try files.read(name) }
        machine.addresses = addresses()
        machine.processors = processors
        machine.hasNginx = files.exists(Self.folder(of: paths.nginxSite))
        let users = try files.read("/etc/passwd") ?? ""
        machine.hasUser = users.split(whereSeparator: \.isNewline).contains { $0.hasPrefix("confab:") }
        machine.executable = executable
        let programs = ["/usr/local/bin/confab", "/usr/bin/confab"]
        machine.programs = Set(programs.filter(files.exists))
        if files.exists("/usr/sbin/ufw") { machine.firewall = .ufw }
        if files.exists("/usr/bin/firewall-cmd") { machine.firewall = .firewalld }
        let data = try files.location(paths.data)
        machine.isRunning = (try? ServerAddressFile.read(in: data)) != nil
        var test = ConfabConfiguration()
        (test.dataDirectory, test.acme.domains) = (paths.data, ["localhost"])
        machine.hasTestCertificate = ACMEFiles(test).map { files.exists($0.certificatePath) } ?? false
        return machine
    }

    private static func folder(of path: String) -> String {
        path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
    }
}

import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

extension ConfabConfiguration {
    /// The URL of a server with the default configuration.
    static var defaultServer: String {
        "http://\(URLAuthority(host: ConfabConfiguration().host, port: ConfabConfiguration().port))"
    }
}

/// Options that locate the data directory and the configuration file, for `serve` and for commands that work alongside
/// a running server.
struct DataOptions: ParsableArguments {
    @Option(
        help: "Directory with the project file and the database (default: \(ConfabConfiguration().dataDirectory)).")
    var dataDir: String?

    @Option(help: "YAML configuration file. See deploy/confab.sample.yaml for all settings.")
    var config: String?

    func configuration(overrides: [String: String] = [:]) throws -> ConfabConfiguration {
        do {
            return try load(overrides: overrides)
        } catch {
            throw CommandError(description: "\(error)")
        }
    }

    /// Loads the configuration from the file, the environment and the flags.
    ///
    /// - Parameter overrides: the values of flags, keyed by the settings' names.
    func load(overrides: [String: String]) throws(ConfigurationError) -> ConfabConfiguration {
        var overrides = overrides
        if let dataDir { overrides["dataDirectory"] = dataDir }
        let environment = ProcessInfo.processInfo.environment
        let file = config ?? environment["CONFAB_CONFIG"]
        return try ConfabConfiguration.load(
            overrides: overrides, environment: environment.filter { $0.key != "CONFAB_CONFIG" }, file: file
        )
    }

    func project() throws -> (Project, ProjectFile) {
        let file = try openProject(configuration())
        do {
            return (try file.project, file)
        } catch {
            throw CommandError(description: "\(error)")
        }
    }

    func storage() throws -> any Storage {
        try configuration().openStorage()
    }
}

/// Opens the project of the data directory, or creates it if the directory has none.
///
/// - Throws: `CommandError` if the project file cannot be created or is invalid.
func openProject(_ configuration: ConfabConfiguration) throws -> ProjectFile {
    do {
        return try ProjectFile.open(configuration)
    } catch {
        throw CommandError(description: "\(error)")
    }
}

/// An error to print on standard error. The command exits with status 1.
struct CommandError: Error, CustomStringConvertible {
    var description: String
}

extension Timestamp {
    static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    /// The time in ISO 8601 format.
    var text: String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }
}

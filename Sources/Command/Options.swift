import ArgumentParser
import Foundation
import Server
import Signaling
import Wire

extension ConfabConfiguration {
    /// Where a server with the defaults is.
    static var defaultServer: String { "http://\(ConfabConfiguration().host):\(ConfabConfiguration().port)" }
}

/// Where the data is: what every command that works beside a running server needs.
struct DataOptions: ParsableArguments {
    @Option(
        help: "The directory that holds the project and the database (default \(ConfabConfiguration().dataDirectory)).")
    var dataDir: String?

    @Option(help: "A YAML file with settings; deploy/confab.sample.yaml lists them all.")
    var config: String?

    func configuration(overrides: [String: String] = [:]) throws -> ConfabConfiguration {
        var overrides = overrides
        if let dataDir { overrides["dataDirectory"] = dataDir }
        let environment = ProcessInfo.processInfo.environment
        let file = config ?? environment["CONFAB_CONFIG"]
        do {
            return try ConfabConfiguration.load(
                overrides: overrides, environment: environment.filter { $0.key != "CONFAB_CONFIG" }, file: file
            )
        } catch {
            throw Complaint(description: "\(error)")
        }
    }

    func project() throws -> (Project, ProjectFile) {
        let file = try openProject(configuration())
        guard let project = Project(apiKey: file.apiKey, secret: file.apiSecret.revealed) else {
            throw Complaint(description: "The API key must be numeric and the secret at least 32 bytes long.")
        }
        return (project, file)
    }

    func storage() throws -> any Storage {
        try SQLiteStorage(directory: configuration().dataDirectory)
    }
}

/// The project of the data directory, or a complaint that says what is wrong with it.
func openProject(_ configuration: ConfabConfiguration) throws -> ProjectFile {
    do {
        return try ProjectFile.open(configuration)
    } catch {
        throw Complaint(description: "\(error)")
    }
}

/// An error for people: one sentence on standard error, exit status 1.
struct Complaint: Error, CustomStringConvertible {
    var description: String
}

extension Timestamp {
    static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    /// As operators read it.
    var text: String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }
}

import ArgumentParser
import Foundation
import Server

/// The `confab settings` command. Prints the sample configuration file or the page of limits, both generated from the
/// settings.
struct Settings: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print a sample configuration file: all settings, with their defaults and meanings.")

    @Option(help: "Print this page of limits (docs/limits.md) instead, with the current rows of settings.")
    var limits: String?

    func run() throws {
        guard let limits else { return print(SettingDocuments.sample, terminator: "") }
        print(SettingDocuments.limits(try String(contentsOfFile: limits, encoding: .utf8)), terminator: "")
    }
}

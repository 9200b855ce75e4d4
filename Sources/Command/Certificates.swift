import ArgumentParser
import Server

/// The `confab certificate` command. Changes what the server uses to get its certificate.
struct CertificateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate", abstract: "Change the key of the account at the ACME server.",
        subcommands: [RotateAccountKey.self])

    /// Replaces the key of the account.
    struct RotateAccountKey: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate-account-key", abstract: "Replace the key of the account at the ACME server.",
            discussion: """
                The account stays, with its limits. Run this as the server's user, with the --data-dir, --config and variables of \
                the server, which may be running. If it fails, the old key stays in use; run it again.
                """)
        @OptionGroup var data: DataOptions

        func run() async throws {
            let configuration = try data.configuration()
            do {
                print(try await AccountKeyRotation.run(configuration))
            } catch {
                throw CommandError(description: "\(error)")
            }
        }
    }
}

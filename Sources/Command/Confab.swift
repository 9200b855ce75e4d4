import ArgumentParser
import Server

/// The `confab` command.
@main
struct Confab: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "confab",
        abstract: "Self-hosted video chat: random matching, direct calls and group rooms.",
        version: ConfabServer.version,
        subcommands: [
            Serve.self, ProjectCommand.self, SessionCommand.self, TokenCommand.self, RoomCommand.self,
            ArchiveCommand.self, BroadcastCommand.self, ComposeCommand.self, NodeCommand.self, ReportCommand.self,
            BanCommand.self, Audit.self, CertificateCommand.self,
            Backup.self, StorageCommand.self, Settings.self, SetupCommand.self, DoctorCommand.self, BotCommand.self,
            Bench.self,
        ],
        defaultSubcommand: Serve.self
    )
}

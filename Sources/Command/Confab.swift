import ArgumentParser
import Server

/// Self-hosted video chat.
@main
struct Confab: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "confab",
        abstract: "Self-hosted video chat: strangers meet, people call each other, groups talk in rooms.",
        version: ConfabServer.version,
        subcommands: [
            Serve.self, ProjectCommand.self, SessionCommand.self, TokenCommand.self, ReportCommand.self,
            BanCommand.self, Backup.self, BotCommand.self, Bench.self,
        ],
        defaultSubcommand: Serve.self
    )
}

import Foundation
import PackagePlugin

/// Turns `web/lib`, `web/app`, `web/socket.io` and `web/v2` into one generated Swift file of string literals, and the samples in
/// `deploy` that `confab setup` fills in into another, so that the executable contains them (`Bundle.module` would embed the build
/// machine's path).
@main
struct EmbedWeb: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let web = context.package.directoryURL.appending(path: "web")
        let deploy = context.package.directoryURL.appending(path: "deploy")
        let pages = ["lib", "app", "socket.io", "v2"].flatMap { files(under: web.appending(path: $0)) }
        let samples = ["confab.service", "nginx.conf.sample"].map { deploy.appending(path: $0) }
        return [
            try command(context, "EmbeddedWebFiles", of: web, pages),
            try command(context, "EmbeddedDeployFiles", of: deploy, samples),
        ]
    }

    /// Embeds files of a folder in the file `name.swift`, as a constant of this name with a small letter first.
    private func command(_ context: PluginContext, _ name: String, of folder: URL, _ inputs: [URL]) throws -> Command {
        let output = context.pluginWorkDirectoryURL.appending(path: "\(name).swift")
        let constant = "\(name.prefix(1).lowercased())\(name.dropFirst())"
        return .buildCommand(
            displayName: "Embedding \(inputs.count) files of \(folder.lastPathComponent)",
            executable: try context.tool(named: "EmbedTool").url,
            arguments: [output.path, constant, folder.path] + inputs.map(\.path),
            inputFiles: inputs,
            outputFiles: [output]
        )
    }

    private func files(under folder: URL) -> [URL] {
        guard let walk = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) else { return [] }
        let kinds: Set<String> = ["html", "css", "js", "svg", "json", "ts", "txt", "webmanifest"]
        return walk.compactMap { $0 as? URL }
            .filter { kinds.contains($0.pathExtension) }
            .sorted { $0.path < $1.path }
    }
}

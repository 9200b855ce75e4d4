import Foundation
import PackagePlugin

/// Turns `web/lib`, `web/app`, `web/socket.io` and `web/v2` into one generated Swift file of string literals, so that the executable
/// contains its pages (`Bundle.module` would embed the build machine's path).
@main
struct EmbedWeb: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let web = context.package.directoryURL.appending(path: "web")
        let inputs = ["lib", "app", "socket.io", "v2"].flatMap { files(under: web.appending(path: $0)) }
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedWebFiles.swift")
        return [
            .buildCommand(
                displayName: "Embedding \(inputs.count) web files",
                executable: try context.tool(named: "EmbedTool").url,
                arguments: [output.path, web.path] + inputs.map(\.path),
                inputFiles: inputs,
                outputFiles: [output]
            )
        ]
    }

    private func files(under folder: URL) -> [URL] {
        guard let walk = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) else { return [] }
        let kinds: Set<String> = ["html", "css", "js", "svg", "json", "ts", "txt", "webmanifest"]
        return walk.compactMap { $0 as? URL }
            .filter { kinds.contains($0.pathExtension) }
            .sorted { $0.path < $1.path }
    }
}

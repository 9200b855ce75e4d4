import Foundation

// Usage: EmbedTool <output.swift> <web folder> <file>…
// Writes each text file as a raw string literal under its path relative to the web folder.
let arguments = CommandLine.arguments
guard arguments.count >= 3 else {
    FileHandle.standardError.write(Data("usage: EmbedTool <output.swift> <web folder> <file>…\n".utf8))
    exit(64)
}
let root = URL(filePath: arguments[2]).path + "/"
var source = "// Generated from web/ at build time.\nlet embeddedWebFiles: [String: StaticString] = [\n"
for path in arguments.dropFirst(3) {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let name = path.hasPrefix(root) ? String(path.dropFirst(root.count)) : path
    // Enough hashes that no sequence in the text can end the literal or start an escape.
    var hashes = "#"
    while text.contains("\"\"\"" + hashes) || text.contains("\\" + hashes) { hashes += "#" }
    source += "    \"\(name)\": \(hashes)\"\"\"\n\(text)\n\"\"\"\(hashes),\n"
}
source += arguments.count > 3 ? "]\n" : ":]\n"
try source.write(toFile: arguments[1], atomically: true, encoding: .utf8)

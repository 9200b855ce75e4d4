import Foundation

// Usage: EmbedTool <output.swift> <web folder> <file>…
// Writes a Swift dictionary that maps each file's path, relative to the web folder, to its contents as a raw string literal.
let arguments = CommandLine.arguments
guard arguments.count >= 3 else {
    FileHandle.standardError.write(Data("Usage: EmbedTool <output.swift> <web folder> <file>…\n".utf8))
    exit(64)
}
let root = URL(filePath: arguments[2]).path + "/"
var source = "// Generated from web/ at build time.\nlet embeddedWebFiles: [String: StaticString] = [\n"
for path in arguments.dropFirst(3) {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let name = path.hasPrefix(root) ? String(path.dropFirst(root.count)) : path
    // Use enough hashes that nothing in the text ends the literal or starts an escape sequence.
    var hashes = "#"
    while text.contains("\"\"\"" + hashes) || text.contains("\\" + hashes) { hashes += "#" }
    source += "    \"\(name)\": \(hashes)\"\"\"\n\(text)\n\"\"\"\(hashes),\n"
}
source += arguments.count > 3 ? "]\n" : ":]\n"
try source.write(toFile: arguments[1], atomically: true, encoding: .utf8)

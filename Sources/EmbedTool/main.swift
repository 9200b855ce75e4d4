import Foundation

// Usage: EmbedTool <output.swift> <name of the constant> <folder> <file>…
// Writes a Swift dictionary that maps each file's path, relative to the folder, to its contents as a raw string literal.
let arguments = CommandLine.arguments
guard arguments.count >= 4 else {
    FileHandle.standardError.write(Data("Usage: EmbedTool <output.swift> <constant> <folder> <file>…\n".utf8))
    exit(64)
}
let folder = URL(filePath: arguments[3])
let root = folder.path + "/"
var source = "// Generated from \(folder.lastPathComponent)/ at build time.\n"
source += "let \(arguments[2]): [String: StaticString] = [\n"
for path in arguments.dropFirst(4) {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let name = path.hasPrefix(root) ? String(path.dropFirst(root.count)) : path
    // Use enough hashes that nothing in the text ends the literal or starts an escape sequence.
    var hashes = "#"
    while text.contains("\"\"\"" + hashes) || text.contains("\\" + hashes) { hashes += "#" }
    source += "    \"\(name)\": \(hashes)\"\"\"\n\(text)\n\"\"\"\(hashes),\n"
}
source += arguments.count > 4 ? "]\n" : ":]\n"
try source.write(toFile: arguments[1], atomically: true, encoding: .utf8)

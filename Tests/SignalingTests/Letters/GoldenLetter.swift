import Foundation
import Wire

@testable import Signaling

/// A letter in a file of `protocol/letters/`, each of which has one letter per line.
struct GoldenLetter: Sendable, CustomStringConvertible {
    let file: String
    let text: String

    var bytes: [UInt8] { Array(text.utf8) }
    var description: String { "\(file): \(text.prefix(80))" }

    var members: [String: JSONValue] {
        guard case .object(let object)? = try? JSONReader.parse(bytes) else { return [:] }
        return Dictionary(uniqueKeysWithValues: object.members.map { ($0.name, $0.value) })
    }

    /// The machine and the event, such as `person matched`.
    var name: String {
        guard case .array(let to)? = members["to"], case .string(let machine)? = to.first,
            case .string(let event)? = members["event"]
        else { return "" }
        return "\(machine) \(event)"
    }

    static let folder = root.appending(path: "protocol/letters")
    static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

    static let all: [GoldenLetter] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.sorted().flatMap { file in
            let text = (try? String(contentsOf: folder.appending(path: file), encoding: .utf8)) ?? ""
            return text.split(separator: "\n").filter { $0 != "[" && $0 != "]" }.map { line in
                GoldenLetter(file: file, text: String(line.hasSuffix(",") ? line.dropLast() : line))
            }
        }
    }()
}

/// A table row in `protocol/letters/README.md`.
struct LetterRow {
    var machine: String
    var event: String
    /// The members that the row names, without `to` and `event`.
    var members: Set<String>

    static let all: [LetterRow] = {
        let text = (try? String(contentsOf: GoldenLetter.folder.appending(path: "README.md"), encoding: .utf8)) ?? ""
        var machine = ""
        var rows: [LetterRow] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## "), let name = quoted(line).first { machine = name }
            let cells = line.split(separator: "|").map { quoted($0) }
            guard line.hasPrefix("| `"), cells.count >= 2, !machine.isEmpty else { continue }
            rows += cells[0].map { LetterRow(machine: machine, event: $0, members: Set(cells[1])) }
        }
        return rows
    }()

    /// Returns the words in backquotes.
    private static func quoted(_ text: Substring) -> [String] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
    }
}

import Foundation
import Testing

@testable import AppModel

/// The screens as text, in `Screens/*.txt`: one file for each screen, with a section for each state. A change of wording shows
/// in them. `CONFAB_WRITE_SCREENS=1` writes them again.
@MainActor enum Golden {
    private static let folder = Project.tests.appending(path: "Screens")

    static func expect(
        _ screen: any Screen, _ file: String, _ state: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        // The marks around names are not visible.
        let text = screen.lines.map { "  \($0.description)" }.joined(separator: "\n")
            .replacing("\u{2068}", with: "").replacing("\u{2069}", with: "")
        let url = folder.appending(path: "\(file).txt")
        var sections = read(url)
        let index = sections.firstIndex { $0.state == state }
        if Project.setting("CONFAB_WRITE_SCREENS") != nil {
            if let index { sections[index].text = text } else { sections.append((state, text)) }
            write(sections.sorted { $0.state < $1.state }, to: url)
            return
        }
        guard let index else {
            Issue.record(
                "\(file).txt has no state \"\(state)\". Write it with CONFAB_WRITE_SCREENS=1.",
                sourceLocation: sourceLocation)
            return
        }
        #expect(text == sections[index].text, "\(file), \(state)", sourceLocation: sourceLocation)
    }

    private static func read(_ url: URL) -> [(state: String, text: String)] {
        guard let all = try? String(contentsOf: url, encoding: .utf8) else { return [] }
        return all.split(separator: "\n\n").map { section in
            let lines = section.split(separator: "\n", maxSplits: 1)
            let text = lines.count > 1 ? String(lines[1]) : ""
            return (String(lines[0].dropFirst().dropLast()), text.trimmingCharacters(in: .newlines))
        }
    }

    private static func write(_ sections: [(state: String, text: String)], to url: URL) {
        let text = sections.map { "[\($0.state)]\n\($0.text)" }.joined(separator: "\n\n") + "\n"
        do { try text.write(to: url, atomically: true, encoding: .utf8) } catch { Issue.record(error) }
    }
}

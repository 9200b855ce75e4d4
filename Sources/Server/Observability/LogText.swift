/// Functions that make untrusted text safe for a log that is read in a terminal.
enum LogText {
    /// Maximum length of a value in Unicode scalars. Longer values are cut, so that they cannot fill the disk.
    static let maxScalars = 2048

    /// Escapes characters that could start a new line, move the cursor or change the text direction: control characters, line
    /// and paragraph separators, bidirectional and invisible formatting, and characters that are unassigned or for
    /// private use. Cuts the text at ``maxScalars``.
    static func escaped(_ text: String) -> String {
        var result = ""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            if count > maxScalars { return result + "…" }
            if isHarmless(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += escape(scalar)
            }
        }
        return result
    }

    /// Returns the text as ``escaped(_:)`` does. Puts it in quotation marks if it is empty, or contains a space, a
    /// character of the log's syntax such as `=`, or a character that is escaped.
    static func value(_ text: String) -> String {
        let needsQuotes =
            text.isEmpty
            || text.unicodeScalars.contains { " \"=\\{}[],".unicodeScalars.contains($0) || !isHarmless($0) }
        guard needsQuotes else { return escaped(text) }
        // Escape backslashes first, so that they cannot be confused with the ones that escaping adds.
        let prepared = text.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\")
        return "\""
            + escaped(prepared.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\""))
            + "\""
    }

    /// Returns a JSON string with quotation marks, cut at ``maxScalars``. Apart from what JSON requires, escapes the
    /// same characters as ``escaped(_:)``, as `\u` sequences.
    static func json(_ text: String) -> String {
        var result = "\""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            if count > maxScalars {
                result += "…"
                break
            }
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case _ where isHarmless(scalar): result.unicodeScalars.append(scalar)
            default:
                for unit in String(scalar).utf16 { result += "\\u" + padded(String(unit, radix: 16)) }
            }
        }
        return result + "\""
    }

    static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: "\\u{\(String(scalar.value, radix: 16))}"
        }
    }

    private static func padded(_ hex: String) -> String { String(repeating: "0", count: max(0, 4 - hex.count)) + hex }
}

/// Text from outside made harmless for a log that people read in a terminal.
enum LogText {
    /// Beyond this a value tells nothing more; somebody is filling the disk.
    static let maximumScalars = 2048

    /// Escapes what could start a new line, move the cursor or turn the direction of writing: control characters, line
    /// and paragraph separators, bidirectional and invisible formatting. Cut at ``maximumScalars``.
    static func escaped(_ text: String) -> String {
        var result = ""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            if count > maximumScalars { return result + "…" }
            if isHarmless(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += escape(scalar)
            }
        }
        return result
    }

    /// As ``escaped(_:)``, in quotation marks when the value would otherwise not be one word.
    static func value(_ text: String) -> String {
        let needsQuotes =
            text.isEmpty
            || text.unicodeScalars.contains { " \"=\\{}[],".unicodeScalars.contains($0) || !isHarmless($0) }
        guard needsQuotes else { return escaped(text) }
        // Backslashes first: they must not be taken for ours.
        let prepared = text.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\")
        return "\""
            + escaped(prepared.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\""))
            + "\""
    }

    /// A JSON string with its quotation marks; the same characters are escaped, as `\u` sequences.
    static func json(_ text: String) -> String {
        var result = "\""
        var count = 0
        for scalar in text.unicodeScalars {
            count += 1
            if count > maximumScalars {
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

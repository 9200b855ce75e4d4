extension Unicode.Scalar {
    /// Whether names may contain this character. False for controls, line breaks, bidirectional controls (U+202A–202E,
    /// 2066–2069, 200E, 200F, 061C) and characters without a glyph.
    ///
    /// Zero-width joiners and non-joiners are allowed, because Persian text and emoji of families need them. So are tag
    /// characters, which flag emoji need.
    package var isAllowedInNames: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        case .format: self == "\u{200C}" || self == "\u{200D}" || 0xE0020...0xE007F ~= value
        default: true
        }
    }

    /// Whether this character can be seen.
    package var isVisibleInNames: Bool { !isBlankInNames && !isIgnoredInNames }

    /// Whether this character shows only empty space.
    package var isBlankInNames: Bool {
        // U+2800, the blank braille pattern, shows nothing although Unicode does not classify it as whitespace.
        properties.isWhitespace || self == "\u{2800}"
    }

    /// Whether this character is invisible on its own: joiners, variation selectors, tags, Hangul fillers and other
    /// characters with the property `Default_Ignorable_Code_Point`.
    ///
    /// Tags are listed explicitly, because U+E0000 and U+E0002–E001F are unassigned and may be missing from a library's
    /// tables.
    package var isIgnoredInNames: Bool { properties.isDefaultIgnorableCodePoint || 0xE0000...0xE007F ~= value }
}

extension String {
    /// The form in which unique names are compared: without invisible characters, without blanks at the ends, with one
    /// space instead of several blanks, and case-folded. `String` compares canonically equivalent strings as equal.
    package var foldedForNames: String {
        // Handle ASCII names separately, because most names are ASCII and this is computed for every message to a
        // room.
        if isPlainForNames { return lowercased() }
        var scalars = UnicodeScalarView()
        var isAfterBlank = false
        for scalar in unicodeScalars where !scalar.isIgnoredInNames {
            if scalar.isBlankInNames {
                isAfterBlank = true
                continue
            }
            if isAfterBlank, !scalars.isEmpty { scalars.append(" ") }
            isAfterBlank = false
            scalars.append(scalar)
        }
        // Converting to uppercase first folds characters such as "ß", whose lowercase form differs from that of "SS".
        return String(scalars).uppercased().lowercased()
    }

    /// Whether the text has only visible ASCII characters.
    private var isPlainForNames: Bool { utf8.allSatisfy { 0x21...0x7E ~= $0 } }
}

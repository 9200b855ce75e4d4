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
    package var isVisibleInNames: Bool {
        // U+2800, the blank braille pattern, shows nothing although Unicode does not classify it as whitespace.
        !properties.isWhitespace && !properties.isDefaultIgnorableCodePoint && self != "\u{2800}"
    }
}

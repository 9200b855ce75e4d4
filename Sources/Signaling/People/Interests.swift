import Wire

/// Interests as people type them, made comparable.
enum Interests {
    /// Trimmed, case-folded, without repetitions; `nil` when there are too many or one is too long. `String` compares by
    /// canonical equivalence, so that "é" typed either way is one interest.
    static func normalised(_ interests: [String], limit: Int) -> [String]? {
        var result: [String] = []
        for interest in interests {
            let text = interest.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
            // Small letters may take more bytes than the capitals did.
            guard text.count <= Limits.interest, text.utf8.count <= Limits.name else { return nil }
            if !text.isEmpty, !result.contains(text) { result.append(text) }
        }
        return result.count <= limit ? result : nil
    }
}

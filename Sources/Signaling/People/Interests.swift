import Wire

/// Normalizes interests for comparison.
enum Interests {
    /// Returns the interests trimmed, lowercased and without duplicates, or `nil` if there are too many or one is too long.
    /// `String` compares by canonical equivalence, so both encodings of "é" are the same interest.
    static func normalized(_ interests: [String], limit: Int) -> [String]? {
        var result: [String] = []
        for interest in interests {
            let text = interest.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
            // Check the length after lowercasing, because a lowercase letter may need more bytes than its uppercase form.
            guard text.count <= Limits.interest, text.utf8.count <= Limits.name else { return nil }
            if !text.isEmpty, !result.contains(text) { result.append(text) }
        }
        return result.count <= limit ? result : nil
    }
}

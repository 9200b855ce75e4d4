/// The names of hosts in settings and answers.
enum HostName {
    /// True for a name of letters, digits, hyphens and dots (RFC 1123 §2.1) that is not an IP address.
    static func isUsable(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        let areLabels = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { byte in
                    byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                }
        }
        return areLabels && text.utf8.count <= 253 && IPAddress(text) == nil
    }
}

/// Checks of the URLs that an authority sends.
enum ACMEURL {
    /// True for an HTTPS URL of printable ASCII characters, without user name, of at most 2048 bytes (RFC 8555 §6.1).
    static func isUsable(_ text: String) -> Bool {
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            text.lowercased().hasPrefix("https://")
        else { return false }
        let authority = text.dropFirst("https://".count).prefix { !"/?#".contains($0) }
        return !authority.isEmpty && !authority.contains("@")
    }
}

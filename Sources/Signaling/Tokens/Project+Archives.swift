import Wire

/// Signatures of the URLs at which archives can be downloaded.
extension Project {
    /// What is signed. The first line keeps the signature from being one of a token.
    private func signed(_ archive: ArchiveID, _ file: String, _ expires: Int64) -> [UInt8] {
        Array("confab archive\n\(archive)\n\(file)\n\(expires)".utf8)
    }

    /// Returns the signature of a URL, as hexadecimal digits.
    ///
    /// - Parameters:
    ///   - file: the name of the file in the URL.
    ///   - expires: when the URL expires, in seconds since 1970.
    public func signature(of archive: ArchiveID, file: String, expires: Int64) -> String {
        let digits = Array("0123456789abcdef")
        return String(
            signature(of: signed(archive, file, expires)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    /// Returns whether a URL was signed by this server, with the API secret or the previous one, and has not expired.
    public func isSigned(
        _ archive: ArchiveID, file: String, expires: Int64, _ signature: String, now: Timestamp
    ) -> Bool {
        guard now.milliseconds / 1000 < expires, signature.utf8.count == 64 else { return false }
        let digits = signature.utf8.map { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 ? $0 - 48 : $0 &- 87 }
        guard digits.allSatisfy({ $0 < 16 }) else { return false }
        let code = stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        return (try? check(code, of: signed(archive, file, expires), now: now)) != nil
    }
}

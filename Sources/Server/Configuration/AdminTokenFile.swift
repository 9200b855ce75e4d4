/// The file `admin-token` in the data directory, as one line of text. The server creates it when it first serves the
/// operator's page without `admin.token`.
enum AdminTokenFile {
    static let fileName = "admin-token"
    /// The minimum length of a token in characters: those of 128 random bits in hexadecimal digits.
    static let shortest = 32

    /// Returns whether the text can be a token: it must fit in a header.
    static func isToken(_ text: String) -> Bool {
        text.utf8.count >= shortest && text.utf8.count <= 256 && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// Returns the token in the file. Creates the file with a random token if there is none.
    static func open(in directory: String) throws(DataDirectoryError) -> SecretText {
        let path = directory + "/" + fileName
        if let token = try read(path) { return token }
        var random = SystemRandomNumberGenerator()
        let token = SecretText.generated(using: &random)
        try PrivateFiles.create(
            path, contents: Array((token.revealed + "\n").utf8), suffix: String(UInt64.random(in: 0 ... .max)))
        return try read(path) ?? token
    }

    private static func read(_ path: String) throws(DataDirectoryError) -> SecretText? {
        guard let file = try PrivateFiles.read(path, limit: 4096) else { return nil }
        let text = String(decoding: file.bytes, as: UTF8.self).trimmingBlanks()
        guard isToken(text) else {
            throw DataDirectoryError(
                "\(path) has no token: \(shortest) to 256 characters without spaces. Delete the file to get a new one.")
        }
        guard !file.isReadableByOthers else {
            throw DataDirectoryError(
                "Other users can read \(path). Run chmod 600 on it, or delete it to get a new one.")
        }
        return SecretText(text)
    }
}

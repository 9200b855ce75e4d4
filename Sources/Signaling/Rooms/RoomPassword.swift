import Wire

extension RoomPassword {
    init(_ text: String, _ key: ServerKey, using generator: inout some RandomNumberGenerator) {
        let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        self.init(salt: salt, digest: Self.digest(of: text, salt, key))
    }

    func matches(_ text: String, _ key: ServerKey) -> Bool {
        constantTimeEquals(digest, Self.digest(of: text, salt, key))
    }

    private static func digest(of text: String, _ salt: [UInt8], _ key: ServerKey) -> [UInt8] {
        key.authenticationCode(Array("confab room password\n".utf8) + salt + Array(text.utf8))
    }
}

extension RoomSettings {
    /// Returns true if the room has no password, or if `text` is its password.
    func accepts(_ text: String?, _ key: ServerKey) -> Bool {
        guard let password else { return true }
        return text.map { password.matches($0, key) } ?? false
    }
}

extension Context {
    /// Returns the hash of the password that the changes set; nil if they set none or remove it.
    mutating func password(in changes: RoomChanges?) -> RoomPassword? {
        guard let text = changes?.password, !text.isEmpty else { return nil }
        return RoomPassword(text, project.serverKey, using: &random)
    }
}

import Crypto
@testable import Signaling

extension Stage {
    /// The project that all signaling tests use. `SessionIDTests` checks that other implementations derive the same
    /// keys.
    static let project = Project(apiKey: apiKey, key: SymmetricKey(data: Array(secret.utf8)))
}

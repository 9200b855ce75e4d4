import Crypto
@testable import Signaling

extension Stage {
    /// The project of all tests here. That others make the same of its key and secret, `SessionIDTests` sees to.
    static let project = Project(apiKey: apiKey, key: SymmetricKey(data: Array(secret.utf8)))
}

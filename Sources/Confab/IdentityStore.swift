import Foundation

#if canImport(Security)
import Security
#endif

/// Keeps the secret of an anonymous identity between launches of the application. The secret is the only proof of the
/// identity, so protect it like a password.
public protocol IdentityStore: Sendable {
    /// Returns the stored secret, or nil if there is none.
    func load() throws -> String?
    /// Replaces the stored secret.
    func save(_ secret: String) throws
}

/// Keeps the identity in memory, so that each launch of the program has a new identity. For tests and guests.
public final class MemoryIdentity: IdentityStore {
    private let secret: LockedValue<String?>

    /// Creates a store with this secret; nil for none.
    public init(_ secret: String? = nil) { self.secret = LockedValue(secret) }

    /// Returns the stored secret, or nil if there is none.
    public func load() -> String? { secret.withLock { $0 } }
    /// Replaces the stored secret.
    public func save(_ secret: String) { self.secret.withLock { $0 = secret } }
}

/// Keeps the identity in a file that only the user can read.
public struct FileIdentity: IdentityStore {
    private let file: URL

    /// Creates a store in a file. Its folder must exist.
    public init(_ file: URL) { self.file = file }

    /// Returns the secret in the file, or nil if there is no file or it is empty.
    public func load() throws -> String? {
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let secret = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        return secret.isEmpty ? nil : secret
    }

    /// Writes the secret to the file, which gets the permissions 0600.
    public func save(_ secret: String) throws {
        let part = file.appendingPathExtension("part")
        try? FileManager.default.removeItem(at: part)
        // Set the permissions before the contents, so that no other user can ever read the file.
        guard
            FileManager.default.createFile(
                atPath: part.path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
        else { throw CocoaError(.fileWriteUnknown) }
        // Replace the file atomically: after a crash it contains either the old or the new secret.
        guard rename(part.path, file.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}

#if canImport(Security)
/// Keeps the identity in the keychain of this device. The identity is not copied to other devices or backups.
public struct KeychainIdentity: IdentityStore {
    private let service: String
    private let account: String

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - service: the keychain item's service. Use one for each server.
    ///   - account: the keychain item's account. Use one for each identity.
    public init(service: String = "confab.identity", account: String = "default") {
        (self.service, self.account) = (service, account)
    }

    private var item: [CFString: Any] {
        [kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: account]
    }

    /// Returns the secret in the keychain, or nil if there is none.
    public func load() throws -> String? {
        var query = item
        query[kSecReturnData] = true
        var result: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess, let data = result as? Data else { throw KeychainError(status: status) }
        return String(decoding: data, as: UTF8.self)
    }

    /// Writes the secret to the keychain.
    public func save(_ secret: String) throws {
        let data = Data(secret.utf8)
        var status = SecItemUpdate(item as CFDictionary, [kSecValueData: data] as CFDictionary)
        if status == errSecItemNotFound {
            var attributes = item
            attributes[kSecValueData] = data
            // Keep the secret readable while the phone is locked, because an arriving call needs the identity.
            attributes[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            status = SecItemAdd(attributes as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw KeychainError(status: status) }
    }
}

/// Why the keychain could not be read or written.
public struct KeychainError: Error, Hashable, Sendable {
    /// The status code of the Security framework.
    public let status: OSStatus
}
#endif

extension ConfabClient.Credential {
    /// An anonymous identity in the keychain on Apple platforms, and in memory elsewhere.
    public static var anonymous: Self {
        #if canImport(Security)
        .anonymous(KeychainIdentity())
        #else
        .anonymous(MemoryIdentity())
        #endif
    }
}

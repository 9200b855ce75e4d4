import Crypto
import Foundation

/// The files of certificates from an ACME server: `acme/NAME/account.pem`, `acme/NAME/certificate.pem` and, after a failed order,
/// `acme/NAME/failure.txt` in the data directory. Each authority has a folder, so that a change of `acme.directory` orders a new certificate.
struct ACMEFiles: Sendable {
    /// Maximum size of a file in bytes.
    private static let maxFileSize = 256 << 10

    /// The folder of the authority.
    let directory: String
    /// The key of the certificate, and its chain.
    var certificatePath: String { directory + "/certificate.pem" }
    /// The key of the account.
    var accountPath: String { directory + "/account.pem" }
    /// The next key of the account, while it is being changed.
    var nextAccountPath: String { directory + "/account-next.pem" }
    /// Why the latest order failed; missing if it did not.
    private var failurePath: String { directory + "/failure.txt" }
    private let domains: [String]

    /// Returns nil if the configuration has no domains for ACME.
    init?(_ configuration: ConfabConfiguration) {
        let acme = configuration.acme
        guard !acme.domains.isEmpty else { return nil }
        domains = acme.domains
        directory = configuration.dataDirectory + "/acme/" + Self.folder(acme.directory)
    }

    /// The folder of an authority: its name, or the host of its URL with the beginning of the URL's hash.
    static func folder(_ authority: String) -> String {
        guard !ACMEAuthority.isName(authority) else { return authority }
        let hash = SHA256.hash(data: Array(authority.utf8)).prefix(4)
            .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        let host = WebURLText.host(authority).filter { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) }
        return host + "-" + hash
    }

    /// The stored certificate, if it can be used for all configured domains; otherwise nil. It may have expired.
    func certificate() throws(DataDirectoryError) -> IssuedCertificate? {
        guard let file = try PrivateFiles.read(certificatePath, limit: Self.maxFileSize),
            let text = String(validating: file.bytes, as: UTF8.self),
            let certificate = IssuedCertificate(stored: text), certificate.domains.isSuperset(of: domains)
        else { return nil }
        return certificate
    }

    /// Replaces the certificate atomically. Returns when it is on the disk.
    func store(_ certificate: IssuedCertificate) throws(DataDirectoryError) {
        try PrivateFiles.makeDirectory(directory)
        try PrivateFiles.replace(certificatePath, contents: Array(certificate.pem.revealed.utf8), suffix: Self.suffix())
    }

    /// The key of the account, which is made if it is missing.
    ///
    /// - Throws: `DataDirectoryError` if the file cannot be read or written, or contains no key.
    func accountKey() throws(DataDirectoryError) -> P256.Signing.PrivateKey {
        try key(accountPath, remedy: "Restore it from a backup, or delete it to make a new account.")
    }

    /// The next key of the account, which is made if it is missing. Each attempt to change the key uses the same one, because the
    /// authority may have accepted it without a response.
    ///
    /// - Throws: `DataDirectoryError` if there is no account, if it belongs to another user, or if a file cannot be used.
    func nextAccountKey() throws(DataDirectoryError) -> P256.Signing.PrivateKey {
        guard try PrivateFiles.read(accountPath, limit: Self.maxFileSize) != nil else {
            throw DataDirectoryError(
                "There is no account: \(accountPath) does not exist. The server makes it with the first certificate. Check "
                    + "--data-dir and acme.directory.")
        }
        try PrivateFiles.requireOwner(of: accountPath)
        return try key(nextAccountPath, remedy: "Delete it, and run the command again.")
    }

    /// Makes the next key of the account its key.
    func useNextAccountKey() throws(DataDirectoryError) {
        guard let file = try PrivateFiles.read(nextAccountPath, limit: Self.maxFileSize) else { return }
        try PrivateFiles.replace(accountPath, contents: file.bytes, suffix: Self.suffix())
        try? FileManager.default.removeItem(atPath: nextAccountPath)
    }

    private func key(_ path: String, remedy: String) throws(DataDirectoryError) -> P256.Signing.PrivateKey {
        try PrivateFiles.makeDirectory(directory)
        var file = try PrivateFiles.read(path, limit: Self.maxFileSize)
        if file == nil {
            let made = Array((P256.Signing.PrivateKey().pemRepresentation + "\n").utf8)
            try PrivateFiles.create(path, contents: made, suffix: Self.suffix())
            file = try PrivateFiles.read(path, limit: Self.maxFileSize)
        }
        guard let file, let key = PushKeys.signingKey(file.bytes) else {
            throw DataDirectoryError("\(path) does not contain a P-256 private key. \(remedy)")
        }
        return key
    }

    /// Warnings about keys that other users of the machine can read, for example after they were restored from a backup.
    func exposures() -> [String] {
        [accountPath, certificatePath].flatMap { path -> [String] in
            guard let file = (try? PrivateFiles.read(path, limit: Self.maxFileSize)) ?? nil else { return [] }
            return PushKeys.exposure(of: path, file)
        }
    }

    /// Keeps why the latest order failed, for `confab doctor` and the operator's page; nil after a success.
    func note(_ failure: ACMEFailure?) {
        guard let failure else {
            try? FileManager.default.removeItem(atPath: failurePath)
            return
        }
        // A folder that cannot be written is the failure itself, which is in the log.
        try? PrivateFiles.makeDirectory(directory)
        try? PrivateFiles.replace(
            failurePath, contents: Array("\(LogText.escaped(failure.event))\n\(failure.advice)\n".utf8),
            suffix: Self.suffix())
    }

    /// Why the latest order failed, and what to do; nil if it did not.
    func failure() -> (event: String, advice: String)? {
        guard let file = (try? PrivateFiles.read(failurePath, limit: Self.maxFileSize)) ?? nil else { return nil }
        let lines = String(decoding: file.bytes, as: UTF8.self).split(separator: "\n", maxSplits: 1)
        guard let first = lines.first else { return nil }
        return (String(first), lines.count > 1 ? lines[1].trimmingCharacters(in: .newlines) : "")
    }

    private static func suffix() -> String { String(UInt64.random(in: 0 ... .max)) }
}

import Crypto

/// The files of certificates from an ACME server: `acme/NAME/account.pem` and `acme/NAME/certificate.pem` in the data
/// directory. Each authority has a folder, so that a change of `acme.directory` orders a new certificate.
struct ACMEFiles: Sendable {
    /// Maximum size of a file in bytes.
    private static let maxFileSize = 256 << 10

    /// The folder of the authority.
    let directory: String
    /// The key of the certificate, and its chain.
    var certificatePath: String { directory + "/certificate.pem" }
    /// The key of the account.
    var accountPath: String { directory + "/account.pem" }
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
        try PrivateFiles.makeDirectory(directory)
        var file = try PrivateFiles.read(accountPath, limit: Self.maxFileSize)
        if file == nil {
            let made = Array((P256.Signing.PrivateKey().pemRepresentation + "\n").utf8)
            try PrivateFiles.create(accountPath, contents: made, suffix: Self.suffix())
            file = try PrivateFiles.read(accountPath, limit: Self.maxFileSize)
        }
        guard let file, let key = PushKeys.signingKey(file.bytes) else {
            throw DataDirectoryError(
                "\(accountPath) does not contain a P-256 private key. Restore it from a backup, or delete it to make a new "
                    + "account.")
        }
        return key
    }

    private static func suffix() -> String { String(UInt64.random(in: 0 ... .max)) }
}

import COpenSSL

/// The library that encrypts media.
public enum OpenSSLVersion {
    /// Of what runs, which may be newer than what was compiled with: `3.0.19`.
    public static var text: String { String(cString: confab_openssl_version()) }
}

import COpenSSL

/// The version of OpenSSL, the library that encrypts media.
public enum OpenSSLVersion {
    /// The version at run time, such as `3.0.19`; it can be newer than at compile time.
    public static var text: String { String(cString: confab_openssl_version()) }
}

import COpenSSL

/// The version of OpenSSL, the library for DTLS, and for SRTP unless `SRTPImplementation` names another.
public enum OpenSSLVersion {
    /// OpenSSL's version at run time, such as `3.0.19`. It can be newer than the version that Confab was compiled with.
    public static var text: String { String(cString: confab_openssl_version()) }
}

extension ConfabConfiguration {
    /// The value of `Strict-Transport-Security` (RFC 6797), which makes browsers use HTTPS for this host. Nil for no
    /// header.
    ///
    /// Nil with `--lan`: only phones that were set up trust its certificate, and other devices must still be able to
    /// reach the machine. Subdomains are not included, because they may belong to other servers.
    public var strictTransport: String? {
        guard tls.certificate != nil, tls.hsts, !lan else { return nil }
        // A year, as RFC 6797 §11.2 and browsers' lists suggest.
        return "max-age=31536000"
    }
}

extension ConfabConfiguration {
    /// Waking sleeping devices.
    public struct Push: Sendable, Equatable {
        /// The push services of browsers that may be sent to; none turns Web Push off.
        public var services = [
            "fcm.googleapis.com", "updates.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com",
        ]
        public var contact: String?
        public var allowPrivateAddresses = false
        public var authorities: String?
        public var timeout: Duration = .seconds(10)
        public var concurrency = 32
        public var queue = 1000
        public var apnsKey: String?
        public var apnsKeyID: String?
        public var apnsTeamID: String?
        public var apnsBundle: String?
        public var apnsServer: String?
        public init() {}

        /// Apple's replacement; nil for Apple's own.
        var apnsAddress: (host: String, port: Int)? {
            apnsServer.flatMap { try? WebPushURL($0 + "/") }.map { ($0.host, $0.port) }
        }
    }
}

extension Setting {
    static let push: [Setting] = [
        Setting(
            "push.services", \.push.services,
            .list(of: .word("a host name, with *. before it for all below it", where: PushServices.isPattern)),
            "Push services of browsers that this server sends to; nothing turns Web Push off."),
        Setting(
            "push.contact", \.push.contact,
            .optional(.word("a URL beginning with mailto: or https://", where: isContact)),
            "Where a push service can reach you about this server; publicURL when not given."),
        Setting(
            "push.allowPrivateAddresses", \.push.allowPrivateAddresses, .boolean,
            "Send to push services on this machine or its networks too."),
        Setting(
            "push.authorities", \.push.authorities, .optional(.path),
            "PEM file of certificate authorities to trust beside the system's, for a push service of your own."),
        Setting(
            "push.timeout", \.push.timeout, .duration(.milliseconds(10) ... .seconds(300)),
            "How long a push service may take to answer."),
        Setting("push.concurrency", \.push.concurrency, .integer(1...1000), "Requests to push services at a time."),
        Setting("push.queue", \.push.queue, .integer(1...1_000_000), "Notices waiting or being sent at a time."),
        Setting(
            "push.apnsKey", \.push.apnsKey, .optional(.path),
            "The .p8 file with the key of Apple's push service; without it no app is woken."),
        Setting(
            "push.apnsKeyID", \.push.apnsKeyID, .optional(.word("10 letters and digits", where: isAppleID)),
            "The key's id."),
        Setting(
            "push.apnsTeamID", \.push.apnsTeamID, .optional(.word("10 letters and digits", where: isAppleID)),
            "The id of the developer's team."),
        Setting(
            "push.apnsBundle", \.push.apnsBundle,
            .optional(.word("a bundle identifier such as org.example.chat", where: isBundle)),
            "The app's bundle identifier."),
        Setting(
            "push.apnsServer", \.push.apnsServer,
            .optional(.word("a URL such as https://apns.example.org:2197", where: isServer)),
            "Another server in the place of Apple's, for tests."),
    ]

    private static func isContact(_ text: String) -> Bool {
        ["mailto:", "https://"].contains(where: text.hasPrefix) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func isAppleID(_ text: String) -> Bool { text.utf8.count == 10 && text.utf8.allSatisfy(isWordByte) }

    /// Letters, digits, hyphens and dots, as Apple's CFBundleIdentifier has them; what follows goes into a header.
    private static func isBundle(_ text: String) -> Bool {
        (1...155).contains(text.utf8.count) && text.utf8.allSatisfy { isWordByte($0) || "-.".utf8.contains($0) }
    }

    private static func isServer(_ text: String) -> Bool {
        (try? WebPushURL(text + "/")).map { $0.path == "/" } ?? false
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: false
        }
    }
}

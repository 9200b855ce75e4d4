extension ConfabConfiguration {
    /// Settings for push notifications.
    public struct Push: Sendable, Equatable {
        /// Host names of the browser push services that are allowed. Empty turns Web Push off.
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

        /// Host and port of the server to use instead of Apple's, for tests; nil for Apple's.
        var apnsAddress: (host: String, port: Int)? {
            apnsServer.flatMap { try? WebPushURL($0 + "/") }.map { ($0.host, $0.port) }
        }
    }
}

extension Setting {
    static let push: [Setting] = [
        Setting(
            "push.services", \.push.services,
            .list(
                of: .word(
                    "a host name, or *.example.org for all subdomains of example.org", where: PushServices.isPattern)),
            "Browser push services that this server may send to. An empty list turns Web Push off.",
            "The defaults are the services of Chrome, Firefox, Safari and Edge. Clients choose the URLs, so do not "
                + "list servers of other parties here."),
        Setting(
            "push.contact", \.push.contact,
            .optional(.word("a URL beginning with mailto: or https://", where: isContact)),
            "Contact URL for operators of push services. Defaults to publicURL.",
            "Safari's service rejects pushes that have neither."),
        Setting(
            "push.allowPrivateAddresses", \.push.allowPrivateAddresses, .boolean,
            "Allow push services on this machine and on private networks.",
            "Use it only for your own push service: it lets clients make this server connect to internal addresses."),
        Setting(
            "push.authorities", \.push.authorities, .optional(.path),
            "PEM file of CA certificates to trust in addition to the system's, for your own push service."),
        Setting(
            "push.timeout", \.push.timeout, .duration(.milliseconds(10) ... .seconds(300)),
            "How long a push service may take to answer.", "The server then retries until the notification expires."),
        Setting(
            "push.concurrency", \.push.concurrency, .integer(1...1000), "Maximum concurrent requests to push services.",
            "At most half of them go to the same service, so that one that hangs does not stop the others."),
        Setting(
            "push.queue", \.push.queue, .integer(1...1_000_000),
            "Maximum notifications that are waiting or being sent.",
            "Further ones are dropped, because a late ring is worthless."),
        Setting(
            "push.endpointRetention", \.retention.pushEndpoints, .duration(.zero ... .seconds(3650 * 86400)),
            "How long a push endpoint is kept if the device does not register it again.",
            "Pages and apps register whenever they are opened.", applies: .atReload),
        Setting(
            "push.apnsKey", \.push.apnsKey, .optional(.path),
            "The .p8 key file for Apple's push service (APNs). Without it, apps get no push notifications.",
            "Get it from the developer account that publishes the app. Only the server should be able to read it."),
        Setting(
            "push.apnsKeyID", \.push.apnsKeyID, .optional(.word("10 letters and digits", where: isAppleID)),
            "ID of the APNs key.", "Required with apnsKey."),
        Setting(
            "push.apnsTeamID", \.push.apnsTeamID, .optional(.word("10 letters and digits", where: isAppleID)),
            "ID of the Apple developer team.", "Required with apnsKey."),
        Setting(
            "push.apnsBundle", \.push.apnsBundle,
            .optional(.word("letters, digits, hyphens and dots, such as org.example.chat", where: isBundle)),
            "Bundle identifier of the app.", "Required with apnsKey."),
        Setting(
            "push.apnsServer", \.push.apnsServer,
            .optional(.word("a URL such as https://apns.example.org:2197", where: isServer)),
            "Server to use instead of Apple's, for tests."),
    ]

    private static func isContact(_ text: String) -> Bool {
        ["mailto:", "https://"].contains(where: text.hasPrefix) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func isAppleID(_ text: String) -> Bool { text.utf8.count == 10 && text.utf8.allSatisfy(isWordByte) }

    /// True for letters, digits, hyphens and dots, as in Apple's CFBundleIdentifier. The value is sent in a header.
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

import Confab
import Foundation
import Observation

/// The first screen, for choosing a server.
@MainActor @Observable public final class WelcomeModel: Screen {
    /// The state of the typed or scanned address.
    public enum Status: Equatable, Sendable {
        case empty
        case checking(URL)
        case wrong(String)
        /// A server on the local network did not answer. Without permission to use the local network, connections to
        /// that server time out without an error.
        case localNetwork
        /// The permission to use the camera for QR codes is missing.
        case noCamera
        case tooOld(String)
        case ready(URL)
    }

    /// The address typed by the user.
    public var address = "" {
        didSet { if address != oldValue, status != .empty { status = .empty } }
    }
    public private(set) var status = Status.empty
    /// The recently used servers, newest first.
    public private(set) var recent: [URL]

    static let appTooOldText = "This app is too old for the server. Update the app."
    /// The maximum number of servers to remember.
    static let maxRecent = 5
    /// Whether this device can scan QR codes with its camera.
    public let canScan: Bool
    /// Whether the camera is currently scanning for a QR code.
    public var isScanning = false
    private let permissions: any Permissions
    private let check: @MainActor (URL) -> Void
    private let use: @MainActor (URL) -> Void
    private let back: @MainActor () -> Void
    /// Whether there is a previous server to return to.
    public private(set) var canGoBack = false

    init(
        recent: [URL], permissions: any Permissions, canScan: Bool = false, check: @escaping @MainActor (URL) -> Void,
        use: @escaping @MainActor (URL) -> Void,
        goBack: @escaping @MainActor () -> Void = {}
    ) {
        self.recent = Array(recent.prefix(Self.maxRecent))
        (self.permissions, self.canScan) = (permissions, canScan)
        (self.check, self.use, back) = (check, use, goBack)
    }

    /// Resets the screen when it is shown again.
    func show(canGoBack: Bool) {
        (address, status) = ("", .empty)
        self.canGoBack = canGoBack
    }

    public var statusText: String {
        switch status {
        case .empty: ""
        case .checking(let url): "Checking \(url.host() ?? "")…"
        case .wrong(let text): text
        case .localNetwork:
            "This server did not answer. It is on your local network: allow Local Network for Confab in Settings, "
                + "and check that the server is running."
        case .noCamera: "Confab is not allowed to use the camera. Allow it in Settings, or type the address."
        case .tooOld(let text): text
        case .ready(let url): "Connected to \(url.host() ?? "")."
        }
    }

    public var isChecking: Bool { if case .checking = status { true } else { false } }
    public var canContinue: Bool { !isChecking && !address.allSatisfy(\.isWhitespace) }
    public var offersSettings: Bool { status == .localNetwork || status == .noCamera }
    public var canStartScan: Bool { canScan && !isChecking }
    public let sloganText = "Talk face to face."
    public let privacyText =
        "The server connects you with others. It sees your IP address and the name you choose. It stores chats only if "
        + "they are reported, and your call history until you delete it."

    /// Checks the typed or scanned address.
    public func submit() {
        guard !isChecking else { return }
        guard let url = ServerAddress.url(from: address) else {
            status = .wrong("This is not a server address. Enter one like https://chat.example.org.")
            return
        }
        status = .checking(url)
        check(url)
    }

    /// Starts scanning for a QR code.
    public func scan() {
        guard canStartScan else { return }
        permissions.settle([.camera]) { [weak self] in
            guard let self else { return }
            if permissions.mayShow { isScanning = true } else { status = .noCamera }
        }
    }

    /// Handles a scanner that failed to start.
    public func scanFailed() {
        guard isScanning else { return }
        isScanning = false
        status =
            permissions.mayShow ? .wrong("The camera could not be started. Type the address.") : .noCamera
    }

    /// Handles visible QR codes. A code with an address takes precedence.
    public func scanned(oneOf codes: [String]) {
        let isAddress: (String) -> Bool = { ServerAddress.link($0) != nil || ServerAddress.url(from: $0) != nil }
        if let code = codes.first(where: isAddress) ?? codes.first { scanned(code) }
    }

    /// Handles the text of a scanned QR code.
    public func scanned(_ text: String) {
        isScanning = false
        guard !isChecking else { return }
        address = ServerAddress.link(text)?.absoluteString ?? text
        submit()
    }

    /// Fills in an address, which the user has to confirm.
    func offer(_ url: URL) { address = url.absoluteString }

    /// Returns to the previous server.
    public func goBack() {
        guard canGoBack else { return }
        status = .empty
        back()
    }

    public func choose(_ url: URL) {
        guard !isChecking else { return }
        address = url.absoluteString
        submit()
    }

    public func forget(_ url: URL) { recent.removeAll { $0 == url } }

    /// Handles the result of a check. A late result for another address is ignored.
    func checked(_ url: URL, _ failure: ConfabError?) {
        guard status == .checking(url) else { return }
        switch failure?.code {
        case nil:
            recent = [url] + recent.filter { $0 != url }.prefix(Self.maxRecent - 1)
            status = .ready(url)
            use(url)
        case .serverURLInvalid: status = .wrong("This is not a Confab server. Check the address.")
        case .versionUnsupported: status = .tooOld(Self.appTooOldText)
        default:
            status =
                ServerAddress.isLocal(url)
                ? .localNetwork : .wrong("The server is not responding. Check the address and your network.")
        }
    }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [
            .title("Confab"), .text(sloganText), .field("Server", value: address, hint: "https://chat.example.org"),
        ]
        if canScan { lines.append(.button("Scan QR code", isEnabled: canStartScan)) }
        if !statusText.isEmpty { lines.append(.text(statusText)) }
        if offersSettings { lines.append(.button("Open Settings")) }
        lines.append(.button("Continue", isEnabled: canContinue))
        if canGoBack { lines.append(.button("Cancel")) }
        if !recent.isEmpty { lines.append(.title("Recent servers")) }
        lines += recent.map { .row($0.absoluteString) }
        return lines + [.text(privacyText)]
    }
}

/// Parses server addresses that people type or scan.
public enum ServerAddress {
    /// Returns the URL of a typed address. Assumes `https`, or `http` for addresses on the local network. Returns nil
    /// if the address is invalid, or if it has `http` and is not on the local network.
    public static func url(from text: String) -> URL? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty, text.utf8.count <= 512, !text.contains(where: \.isWhitespace) else { return nil }
        if text.contains("://") { return checked(text) }
        // Add the brackets that a URL requires to an IPv6 address without a port, because people copy it without them.
        let isBare = text.count(where: { $0 == ":" }) > 1 && text.allSatisfy { $0 == ":" || $0.isHexDigit }
        let authority = isBare ? "[\(text)]" : text
        guard let secure = checked("https://\(authority)") else { return nil }
        return isLocal(secure) ? checked("http://\(authority)") : secure
    }

    /// Returns the server of a link `confab://server?url=…`; nil for any other text.
    public static func link(_ text: String) -> URL? {
        guard let parts = URLComponents(string: text), parts.scheme == "confab", parts.host == "server" else {
            return nil
        }
        return parts.queryItems?.first { $0.name == "url" }?.value.flatMap(url(from:))
    }

    private static func checked(_ text: String) -> URL? {
        guard var parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = parts.host, !host.isEmpty, parts.user == nil
        else { return nil }
        (parts.scheme, parts.query, parts.fragment) = (scheme, nil, nil)
        parts.percentEncodedPath = serverPath(parts.percentEncodedPath)
        guard let url = parts.url else { return nil }
        // Allow HTTP only on the local network: elsewhere, anyone on the path could eavesdrop.
        return scheme == "https" || isLocal(url) ? url : nil
    }

    /// Removes the page from a path, so that the server's path remains. People scan and paste the addresses of pages,
    /// and a server can be below a path.
    private static func serverPath(_ path: String) -> String {
        var segments = path.split(separator: "/")
        if segments.dropLast().last == "room" {
            segments.removeLast(2)
        } else if let last = segments.last, pages.contains(String(last)) {
            segments.removeLast()
        }
        return segments.map { "/\($0)" }.joined()
    }

    private static let pages: Set = ["strangers", "nearby", "rooms", "try", "lan"]

    /// Returns whether a server is on the local network: its host is a name without a dot, a name ending in `.local`,
    /// or a private, loopback or link-local address.
    public static func isLocal(_ url: URL) -> Bool {
        guard let host = url.host()?.lowercased() else { return false }
        if host.hasSuffix(".local") || host == "localhost" { return true }
        // Loopback, and the private and link-local addresses of RFC 4193 and RFC 4291.
        let address = host.trimmingCharacters(in: ["[", "]"])
        if address.contains(":") {
            return address == "::1" || ["fc", "fd", "fe8", "fe9", "fea", "feb"].contains(where: address.hasPrefix)
        }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        if numbers.count == 4, let first = numbers[0], let second = numbers[1], !numbers.contains(nil) {
            return first == 10 || first == 127 || (first == 192 && second == 168) || (first == 169 && second == 254)
                || (first == 172 && (16...31).contains(second))
        }
        return !host.contains(".") && !host.contains(":")
    }
}

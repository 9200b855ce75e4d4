import NIOHTTP1
import Signaling

extension HTTPConnection {
    /// What the configuration says about a connection.
    struct Settings: Equatable, Sendable {
        /// The path that a proxy may have left in the target of a request.
        var basePath: BasePath
        var allowsSocketIO: Bool
        var allowsPerch: Bool
        var messageSize: Int
        var descriptionSize: Int
        /// Maximum bytes of a file for a room, and how long it may take to arrive.
        var fileSize: Int
        var fileTime: Duration
        /// How long the first request may take. Includes a TLS handshake.
        var headerTimeout: Duration
        /// How long each later request may take, and the pause before it.
        var idleTimeout: Duration { headerTimeout * 6 }
        /// The remote address of the connection.
        var peer: IPAddress
        var trustedProxies: TrustedProxies

        init(_ configuration: ConfabConfiguration, peer: IPAddress) {
            self.peer = peer
            trustedProxies = configuration.trustedProxies
            basePath = BasePath(configuration)
            allowsSocketIO = configuration.socketIO.isEnabled
            allowsPerch = configuration.perch.isEnabled
            messageSize = configuration.rules.messageSize
            descriptionSize = configuration.rules.descriptionSize
            fileSize = configuration.rules.roomFileSize
            fileTime = configuration.rules.roomUploadTime
            headerTimeout = configuration.limits.requestHeaderTimeout
        }

        /// Returns the refusal of a request with these headers, whatever it is for.
        func refusal(of head: HTTPRequestHead) -> Refusal? {
            if head.version == .http1_1, head.headers["Host"].count != 1 { return .hostMissing }
            if head.version != .http1_1, head.headers.contains(name: "Transfer-Encoding") {
                return .transferEncodingUnknown
            }
            let client = ForwardedAddress.client(peer: peer, headers: head.headers, trusted: trustedProxies)
            return client == nil ? .forwardingContradictory : nil
        }

        /// How long this request may take.
        func timeLimit(_ head: HTTPRequestHead) -> Duration {
            Self.isUpload(head) ? max(fileTime, idleTimeout) : idleTimeout
        }

        /// Maximum bytes of the body of a request to the router. A file goes to disk as it arrives.
        func maxRoutedBytes(_ head: HTTPRequestHead) -> Int {
            Self.isUpload(head) ? max(fileSize, HTTPConnection.maxBodyBytes) : HTTPConnection.maxBodyBytes
        }

        /// Whether the request sends a file for a room.
        static func isUpload(_ head: HTTPRequestHead) -> Bool {
            head.method == .PUT && head.uri.hasPrefix("/v1/rooms/") && head.uri.contains("/files/")
        }

        func maxBodyBytes(_ request: EndpointRequest) -> Int {
            switch request {
            case .whip(let request): request.action == .post ? descriptionSize : messageSize
            case .socketIO: messageSize
            case .perch: PerchHTTPRequest.maxBodyBytes
            }
        }
    }
}

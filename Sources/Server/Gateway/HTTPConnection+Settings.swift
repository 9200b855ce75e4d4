import NIOHTTP1
import Signaling

extension HTTPConnection {
    /// The settings of a connection from the configuration.
    struct Settings: Equatable, Sendable {
        /// The path that a proxy may have left in the target of a request.
        var basePath: BasePath
        var allowsSocketIO: Bool
        var allowsPerch: Bool
        var messageSize: Int
        var descriptionSize: Int
        /// Maximum size of a file in a room, in bytes.
        var fileSize: Int
        /// Maximum duration of the upload of a file.
        var fileTime: Duration
        /// The maximum time until the head of the first request has arrived, including a TLS handshake.
        var headerTimeout: Duration
        /// The maximum time between a response and the arrival of the next request's head, and between the head and
        /// the end of a request. An upload may take longer.
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

        /// Returns why a request with these headers is refused, regardless of its path; nil if it is not refused.
        func refusal(of head: HTTPRequestHead) -> Refusal? {
            if head.version == .http1_1, head.headers["Host"].count != 1 { return .hostMissing }
            if head.version != .http1_1, head.headers.contains(name: "Transfer-Encoding") {
                return .transferEncodingUnknown
            }
            let client = ForwardedAddress.client(peer: peer, headers: head.headers, trusted: trustedProxies)
            return client == nil ? .forwardingContradictory : nil
        }

        /// Returns how long this request may take after its head.
        func timeLimit(_ head: HTTPRequestHead) -> Duration {
            Self.isUpload(head) ? max(fileTime, idleTimeout) : idleTimeout
        }

        /// Returns the maximum size of the body of a request to the router, in bytes. A room file may be larger than
        /// other bodies, because it is written to disk as it arrives.
        func maxRoutedBytes(_ head: HTTPRequestHead) -> Int {
            Self.isUpload(head) ? max(fileSize, HTTPConnection.maxBodyBytes) : HTTPConnection.maxBodyBytes
        }

        /// The refusal of a larger body.
        func tooLarge(_ head: HTTPRequestHead) -> Refusal {
            OpenTokEndpoint.serves(head.uri) ? .operationTooLarge : .bodyTooLarge(limit: maxRoutedBytes(head))
        }

        /// Whether the request sends a file for a room.
        static func isUpload(_ head: HTTPRequestHead) -> Bool {
            head.method == .PUT && head.uri.hasPrefix("/v1/rooms/") && head.uri.contains("/files/")
        }

        func maxBodyBytes(_ request: EndpointRequest) -> Int {
            switch request {
            case .whip(let request): request.method == .POST ? descriptionSize : messageSize
            case .socketIO: messageSize
            case .perch: PerchHTTPRequest.maxBodyBytes
            }
        }
    }
}

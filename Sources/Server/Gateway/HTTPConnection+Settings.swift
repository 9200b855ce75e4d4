import Signaling

extension HTTPConnection {
    /// What the configuration says about a connection.
    struct Settings: Equatable, Sendable {
        var allowsSocketIO: Bool
        var allowsPerch: Bool
        var messageSize: Int
        var descriptionSize: Int
        /// How long the first request may take. Includes a TLS handshake.
        var headerTimeout: Duration
        /// How long each later request may take, and the pause before it.
        var idleTimeout: Duration { headerTimeout * 6 }

        init(_ configuration: ConfabConfiguration) {
            allowsSocketIO = configuration.socketIO.isEnabled
            allowsPerch = configuration.perch.isEnabled
            messageSize = configuration.rules.messageSize
            descriptionSize = configuration.rules.descriptionSize
            headerTimeout = configuration.limits.requestHeaderTimeout
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

import Signaling

extension HTTPConnection {
    /// What the configuration says about a connection.
    struct Settings: Equatable, Sendable {
        var allowsSocketIO: Bool
        var messageSize: Int
        var descriptionSize: Int
        /// How long the first request may take. Includes a TLS handshake.
        var headerTimeout: Duration
        /// How long each later request may take, and the pause before it.
        var idleTimeout: Duration { headerTimeout * 6 }

        init(_ configuration: ConfabConfiguration) {
            allowsSocketIO = configuration.socketIO.isEnabled
            messageSize = configuration.rules.messageSize
            descriptionSize = configuration.rules.descriptionSize
            headerTimeout = configuration.limits.requestHeaderTimeout
        }

        func maxBodyBytes(_ request: EndpointRequest) -> Int {
            if case .whip(let request) = request, request.action == .post { descriptionSize } else { messageSize }
        }
    }
}

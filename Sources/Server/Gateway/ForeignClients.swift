/// The clients of the protocols other than the native one. Used only on the gateway's event loop.
final class ForeignClients {
    let gateway: Gateway
    let whip: WHIPDirectory
    let socketIO: SocketIODirectory
    let perch: PerchDirectory

    init(_ gateway: Gateway) {
        self.gateway = gateway
        whip = WHIPDirectory(gateway: gateway)
        socketIO = SocketIODirectory(gateway: gateway)
        perch = PerchDirectory(gateway: gateway)
    }
}

@testable import SFU

extension Router {
    /// Returns the half over which a client publishes.
    func publisher(_ client: Key) -> Publisher? { peers.peer(client, .send)?.half as? Publisher }

    /// Returns the half over which a client receives.
    func subscriber(_ client: Key) -> Subscriber? { peers.peer(client, .receive)?.half as? Subscriber }
}

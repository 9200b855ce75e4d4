import Logging
import NIOCore
import Signaling
import Wire

/// Stores all WHIP and WHEP resources, keyed by the unguessable last part of their URLs, and creates new ones. Used
/// only on the gateway's event loop.
final class WHIPDirectory {
    /// The owner of this directory.
    unowned let gateway: Gateway
    private var resources: [String: WHIPResource] = [:]

    init(gateway: Gateway) { self.gateway = gateway }

    /// - Parameter isWHIP: True for WHIP, false for WHEP. A resource is found only under its own protocol.
    func resource(_ name: String, isWHIP: Bool) -> WHIPResource? {
        resources[name].flatMap { $0.isWHIP == isWHIP ? $0 : nil }
    }

    /// Creates a resource and submits it to the hub.
    /// - Parameter respond: Called once, possibly before this function returns. Not called after `WHIPResource.abandon`.
    func make(
        _ session: SessionID, _ purpose: ResourcePurpose, token: String, body: [UInt8], from address: IPAddress,
        respond: @escaping (EndpointResponse) -> Void
    ) throws(WireError) -> WHIPResource {
        try gateway.admit(address, at: .resource)
        let grant = try gateway.reception.admit(token, session, purpose, now: gateway.runner.wallNow)
        let offer = try WHIPBody.offer(body, for: purpose)
        var generator = SystemRandomNumberGenerator()
        // 128 random bits make the URL unguessable, although requests to it need the token as well.
        let name = ResourceName.random(using: &generator).description
        let resource = WHIPResource(name: name, isWHIP: purpose == .publish, address: address, gateway: gateway)
        resources[name] = resource
        gateway.register(resource)
        resource.open(
            purpose, grant, token: token, offer, address: gateway.limitingText(address), respond: respond)
        return resource
    }

    func forget(_ resource: WHIPResource) {
        guard resources.removeValue(forKey: resource.name) != nil else { return }
        gateway.release(resource)
    }
}

/// The random part of a resource's URL.
private struct ResourceName: Identifier128 {
    let high: UInt64
    let low: UInt64
}

extension HelloValidator {
    /// Verifies the token, before the body is parsed.
    func admit(
        _ token: String, _ session: SessionID, _ purpose: ResourcePurpose, now: Timestamp
    ) throws(WireError) -> SessionGrant {
        try project.verifyResourceToken(token, for: session, purpose, now: now)
    }
}

/// A WHIP or WHEP resource. It passes requests to the hub and returns the replies. Used only on the gateway's event loop.
final class WHIPResource: GatewayConnection, RunnerSocket {
    let name: String
    let isWHIP: Bool
    let address: IPAddress
    var group = 0
    var slot: AddressBudgets.Slot?
    var excess: Budget?
    var queuedBytes: Int { 0 }
    private let gateway: Gateway
    private var socket: SocketID?
    /// The function that responds to the POST request that created the resource; nil after it has responded.
    private var created: ((EndpointResponse) -> Void)?
    /// Functions that respond to later requests, keyed by request number. Each belongs to an HTTP connection that
    /// waits for a response.
    private var waiting: [UInt64: (EndpointResponse) -> Void] = [:]
    private var lastRequest: UInt64 = 0

    init(name: String, isWHIP: Bool, address: IPAddress, gateway: Gateway) {
        (self.name, self.isWHIP, self.address, self.gateway) = (name, isWHIP, address, gateway)
    }

    /// The resource's URL. It is absolute only if `publicURL` is set, because the server does not know its proxies.
    private var location: String {
        "\(gateway.configuration.publicURL ?? "")/\(isWHIP ? "whip" : "whep")/\(WHIPRequest.resources)/\(name)"
    }

    func open(
        _ purpose: ResourcePurpose, _ grant: SessionGrant, token: String, _ offer: ResourceOffer, address: String,
        respond: @escaping (EndpointResponse) -> Void
    ) {
        created = respond
        let socket = gateway.runner.register(self)
        self.socket = socket
        gateway.logger.debug("Resource requested", metadata: ["socket": "\(socket.rawValue)", "address": "\(address)"])
        gateway.runner.submit(
            .resourceArrived(
                ResourceArrival(
                    socket: socket, purpose: purpose, grant: grant, token: token, offer: offer, address: address)
            )
        )
    }

    /// Submits a request to the hub.
    /// - Parameter respond: Called once, possibly before this function returns.
    func request(_ action: ResourceRequest.Action, token: String, respond: @escaping (EndpointResponse) -> Void) {
        guard let socket else { return respond(EndpointResponse(.noResource)) }
        lastRequest += 1
        waiting[lastRequest] = respond
        gateway.runner.submit(.requested(socket, ResourceRequest(re: lastRequest, token: token, action)))
    }

    /// Ends the resource because its creator's connection closed before the response. No client knows its URL.
    func abandon() {
        guard created != nil else { return }
        created = nil
        end()
    }

    private func end() {
        guard let socket else { return }
        self.socket = nil
        gateway.runner.unregister(socket, leaving: true)
        finish()
    }

    private func finish() {
        let gone = EndpointResponse(.noResource)
        let (created, waiting) = (created, waiting)
        (self.created, self.waiting) = (nil, [:])
        created?(gone)
        for respond in waiting.values { respond(gone) }
        gateway.whip.forget(self)
    }

    // MARK: The runner (RunnerSocket)

    func write(_ bytes: [UInt8]) {}
    func flush() {}

    func reply(_ reply: ResourceReply) {
        let answer = EndpointResponse(reply, location: location)
        switch reply {
        case .created, .refused(nil, _):
            let respond = created
            created = nil
            respond?(answer)
        case .accepted(let re), .restarted(let re, _, _), .deleted(let re), .refused(.some(let re), _):
            waiting.removeValue(forKey: re)?(answer)
        }
    }

    /// Called when the hub ends the resource.
    func close(_ code: CloseCode, _ reason: String) { end() }

    // MARK: The gateway (GatewayConnection)

    /// Does nothing: the media plane checks liveness (RFC 7675).
    func tick() {}

    func expel(_ error: WireError, _ code: CloseCode) {
        if let socket { gateway.runner.submit(.expel(socket, error, code)) }
    }

    func goAway() {
        socket = nil
        finish()
    }
}

extension WireError {
    static let noResource = WireError(.notFound, "This resource does not exist or has ended. Create a new one.")
}

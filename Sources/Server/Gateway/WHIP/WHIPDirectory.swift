import Logging
import NIOCore
import Signaling
import Wire

/// The resources of WHIP and WHEP there are, by the unguessable last part of their addresses; makes new ones. On the
/// gateway's event loop only.
final class WHIPDirectory {
    /// Set by the gateway that owns this.
    unowned let gateway: Gateway
    private var resources: [String: WHIPResource] = [:]

    init(gateway: Gateway) { self.gateway = gateway }

    /// - Parameter isWHIP: an address is of one of the two protocols.
    func resource(_ name: String, isWHIP: Bool) -> WHIPResource? {
        resources[name].flatMap { $0.isWHIP == isWHIP ? $0 : nil }
    }

    /// Asks the rules for a resource.
    /// - Parameter respond: called once, perhaps at once; never after `WHIPResource.abandon`.
    /// - Returns: nil if it was refused at once.
    func make(
        _ session: SessionID, _ purpose: ResourcePurpose, token: String, body: [UInt8], from address: IPAddress,
        respond: @escaping (WHIPAnswer) -> Void
    ) throws(WireError) -> WHIPResource {
        try gateway.admit(address, at: .resource)
        let grant = try gateway.reception.admit(token, session, purpose, now: gateway.runner.now)
        let offer = try WHIPBody.offer(body, for: purpose)
        var generator = SystemRandomNumberGenerator()
        // 128 random bits: who knows the address is not let in by that alone, but need not be guessed either.
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

/// Names a resource to whoever made it.
private struct ResourceName: Identifier128 {
    let high: UInt64
    let low: UInt64
}

extension Reception {
    /// Judges a token before anything is read of what came with it.
    func admit(
        _ token: String, _ session: SessionID, _ purpose: ResourcePurpose, now: Timestamp
    ) throws(WireError) -> SessionGrant {
        try project.verifyResourceToken(token, for: session, purpose, now: now)
    }
}

/// One resource among the gateway's: hands requests to the rules, and their answers back. On the gateway's event loop only.
final class WHIPResource: GatewayConnection, RunnerSocket {
    let name: String
    let isWHIP: Bool
    let address: IPAddress
    var group = 0
    private let gateway: Gateway
    private var socket: SocketID?
    /// For the answer to the POST.
    private var created: ((WHIPAnswer) -> Void)?
    /// For those to later requests; as many as there are connections that wait.
    private var waiting: [UInt64: (WHIPAnswer) -> Void] = [:]
    private var lastRequest: UInt64 = 0

    init(name: String, isWHIP: Bool, address: IPAddress, gateway: Gateway) {
        (self.name, self.isWHIP, self.address, self.gateway) = (name, isWHIP, address, gateway)
    }

    /// As absolute as it can be: only the operator knows what stands in front of the server.
    private var location: String {
        "\(gateway.configuration.publicURL ?? "")/\(isWHIP ? "whip" : "whep")/\(WHIPRequest.resources)/\(name)"
    }

    func open(
        _ purpose: ResourcePurpose, _ grant: SessionGrant, token: String, _ offer: ResourceOffer, address: String,
        respond: @escaping (WHIPAnswer) -> Void
    ) {
        created = respond
        let socket = gateway.runner.register(self)
        self.socket = socket
        gateway.logger.debug("Resource asked for", metadata: ["socket": "\(socket.rawValue)", "address": "\(address)"])
        gateway.runner.submit(
            .resourceArrived(
                ResourceArrival(
                    socket: socket, purpose: purpose, grant: grant, token: token, offer: offer, address: address)
            )
        )
    }

    /// - Parameter respond: called once, perhaps at once.
    func ask(_ action: ResourceRequest.Action, token: String, respond: @escaping (WHIPAnswer) -> Void) {
        guard let socket else { return respond(WHIPAnswer(.noResource)) }
        lastRequest += 1
        waiting[lastRequest] = respond
        gateway.runner.submit(.requested(socket, ResourceRequest(re: lastRequest, token: token, action)))
    }

    /// Whoever asked for it will never know its address: the connection broke before the answer.
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
        let gone = WHIPAnswer(.noResource)
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
        let answer = WHIPAnswer(reply, location: location)
        switch reply {
        case .created, .refused(nil, _):
            let respond = created
            created = nil
            respond?(answer)
        case .accepted(let re), .restarted(let re, _, _), .deleted(let re), .refused(.some(let re), _):
            waiting.removeValue(forKey: re)?(answer)
        }
    }

    /// The rules are done with it.
    func close(_ code: CloseCode, _ reason: String) { end() }

    // MARK: The gateway (GatewayConnection)

    /// Its media plane asks whether it lives (RFC 7675).
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
    static let noResource = WireError(.notFound, "There is no such resource, or it is over.")
}

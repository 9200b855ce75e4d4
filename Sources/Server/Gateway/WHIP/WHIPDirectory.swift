import Logging
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// All WHIP and WHEP resources, keyed by the unguessable last part of their URLs, and the handler of requests under
/// `/whip/` and `/whep/`: WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep). Used only on the gateway's event loop.
///
/// It parses and validates requests. The hub decides what they may do.
final class WHIPDirectory {
    let gateway: Gateway
    private var resources: [String: WHIPResource] = [:]

    init(gateway: Gateway) { self.gateway = gateway }

    func respond(to request: WHIPRequest, _ call: GateRequest) async throws(WireError) -> GateResponse {
        if request.method == .OPTIONS { return GateResponse(status: 200, headers: request.accepted) }
        if request.target == .nothing {
            throw WireError(.notFound, "No such session, stream or resource. Check the URL.")
        }
        guard request.isAllowed else {
            throw WireError(.methodNotAllowed, "Method not allowed. Use \(request.allowed).")
        }
        guard let token = call.headers.bearerToken else { throw .tokenMissing }
        let (resource, reply): (WHIPResource, ResourceReply)
        switch request.target {
        case .endpoint(let session, let purpose):
            try call.headers.require(WHIPBody.offerType)
            try gateway.admit(call.address, at: .resource)
            let projects = gateway.runner.hubSettings.projects
            // Verify the token before the body is parsed.
            let grant = try projects.verifyResourceToken(token, for: session, purpose, now: gateway.runner.wallNow)
            let offer = try WHIPBody.offer(call.body, for: purpose)
            resource = make(purpose, from: call.address)
            reply = await resource.open(purpose, grant, token: token, offer, call.trace)
            // End the resource if its creator's connection closed before the response, because no client knows the
            // URL.
            if Task.isCancelled { resource.close(.normal, "") }
            if case .refused(_, let error) = reply, let redirect = request.redirect(error) { return redirect }
        case .resource(let name):
            // A resource is found only under its own protocol.
            guard let found = resources[name], found.isWHIP == request.isWHIP else { throw .noResource }
            resource = found
            reply = await resource.request(try action(request, call), token: token)
        case .nothing: throw .noResource
        }
        return try GateResponse(reply, location: resource.location)
    }

    private func make(_ purpose: ResourcePurpose, from address: IPAddress) -> WHIPResource {
        var generator = SystemRandomNumberGenerator()
        // 128 random bits make the URL unguessable, although requests to it need the token as well.
        let name = gateway.idPrefix + ResourceName.random(using: &generator).description
        let resource = WHIPResource(name: name, isWHIP: purpose == .publish, address: address, directory: self)
        resources[name] = resource
        gateway.register(resource)
        return resource
    }

    private func action(_ request: WHIPRequest, _ call: GateRequest) throws(WireError) -> ResourceRequest.Action {
        guard request.method == .PATCH else { return .delete }
        try call.headers.require(WHIPBody.fragmentType)
        return .patch(try WHIPBody.fragment(call.body), call.headers.entityCondition)
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

extension EndpointLayers {
    static func whip(_ request: WHIPRequest) -> EndpointLayers {
        EndpointLayers(
            countsMessages: true,
            sharing: Sharing(
                methods: request.allowed, headers: "Authorization, Content-Type, If-Match",
                exposed: "Location, ETag, Link, Retry-After"),
            response: { error in
                var response = GateResponse(error)
                if error.code == .methodNotAllowed { response.headers.add(name: "Allow", value: request.allowed) }
                if error.code == .contentType { response.headers.add(contentsOf: request.accepted) }
                return response
            })
    }
}

extension HTTPHeaders {
    fileprivate func require(_ type: String) throws(WireError) {
        guard hasContentType(type) else {
            throw WireError(.contentType, "Send a body of type \(type), without Content-Encoding.")
        }
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
    private let directory: WHIPDirectory
    private var socket: SocketID?
    /// The requests that wait for a reply, keyed by number. 0 is the request that created the resource.
    private var waiting: [UInt64: CheckedContinuation<ResourceReply, Never>] = [:]
    private var lastRequest: UInt64 = 0

    init(name: String, isWHIP: Bool, address: IPAddress, directory: WHIPDirectory) {
        (self.name, self.isWHIP, self.address, self.directory) = (name, isWHIP, address, directory)
    }

    private var gateway: Gateway { directory.gateway }

    /// The resource's URL. It is absolute only if `publicURL` is set: otherwise the server does not know under which
    /// URL a proxy serves it.
    var location: String {
        "\(gateway.configuration.publicURL ?? "")/\(isWHIP ? "whip" : "whep")/\(WHIPRequest.resources)/\(name)"
    }

    func open(
        _ purpose: ResourcePurpose, _ grant: SessionGrant, token: String, _ offer: ResourceOffer, _ trace: RequestTrace?
    ) async -> ResourceReply {
        let socket = gateway.runner.register(self)
        self.socket = socket
        gateway.runner.traces?.opened(socket, by: trace)
        let address = gateway.limitingText(address)
        gateway.logger.debug("Resource requested", metadata: ["socket": "\(socket.rawValue)", "address": "\(address)"])
        let arrival = ResourceArrival(
            socket: socket, purpose: purpose, grant: grant, token: token, offer: offer, address: address)
        return await reply(to: 0, .resourceArrived(arrival))
    }

    func request(_ action: ResourceRequest.Action, token: String) async -> ResourceReply {
        guard let socket else { return .refused(re: nil, .noResource) }
        lastRequest += 1
        return await reply(
            to: lastRequest, .requested(socket, ResourceRequest(re: lastRequest, token: token, action)))
    }

    /// Submits a request to the hub and waits for the reply. The hub may reply before `submit` returns.
    private func reply(to number: UInt64, _ input: Input) async -> ResourceReply {
        await withCheckedContinuation { continuation in
            waiting[number] = continuation
            gateway.runner.submit(input)
        }
    }

    private func finish() {
        socket = nil
        let waiting = waiting
        self.waiting = [:]
        for continuation in waiting.values { continuation.resume(returning: .refused(re: nil, .noResource)) }
        directory.forget(self)
    }

    // MARK: The runner (RunnerSocket)

    func write(_ bytes: [UInt8]) {}
    func flush() {}

    func reply(_ reply: ResourceReply) { waiting.removeValue(forKey: reply.re)?.resume(returning: reply) }

    /// Called when the hub ends the resource.
    func close(_ code: CloseCode, _ reason: String) {
        guard let socket else { return }
        self.socket = nil
        gateway.runner.unregister(socket, leaving: true)
        finish()
    }

    // MARK: The gateway (GatewayConnection)

    /// Does nothing: the media plane checks liveness (RFC 7675).
    func tick() {}

    func expel(_ error: WireError, _ code: CloseCode) {
        if let socket { gateway.runner.submit(.expel(socket, error, code)) }
    }

    func goAway(_: CloseCode) { finish() }
}

extension ResourceReply {
    /// The number of the request to which this is the reply. 0 is the request that created the resource.
    fileprivate var re: UInt64 {
        switch self {
        case .created: 0
        case .accepted(let re), .restarted(let re, _, _), .deleted(let re): re
        case .refused(let re, _): re ?? 0
        }
    }
}

extension GateResponse {
    /// - Parameter location: The URL of the resource that the request created or addressed.
    fileprivate init(_ reply: ResourceReply, location: String) throws(WireError) {
        switch reply {
        case .created(let sdp, let tag, let ice):
            self.init(status: 201, type: WHIPBody.offerType, body: sdp.utf8)
            headers.add(name: "Location", value: location)
            headers.add(name: "ETag", value: "\"\(tag)\"")
            for link in ice.servers.flatMap(\.links) { headers.add(name: "Link", value: link) }
        case .accepted: self.init(status: 204)
        case .restarted(_, let sdp, let tag):
            guard let fragment = WHIPBody.fragment(ofAnswer: sdp) else {
                throw WireError(.internalError, "The server produced an invalid answer. Create a new resource.")
            }
            self.init(status: 200, type: WHIPBody.fragmentType, body: fragment.utf8)
            headers.add(name: "ETag", value: "\"\(tag)\"")
        case .deleted: self.init(status: 200)
        case .refused(_, let error): throw error
        }
    }
}

extension ICEServer {
    /// `Link` header values, one per URL (RFC 9725 §4.6).
    fileprivate var links: [String] {
        (urls ?? []).map { url in
            var link = "<\(url)>; rel=\"ice-server\""
            if let username, let credential {
                link += "; username=\(Self.quoted(username)); credential=\(Self.quoted(credential))"
                link += "; credential-type=\"password\""
            }
            return link
        }
    }

    /// Returns the text as a quoted string (RFC 9110 §5.6.4). Drops control characters, which a TURN password may
    /// contain but a header must not.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars where character.value >= 0x20 && character.value != 0x7F {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}

extension WireError {
    static let noResource = WireError(.notFound, "This resource does not exist or has ended. Create a new one.")
}

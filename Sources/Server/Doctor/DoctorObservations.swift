import Wire

// What `confab doctor` has seen. The functions of `DoctorVerdicts` turn these values into findings, without I/O.

/// Where `confab doctor` runs.
enum DoctorPlace: Sendable {
    /// On the machine of the server, so that firewalls and NAT in front of it do not show.
    case inside
    /// On another machine.
    case outside
}

/// The result of a DNS lookup.
struct NameObservation: Equatable, Sendable {
    var host: String
    /// The addresses, empty if the name has none; nil if there was no answer in time.
    var addresses: [IPAddress]?
}

/// The result of a TCP connection to one address.
struct ConnectObservation: Equatable, Sendable {
    /// Whether it succeeded.
    enum Outcome: Equatable, Sendable {
        case connected
        case refused
        case timedOut
        /// Another error of the system, as text.
        case failed(String)
    }

    var address: IPAddress
    var outcome: Outcome
}

/// What a certificate says.
struct CertificateFacts: Equatable, Sendable {
    var subject: String
    var issuer: String
    var notBefore: Timestamp
    var notAfter: Timestamp
    /// The names and addresses for which it is valid.
    var names: [String]

    var isSelfSigned: Bool { subject == issuer }
}

/// The result of a TLS handshake.
struct TLSObservation: Equatable, Sendable {
    /// The certificates that the server sent, its own first; empty if the handshake failed before.
    var chain: [CertificateFacts] = []
    /// Why the handshake failed without verification; nil if it succeeded.
    var error: String?
    /// Whether the system's authorities confirm the chain and the name.
    var isTrusted = false
}

/// The answer to an HTTP request.
struct HTTPObservation: Equatable, Sendable {
    /// The status; nil if there was no response.
    var status: Int?
    /// The beginning of the body.
    var body = ""
    /// Why there was no response.
    var error: String?
    /// This machine's time in the middle of the exchange, and how long it took.
    var at = Timestamp(milliseconds: 0)
    var took = Duration.zero

    /// The members of a JSON object in the body; empty if it is none.
    var members: JSONObject {
        if case .object(let object)? = try? JSONReader.parse(Array(body.utf8)) { return object }
        return JSONObject()
    }

    func text(_ name: String) -> String? {
        if case .string(let text)? = members[name] { return text }
        return nil
    }
}

/// The answers to requests whose headers claim that they come from another client. The server answers 400 if what arrives
/// contradicts itself.
struct ForwardingObservation: Equatable, Sendable {
    /// With `Forwarded` (RFC 7239).
    var forwarded: HTTPObservation
    /// With `X-Forwarded-For`.
    var xForwardedFor: HTTPObservation
    /// With both, which name different addresses.
    var both: HTTPObservation
}

/// How far the conversation over the WebSocket came.
struct SocketObservation: Equatable, Sendable {
    /// The response to the request for an upgrade.
    enum Upgrade: Equatable, Sendable {
        /// Status 101 with the right headers.
        case opened
        /// Status 101, but not from Confab.
        case wrongAnswer
        /// Another status.
        case refused(Int)
        /// The connection failed or ended before a response.
        case failed(String)
    }

    /// The answer to the hello.
    enum Greeting: Equatable, Sendable {
        case welcome
        case refused(code: String, message: String)
        /// The socket was closed instead.
        case closed
    }

    /// Nil if there was no response in time.
    var upgrade: Upgrade?
    /// Nil if there was no answer in time.
    var greeting: Greeting?
    /// The STUN and TURN servers in the welcome.
    var iceServers: [ICEServer] = []
    /// Whether the server routes media.
    var routesMedia = false
    /// Why the server refused the offer for a peer connection.
    var offerError: String?
    /// The paths to the server's media ports; nil if they were not tried.
    var paths: [MediaPathObservation]?
}

/// A connectivity check to one address of the media plane.
struct MediaPathObservation: Equatable, Sendable {
    var address: IPAddress
    var port: Int
    var isTCP: Bool
    /// Whether the server announces this address. Others are tried to find out what it should announce.
    var isAnnounced: Bool
    var outcome: ExchangeOutcome

    var place: String { URLAuthority(host: address.description, port: port).description }
}

/// The result of sending datagrams, or messages over a stream, until an answer arrives.
enum ExchangeOutcome: Equatable, Sendable {
    case answered
    /// No answer in time.
    case silent
    /// The other machine says that nothing listens there.
    case refused
    /// The system could not send, for the given reason.
    case unreachable(String)
}

/// The result of asking a STUN server, or of requesting a relayed address from a TURN server.
enum RelayObservation: Equatable, Sendable {
    /// A STUN server reported our address.
    case reflected
    /// A TURN server relays at this address. `isOpen` is true if it required no credentials.
    case allocated(IPAddress, isOpen: Bool)
    /// The server refused with this error code of STUN.
    case rejected(Int)
    case silent
    case refused
    /// The name has no address.
    case unknownName
    /// Another error, as text.
    case failed(String)
}

/// The limits and free space of the machine.
struct MachineObservation: Equatable, Sendable {
    /// Free bytes of a directory's disk.
    struct Space: Equatable, Sendable {
        var directory: String
        /// Nil if the file system gives an error or does not answer.
        var free: Int?
    }

    var data: Space
    /// Nil if nothing is recorded, or on the same directory.
    var recordings: Space?
    /// The limit of descriptors, and how many are open; nil if unknown.
    var descriptorLimit: Int?
    var openDescriptors: Int?
    /// Whether the figures are those of the running server and not of this program.
    var isOfServer = false
    /// The largest buffers that the system grants for receiving and sending, in bytes; nil if unknown.
    var receiveBuffer: Int?
    var sendBuffer: Int?
    /// Whether a program keeps the clock right; nil if unknown.
    var isClockSynchronized: Bool?
}

/// What a database of the cluster answered.
struct DatabaseObservation: Equatable, Sendable {
    /// Its version; nil if it was not reached.
    var version: String?
    /// Why it cannot be used, as sentences for the operator.
    var error: String?
    /// By how much this machine's clock is ahead of its clock.
    var clockAhead: Duration?
}

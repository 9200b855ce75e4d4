import HTTPTypes
import Hummingbird
import Logging
import NIOHTTP1
import Signaling
import Wire

/// The HTTP interface that OpenTok's server SDKs expect: `POST /session/create`, and the paths under
/// `/v2/project/{apiKey}` (`docs/opentok.md`).
///
/// It translates requests and responses. The sessions decide everything else. The statuses and bodies are chosen so
/// that the SDKs return a value or raise the right exception.
enum OpenTokEndpoint: Sendable {
    case createSession
    case signal, stream, streams, setLayoutClasses, disconnect, muteStream, muteAll
    case archive(ArchiveEndpoint)
    case broadcast(BroadcastEndpoint)
    /// A request that would start something that this server cannot do.
    case unavailable(Feature)
    /// A list that is always empty, such as that of renders, because this server cannot create its items.
    case emptyList
    /// A request about one call, render or the like. It does not exist, because this server cannot create any.
    case missing(Feature)
    /// A path that does not exist, or a method that its path does not have.
    case unknown

    /// A part of OpenTok that this server does not have.
    enum Feature: String, Sendable {
        case sip = "SIP"
        case audioConnector = "The audio connector"
        case captions = "Captioning"
        case rendering = "Rendering of web pages"
    }

    /// Maximum size of a request's body in bytes. The data of a signal has up to 8 KiB, which may take six times as
    /// much in JSON.
    static let maxBodySize = 64 * 1024

    private static let project = "/v2/project/:project"
    private static let session = project + "/session/:session"

    private static let known: [(HTTPRequest.Method, String, OpenTokEndpoint)] =
        [
            (.post, "/session/create", .createSession),
            (.post, session + "/signal", .signal), (.post, session + "/connection/:connection/signal", .signal),
            (.get, session + "/stream", .streams), (.get, session + "/stream/:stream", .stream),
            (.put, session + "/stream", .setLayoutClasses),
            (.delete, session + "/connection/:connection", .disconnect),
            (.post, session + "/stream/:stream/mute", .muteStream), (.post, session + "/mute", .muteAll),
            (.post, session + "/play-dtmf", .missing(.sip)),
            (.post, session + "/connection/:connection/play-dtmf", .missing(.sip)),
            (.post, project + "/archive", .archive(.start)), (.get, project + "/archive", .archive(.list)),
            (.get, project + "/archive/:id", .archive(.describe)),
            (.delete, project + "/archive/:id", .archive(.delete)),
            (.post, project + "/archive/:id/stop", .archive(.stop)),
            (.put, project + "/archive/:id/layout", .archive(.setLayout)),
            (.patch, project + "/archive/:id/streams", .archive(.changeStreams)),
            (.post, project + "/broadcast", .broadcast(.start)), (.get, project + "/broadcast", .broadcast(.list)),
            (.get, project + "/broadcast/:id", .broadcast(.describe)),
            (.post, project + "/broadcast/:id/stop", .broadcast(.stop)),
            (.put, project + "/broadcast/:id/layout", .broadcast(.setLayout)),
            (.patch, project + "/broadcast/:id/streams", .broadcast(.changeStreams)),
            (.post, project + "/dial", .unavailable(.sip)),
            (.post, project + "/connect", .unavailable(.audioConnector)),
            (.post, project + "/captions", .unavailable(.captions)),
            (.post, project + "/captions/:id/stop", .missing(.captions)),
            (.post, project + "/render", .unavailable(.rendering)), (.get, project + "/render", .emptyList),
            (.get, project + "/render/:id", .missing(.rendering)),
            (.delete, project + "/render/:id", .missing(.rendering)),
        ]

    /// Whether a request with this target, without the base path, is for these endpoints.
    static func serves(_ uri: String) -> Bool {
        uri.hasPrefix("/v2/project/") || uri.hasPrefix("/session/create")
    }

    /// The known routes, and routes to `unknown` for all other methods and paths, so that every response has a body
    /// that the SDKs can parse.
    static let routes: [(HTTPRequest.Method, String, OpenTokEndpoint)] = {
        let methods: [HTTPRequest.Method] = [.get, .post, .put, .patch, .delete]
        let paths = Set(known.map(\.1)).sorted()
        let others = paths.flatMap { path in
            methods.filter { method in !known.contains { $0.0 == method && $0.1 == path } }.map {
                ($0, path, Self.unknown)
            }
        }
        return known + others
            + methods.flatMap { [($0, project, Self.unknown), ($0, project + "/**", .unknown)] }
    }()

    var layers: EndpointLayers {
        let refusals: OpenTokResponse.Refusals =
            switch self {
            case .muteStream, .muteAll: .ofMute
            case .unavailable(.sip): .withoutMessage
            default: .withMessage
            }
        return EndpointLayers(point: .operation, authorization: .application) { refusals.response(to: $0) }
    }

    func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        let request = OpenTokRequest(request)
        switch self {
        case .createSession:
            let session = try gateway.makeSession(request)
            let project = try gateway.application(of: request.http)
            return OpenTokResponse.created(
                session, of: project, gateway.runner.wallNow, asJSON: request.http.headers.acceptJSON)
        case .archive(let endpoint): return try await endpoint.respond(gateway, request)
        case .broadcast(let endpoint): return try await endpoint.respond(gateway, request)
        case .unavailable(let feature): throw .featureUnavailable(feature)
        case .emptyList: return OpenTokResponse.list([])
        case .missing(let feature): throw .featureMissing(feature)
        case .unknown:
            throw WireError(.notFound, "Unknown path, or wrong method. See docs/opentok.md for those that exist.")
        default:
            let session = try gateway.session(of: request)
            let operation = try operation(request)
            let project = try gateway.application(of: request.http)
            let response = response(try await gateway.runner.ask(.session(session, operation)))
            gateway.charge(response, to: project.apiKey)
            return response
        }
    }

    private func operation(_ request: OpenTokRequest) throws(WireError) -> SessionOperation {
        switch self {
        case .signal: return try request.signal()
        case .stream: return .describe(try request.id("stream"))
        case .setLayoutClasses: return .setLayoutClasses(try request.layouts())
        case .disconnect: return .disconnect(try request.id("connection"))
        case .muteStream: return .mute(try request.id("stream"))
        case .muteAll: return .muteAll(excluding: try request.excludedFromMute())
        default: return .describe(nil)
        }
    }

    private func response(_ reply: OperatorReply) -> GateResponse {
        guard case .streams(let streams) = reply else {
            switch self {
            case .muteStream, .muteAll: return OpenTokResponse.object([])
            default: return GateResponse(status: 204)
            }
        }
        if case .stream = self, let stream = streams.first { return OpenTokResponse.json(stream.json) }
        return OpenTokResponse.list(streams.map(\.json))
    }
}

extension Gateway {
    /// Adds an action of an operator to the audit log. If that fails, logs the error.
    func record(_ action: String, _ subject: String, _ detail: String = "") async {
        do {
            try await storage.record(
                AuditEntry(
                    at: runner.wallNow, actor: AuditEntry.operatorActor, action: action, subject: subject,
                    detail: detail))
        } catch {
            logger.error("Could not store an entry of the audit log", metadata: ["error": "\(error)"])
        }
    }

    /// Returns the session in the request's path, if it belongs to the project that sent the request.
    fileprivate func session(of request: OpenTokRequest) throws(WireError) -> SessionID {
        let project = try application(of: request.http)
        guard let session = request.http.path.get("session").flatMap({ SessionID($0) }),
            project.mediaMode(of: session) != nil
        else {
            throw WireError(.sessionInvalid, "Unknown session ID. Use one that this project created.")
        }
        return session
    }

    /// Creates a session with the properties in the request's form.
    fileprivate func makeSession(_ request: OpenTokRequest) throws(WireError) -> SessionID {
        let project = try application(of: request.http)
        let form = try request.sessionForm()
        let rules = runner.hubSettings.rules
        guard form.mediaMode == .relayed || rules.routesMedia else {
            throw WireError(
                .mediaUnavailable,
                "This server does not route media. Create a relayed session, or enable media routing.")
        }
        guard form.archive == nil || (rules.recordsSessions && rules.composesArchives) else {
            throw rules.recordsSessions ? WireError.composingUnavailable : .recordingUnavailable
        }
        var generator = SystemRandomNumberGenerator()
        return project.makeSessionID(
            mediaMode: form.mediaMode, archive: form.archive, now: runner.wallNow, using: &generator)
    }
}

extension WireError {
    fileprivate static func featureUnavailable(_ feature: OpenTokEndpoint.Feature) -> WireError {
        WireError(.unsupported, "\(feature.rawValue) is not available on this server.")
    }

    fileprivate static func featureMissing(_ feature: OpenTokEndpoint.Feature) -> WireError {
        WireError(.notFound, "\(feature.rawValue) is not available on this server, so this ID does not exist.")
    }
}

extension HTTPHeaders {
    /// Whether `Accept` names JSON. Wildcards do not count: OpenTok answers them with XML.
    fileprivate var acceptJSON: Bool {
        self[canonicalForm: "Accept"].contains { item in
            item.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased() == "application/json"
        }
    }
}

extension WireError.Code {
    /// The server does not have the requested feature.
    static let unsupported: WireError.Code = "unsupported"
}

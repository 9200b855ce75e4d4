import Hummingbird
import NIOHTTP1
import Signaling
import Wire

/// Reads the bodies and path variables of requests by OpenTok's server SDKs. Unknown members are ignored, because each SDK
/// adds its own.
struct OpenTokRequest {
    /// Maximum number of streams in one request.
    private static let maxStreams = 1000

    let http: GateRequest

    init(_ http: GateRequest) { self.http = http }

    func id<Value: Identifier128>(_ name: String) throws(WireError) -> Value {
        guard let id = http.path.get(name).flatMap({ Value($0) }) else {
            throw WireError(.notFound, "The \(name) ID in the path is not valid. Use one from this server.")
        }
        return id
    }

    // MARK: Forms

    /// What the form of `session/create` requests.
    struct SessionForm: Equatable {
        var mediaMode: MediaMode
        /// The resolution of the archives into which the session is always recorded; nil to record it only on request.
        var archive: CompositionResolution?
    }

    /// Reads the form of `session/create`. Throws if a property of the form is invalid or requests something that this
    /// server does not support.
    func sessionForm() throws(WireError) -> SessionForm {
        guard http.body.isEmpty || http.headers.hasContentType("application/x-www-form-urlencoded") else {
            throw WireError(.contentType, "Send a body of type application/x-www-form-urlencoded.")
        }
        let fields = FormFields(http.body)
        let mode: MediaMode
        switch fields["p2p.preference"] ?? "enabled" {
        case "enabled": mode = .relayed
        case "disabled": mode = .routed
        default: throw WireError(.malformed, "Invalid \"p2p.preference\". Send enabled or disabled.")
        }
        switch fields["e2ee"] ?? "false" {
        case "false": break
        case "true": throw WireError(.unsupported, "End-to-end encryption is not available on this server.")
        default: throw WireError(.malformed, "Invalid \"e2ee\". Send false or true.")
        }
        if let location = fields["location"], !location.isEmpty, IPAddress(location) == nil {
            throw WireError(.malformed, "Invalid \"location\". Send an IP address, or omit it.")
        }
        return SessionForm(mediaMode: mode, archive: try Self.archive(fields, mode))
    }

    /// Reads how the session is always recorded; nil if it is recorded only on request.
    private static func archive(_ fields: FormFields, _ mode: MediaMode) throws(WireError) -> CompositionResolution? {
        let (name, size) = (fields["archiveName"] ?? "", fields["archiveResolution"] ?? "")
        switch fields["archiveMode"] ?? "manual" {
        case "manual":
            guard name.isEmpty, size.isEmpty else {
                throw WireError(
                    .malformed, "\"archiveName\" and \"archiveResolution\" need the \"archiveMode\" always.")
            }
            return nil
        case "always": break
        default: throw WireError(.malformed, "Invalid \"archiveMode\". Send manual or always.")
        }
        guard mode == .routed else {
            throw WireError(
                .malformed, "Only routed sessions can be recorded. Send \"p2p.preference\" with the value disabled.")
        }
        // The server stores nothing to create a session, and a session ID has no room for a name.
        guard name.isEmpty else {
            throw WireError(.unsupported, "Automatic archives have no name on this server. Omit \"archiveName\".")
        }
        guard let resolution = size.isEmpty ? .small : CompositionResolution(rawValue: size) else {
            throw WireError(.malformed, "\"archiveResolution\" must be one of \(CompositionResolution.list).")
        }
        return resolution
    }

    // MARK: JSON

    func signal() throws(WireError) -> SessionOperation {
        let members = try members()
        let connection: ConnectionID? = http.path.get("connection") == nil ? nil : try id("connection")
        return .signal(
            type: try text("type", members).flatMap { $0.isEmpty ? nil : $0 }, data: try text("data", members),
            to: connection)
    }

    func layouts() throws(WireError) -> [StreamLayout] {
        guard case .array(let items)? = try members()["items"], items.count <= Self.maxStreams else {
            throw WireError(.malformed, "Send \"items\", an array of at most \(Self.maxStreams) streams.")
        }
        var layouts: [StreamLayout] = []
        for item in items {
            guard case .object(let stream) = item, case .string(let text)? = stream["id"], let id = StreamID(text),
                case .array(let values)? = stream["layoutClassList"]
            else {
                throw WireError(
                    .malformed, "Each item must have the \"id\" of a stream and an array \"layoutClassList\".")
            }
            let classes = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
            // Limit the classes of a stream in the same way as those in a token.
            guard classes.count == values.count,
                classes.reduce(0, { $0 + $1.unicodeScalars.count + 1 }) <= Limits.connectionData
            else {
                throw WireError(
                    .malformed,
                    "A \"layoutClassList\" must contain strings of together at most \(Limits.connectionData) characters."
                )
            }
            layouts.append(StreamLayout(id, classes))
        }
        return layouts
    }

    /// Returns the streams that a mute excludes; nil if the request ends the mute of future streams. The member that
    /// lists them has different names in the SDKs and in the REST documentation.
    func excludedFromMute() throws(WireError) -> Set<StreamID>? {
        let members = try members()
        switch members["active"] {
        case .bool(false)?: return nil
        case .bool(true)?, nil: break
        default: throw WireError(.malformed, "\"active\" must be true or false.")
        }
        switch members["excludedStreamIds"] ?? members["excludedStreams"] {
        case nil, .null?: return []
        case .array(let values)?:
            let ids = values.compactMap { if case .string(let text) = $0 { StreamID(text) } else { nil } }
            guard ids.count == values.count, ids.count <= Self.maxStreams else { fallthrough }
            return Set(ids)
        default:
            throw WireError(
                .malformed, "\"excludedStreamIds\" must be an array of at most \(Self.maxStreams) stream IDs.")
        }
    }

    /// Returns the JSON object in the body. An empty body counts as an empty object.
    func members() throws(WireError) -> JSONObject {
        guard !http.body.isEmpty else { return JSONObject() }
        guard case .object(let object)? = try? JSONReader.parse(http.body) else {
            throw WireError(.malformed, "The request body must be a JSON object without duplicate members.")
        }
        return object
    }

    func text(_ name: String, _ members: JSONObject) throws(WireError) -> String? {
        switch members[name] {
        case .string(let text)?: return text
        case nil, .null?: return nil
        default: throw WireError(.malformed, "\"\(name)\" must be a string.")
        }
    }
}

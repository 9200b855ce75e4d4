import Foundation
import NIOHTTP1
import Signaling
import Wire

/// Writes responses as OpenTok's server SDKs parse them. The content type of JSON is exactly `application/json`: the SDK
/// for Python parses any other response to `session/create` as XML.
enum OpenTokResponse {
    static func json(_ value: JSONValue) -> GateResponse {
        var writer = JSONWriter()
        writer.value(value)
        return GateResponse(status: 200, type: "application/json", body: writer.bytes)
    }

    static func object(_ members: [JSONObject.Member]) -> GateResponse { json(.object(JSONObject(members))) }

    /// - Parameter count: the number of items on all pages; nil if all are on this one.
    static func list(_ items: [JSONValue], of count: Int? = nil) -> GateResponse {
        object([
            .init(name: "count", value: .integer(Int64(count ?? items.count))),
            .init(name: "items", value: .array(items)),
        ])
    }

    /// Returns the response to `session/create`. The members that are null exist for SDKs that expect them.
    ///
    /// - Parameter asJSON: false for XML, which the SDKs for PHP, Ruby and .NET parse.
    static func created(
        _ session: SessionID, of project: Project, _ now: Timestamp, asJSON: Bool
    ) -> GateResponse {
        guard asJSON else {
            // None of the values contains a character that XML would escape.
            let fields =
                "<session_id>\(session.text)</session_id><partner_id>\(project.apiKey)</partner_id>"
                + "<create_dt>\(date(now))</create_dt>"
            let document =
                #"<?xml version="1.0" encoding="UTF-8"?>"# + "<sessions><Session>\(fields)</Session></sessions>"
            return GateResponse(status: 200, type: "text/xml", body: document.utf8)
        }
        let known: [(String, JSONValue)] = [
            ("session_id", .string(session.text)), ("project_id", .string(project.apiKey)),
            ("partner_id", .string(project.apiKey)), ("create_dt", .string(date(now))),
        ]
        let unknown = [
            "session_status", "status_invalid", "media_server_hostname", "messaging_server_url", "messaging_url",
            "symphony_address", "properties", "ice_server", "ice_servers",
        ].map { ($0, JSONValue.null) }
        return json(.array([.object(JSONObject((known + unknown).map { .init(name: $0.0, value: $0.1) }))]))
    }

    /// Returns a time as OpenTok writes it: `Fri Feb 14 13:14:54 UTC 2025`.
    private static func date(_ time: Timestamp) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "UTC")
        formatter.dateFormat = "EEE MMM dd HH:mm:ss 'UTC' yyyy"
        return formatter.string(from: Date(timeIntervalSince1970: TimeInterval(time.milliseconds / 1000)))
    }

    /// How the SDK for Python treats refusals of a request.
    enum Refusals {
        /// For status 400, the SDK raises an exception with the message from the body.
        case withMessage
        /// For status 400, the SDK raises an exception with a fixed message, which may be wrong. For other statuses,
        /// the message contains the status.
        case withoutMessage
        /// The SDK raises an exception for the statuses 400, 403 and 404, and treats any other status as success.
        case ofMute

        func response(to error: WireError) -> GateResponse {
            var response = GateResponse(error)
            switch error.code {
            // The SDKs report 403, and not 401, as bad credentials.
            case _ where error.code.isToken: response.status = 403
            case .signalInvalid, .messageTooLarge: response.status = 400
            case .signalTooLarge: response.status = 413
            case .unsupported: response.status = self == .withoutMessage ? 501 : 400
            default: break
            }
            response.headers.remove(name: "WWW-Authenticate")
            if self == .ofMute, ![400, 403, 404].contains(response.status) { response.status = 400 }
            return response
        }
    }
}

extension StreamDescription {
    /// The stream as OpenTok describes it.
    var json: JSONValue {
        .object(
            JSONObject([
                .init(name: "id", value: .string("\(stream.id)")),
                .init(name: "videoType", value: stream.videoType.map { .string($0.rawValue) } ?? .null),
                .init(name: "name", value: .string(stream.name)),
                .init(name: "layoutClassList", value: .array(layoutClasses.map { .string($0) })),
            ]))
    }
}

import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Responses of the endpoints behind the router.
extension EndpointResponse {
    /// Answers the CORS preflight request that browsers send before they send a secret to another origin.
    static func preflight(methods: String, headers: String) -> EndpointResponse {
        EndpointResponse(
            status: 204,
            headers: [
                "Access-Control-Allow-Methods": methods, "Access-Control-Allow-Headers": headers,
                "Access-Control-Max-Age": "86400",
            ])
    }

    /// Returns the response without CORS headers: programs and pages of this server can read it, but pages of other
    /// origins cannot.
    ///
    /// - Parameter body: sent instead of the answer's own body.
    func response(body: ResponseBody? = nil) -> Response {
        var headers = headers
        headers.add(name: "Cache-Control", value: "no-store")
        headers.add(name: "X-Content-Type-Options", value: "nosniff")
        if let contentType { headers.add(name: "Content-Type", value: contentType) }
        return Response(
            status: HTTPResponse.Status(code: status), headers: HTTPFields(headers, splitCookie: false),
            body: body ?? ResponseBody(byteBuffer: ByteBuffer(bytes: self.body))
        )
    }

    /// Returns the response with CORS headers, for a request that pages of all allowed origins may send.
    func response(
        to request: Request, _ configuration: ConfabConfiguration, body: ResponseBody? = nil
    ) -> Response {
        var answer = self
        answer.headers.allowReading(by: HTTPHeaders(request.headers), configuration)
        return answer.response(body: body)
    }
}

extension HTTPHeaders {
    /// Adds the CORS headers with which the page that sent the request can read the response, if its origin is allowed.
    ///
    /// Allowing other origins is safe: requests carry no ambient authority such as cookies, only a secret or a token.
    ///
    /// - Returns: whether the page can read the response.
    @discardableResult
    mutating func allowReading(by request: HTTPHeaders, _ configuration: ConfabConfiguration) -> Bool {
        if configuration.allowedOrigins.isEmpty {
            add(name: "Access-Control-Allow-Origin", value: "*")
            return true
        }
        add(name: "Vary", value: "Origin")
        guard let origin = request.onlyOrigin, configuration.allows(request) else { return false }
        add(name: "Access-Control-Allow-Origin", value: origin)
        return true
    }
}

import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// `POST /v1/qr`: draws the text in the request body as a QR code in SVG, for the web app.
///
/// The text is a link that may contain a pairing code. Proxies log URLs but not bodies, so the text is sent in the body.
struct QRCodeDrawing: Sendable {
    static let path: RouterPath = "/v1/qr"
    /// The capacity of the largest QR code, in bytes of UTF-8.
    static let maxTextSize = QRCode.capacity(version: QRCode.largestVersion, .medium)

    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    private var configuration: ConfabConfiguration { live.current }

    func post(_ request: Request, _ context: PersonExport.Context) async throws -> Response {
        var answer: EndpointResponse
        do throws(WireError) {
            let headers = HTTPHeaders(request.headers)
            guard configuration.allows(headers) else { throw .forbiddenOrigin }
            try await gateway.admit(configuration.clientAddress(headers, from: context.peer), at: .drawing) { _ in }
            let drawing = try drawing(of: try await text(in: request))
            answer = EndpointResponse(status: 200, contentType: "image/svg+xml", body: Array(drawing.utf8))
        } catch {
            answer = EndpointResponse(error)
        }
        return answer.response()
    }

    private func text(in request: Request) async throws(WireError) -> String {
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: Self.maxTextSize)
        } catch is NIOTooManyBytesError {
            throw tooLong
        } catch {
            throw WireError(.malformed, "The request body is incomplete. Send the request again.")
        }
        let text = String(decoding: body.readableBytesView, as: UTF8.self)
        guard !text.isEmpty, text.utf8.elementsEqual(body.readableBytesView) else {
            throw WireError(.malformed, "Send the text for the QR code in the request body, in UTF-8.")
        }
        return text
    }

    private func drawing(of text: String) throws(WireError) -> String {
        do { return try QRCode(text).svg } catch { throw tooLong }
    }

    private var tooLong: WireError {
        WireError(.messageTooLarge, QRCode.TooLongError(capacity: Self.maxTextSize).description)
    }
}

extension QRCode {
    /// The code as an SVG image with its quiet zone. A single path draws one rectangle for each run of dark modules
    /// in a row.
    var svg: String {
        var path = ""
        for row in 0..<size {
            var column = 0
            while column < size {
                let start = column
                // The subscript returns light for columns after the last one.
                while self[row: row, column: column] { column += 1 }
                let length = column - start
                if length > 0 { path += "M\(start) \(row)h\(length)v1h-\(length)z" }
                column += 1
            }
        }
        let (corner, side) = (-Self.quietZone, size + 2 * Self.quietZone)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="\(corner) \(corner) \(side) \(side)" \
            shape-rendering="crispEdges"><path d="\(path)"/></svg>

            """
    }
}

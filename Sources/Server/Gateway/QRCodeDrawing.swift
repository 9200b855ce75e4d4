import Signaling
import Wire

/// `POST /v1/qr`: draws the text in the request body as a QR code in SVG, for the web app.
///
/// The text is a link that may contain a pairing code. Proxies log URLs but not bodies, so the text is sent in the body.
enum QRCodeDrawing {
    static let path = "/v1/qr"
    static let layers = EndpointLayers(point: .drawing)
    /// The capacity of the largest QR code, in bytes of UTF-8.
    static let maxTextSize = QRCode.capacity(version: QRCode.largestVersion, .medium)

    static func post(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        guard !request.body.isEmpty, let text = String(validating: request.body, as: UTF8.self) else {
            throw WireError(.malformed, "Send the text for the QR code in the request body, in UTF-8.")
        }
        // Drawing takes milliseconds, so it does not run on the event loop.
        let drawing = await withTaskExecutorPreference(globalConcurrentExecutor) { try? QRCode(text).svg }
        guard let drawing else {
            throw WireError(.messageTooLarge, QRCode.TooLongError(capacity: maxTextSize).description)
        }
        return GateResponse(status: 200, type: "image/svg+xml", body: drawing.utf8)
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

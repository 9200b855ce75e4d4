import Foundation

/// An HTTP/1.1 response.
struct HTTPResponse: Sendable, CustomStringConvertible {
    var status: Int
    var version: String
    /// The headers in order, with their names as received.
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    /// The values of a header, joined as RFC 9110 §5.3 allows. The name is case-insensitive.
    subscript(_ name: String) -> String? {
        let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    var text: String { String(decoding: body, as: UTF8.self) }
    var description: String { "\(status) \(headers.map { "\($0.name): \($0.value)" }) \(text.prefix(200))" }

    init(head: [UInt8]) throws {
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let parts = (lines.first ?? "").split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/"), let status = Int(parts[1]) else {
            throw TimedOut("this is not an HTTP answer: \"\(lines.first ?? "")\"")
        }
        self.status = status
        version = String(parts[0])
        headers = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
        body = []
    }
}

extension RawSocket {
    private static let lineEnd: [UInt8] = [13, 10]

    /// Reads one response. Its body may have a length, be chunked, or end with the connection (RFC 9112 §6.3).
    ///
    /// - Parameter hasBody: false for the response to HEAD.
    func readAnswer(within limit: Duration = .seconds(10), hasBody: Bool = true) throws -> HTTPResponse {
        let head = try receive(until: Self.lineEnd + Self.lineEnd, within: limit)
        var answer = try HTTPResponse(head: head)
        if !hasBody || answer.status < 200 || answer.status == 204 || answer.status == 304 { return answer }
        if let length = answer["Content-Length"].flatMap({ Int($0) }) {
            guard let body = try receive(exactly: length, within: limit) else {
                throw TimedOut("the body ended before its \(length) bytes")
            }
            answer.body = body
        } else if answer["Transfer-Encoding"]?.lowercased() == "chunked" {
            answer.body = try readChunks(within: limit)
        } else {
            answer.body = try receiveAll(within: limit)
        }
        return answer
    }

    private func readChunks(within limit: Duration) throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = String(decoding: try receive(until: Self.lineEnd, within: limit).dropLast(2), as: UTF8.self)
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16) else { throw TimedOut("no chunk size: \(line)") }
            guard let chunk = try receive(exactly: size + 2, within: limit) else {
                throw TimedOut("a chunk ended early")
            }
            if size == 0 { return body }
            body += chunk.dropLast(2)
        }
    }

    /// Sends a request and reads its response.
    func ask(
        _ path: String, method: String = "GET", host: String = "confab.test", headers: [(String, String)] = [],
        body: [UInt8] = [], within limit: Duration = .seconds(10)
    ) throws -> HTTPResponse {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if !body.isEmpty { head += "Content-Length: \(body.count)\r\n" }
        try send(Array((head + "\r\n").utf8) + body, within: limit)
        return try readAnswer(within: limit, hasBody: method != "HEAD")
    }
}

import Crypto
import NIOCore
import NIOHTTP1
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The opening handshake of a WebSocket (RFC 6455 §4.2).
enum WebSocketUpgrade {
    static let path = "/v1/socket"
    static let subprotocol = "confab.v1"

    /// Returns the headers of the response 101 to a valid handshake.
    static func answer(to request: HTTPRequestHead) -> HTTPHeaders {
        let key = request.headers.first(name: "Sec-WebSocket-Key") ?? ""
        var headers = HTTPHeaders([
            ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept(key)),
        ])
        // Socket.IO and PerchRTC use no subprotocol.
        if EndpointRequest(handshake: request) == nil {
            headers.add(name: "Sec-WebSocket-Protocol", value: Self.subprotocol)
        }
        return headers
    }

    /// Computes `Sec-WebSocket-Accept` with the GUID from RFC 6455 §4.2.2.
    static func accept(_ key: String) -> String {
        let digest = Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        return Data(digest).base64EncodedString()
    }

    /// True if this is a valid WebSocket handshake for one of the server's paths.
    static func isOurs(_ head: HTTPRequestHead, _ settings: HTTPConnection.Settings) -> Bool {
        let path = head.uri.prefix { $0 != "?" }
        let isOther =
            switch EndpointRequest(handshake: head) {
            case .socketIO: settings.allowsSocketIO
            case .perch: settings.allowsPerch
            case .whip, nil: false
            }
        guard head.method == .GET, head.version == .http1_1, path == Self.path || isOther else {
            return false
        }
        return head.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            && head.headers["Sec-WebSocket-Version"] == ["13"]
            && isKey(head.headers["Sec-WebSocket-Key"])
            && (isOther
                || head.headers[canonicalForm: "sec-websocket-protocol"].contains { $0 == Self.subprotocol })
    }

    /// True if there is exactly one key and it is 16 bytes in base64 (RFC 6455 §4.1).
    private static func isKey(_ values: [String]) -> Bool {
        guard values.count == 1, let key = values.first else { return false }
        return key.utf8.count == 24 && key.hasSuffix("==")
            && key.utf8.dropLast(2).allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }
}

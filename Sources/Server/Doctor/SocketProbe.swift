import Foundation
import NIOCore
import RTC
import Wire

/// Opens the WebSocket as a page does: upgrade, hello, and an offer for a peer connection. The answer has the addresses for media.
struct SocketProbe: Sendable {
    /// How long the whole conversation may take, with the checks of the media ports.
    private static let limit = Duration.seconds(15)
    /// The maximum size of a message from the server: those with descriptions have up to 256 KiB.
    private static let maxMessage = 512 << 10

    let site: SiteAddress
    let address: IPAddress
    /// The origin of the page that a browser would have loaded.
    let origin: String
    /// Addresses at which media may work if the announced ones do not.
    let others: [IPAddress]

    func observe() async -> SocketObservation {
        let notes = ProbeNotes(SocketObservation())
        let tls = site.isSecure ? StreamProbe.TLS(host: site.host, verifies: false) : nil
        _ = await ProbeLimit.within(Self.limit) {
            do {
                try await StreamProbe.open(address, port: site.port, tls: tls) { reader, outbound in
                    try await converse(&reader, outbound, notes)
                }
            } catch {
                notes.note { seen in
                    if seen.upgrade == nil { seen.upgrade = .failed("\(error)") }
                    if seen.upgrade == .opened, seen.greeting == nil { seen.greeting = .closed }
                }
            }
        }
        return notes.current
    }

    private func converse(
        _ reader: inout StreamReader, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
        _ notes: ProbeNotes<SocketObservation>
    ) async throws {
        var random = SystemRandomNumberGenerator()
        let key = Data((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }).base64EncodedString()
        try await outbound.write(ByteBuffer(string: upgrade(key: key)))
        let upgrade = try await Self.response(from: &reader, key: key)
        notes.note { $0.upgrade = upgrade }
        guard upgrade == .opened else { return }
        var hello = Hello()
        hello.client = "confab-doctor/\(ConfabServer.version)"
        try await outbound.write(Self.frame(.hello(hello), using: &random))
        guard let welcome = try await greeting(&reader, notes) else { return }
        if welcome.media != nil { try await tryMedia(&reader, outbound, notes, &random) }
        try await outbound.write(Self.frame(.bye, using: &random))
    }

    /// Waits for the answer to the hello. Returns nil if it is not a welcome.
    private func greeting(
        _ reader: inout StreamReader, _ notes: ProbeNotes<SocketObservation>
    ) async throws -> Welcome? {
        while let message = try await Self.message(from: &reader) {
            switch message {
            case .welcome(let welcome):
                notes.note { seen in
                    seen.greeting = .welcome
                    (seen.iceServers, seen.routesMedia) = (welcome.ice.servers, welcome.media != nil)
                }
                return welcome
            case .error(let failure):
                notes.note {
                    $0.greeting = .refused(code: failure.error.code.rawValue, message: failure.error.message)
                }
                return nil
            default: continue
            }
        }
        notes.note { $0.greeting = .closed }
        return nil
    }

    private func tryMedia(
        _ reader: inout StreamReader, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
        _ notes: ProbeNotes<SocketObservation>, _ random: inout SystemRandomNumberGenerator
    ) async throws {
        let local = ICECredentials(using: &random)
        guard let offer = Self.offer(local, using: &random) else { return }
        let message = ClientMessage.media(.offer(.init(side: .receive, sdp: offer.text)))
        try await outbound.write(Self.frame(message, number: 1, using: &random))
        while let message = try await Self.message(from: &reader) {
            switch message {
            case .media(.answer(let answer)) where answer.re == 1:
                do throws(SDPError) {
                    let accepted = try RTC.accept(try RTC.SessionDescription(parsing: answer.sdp), to: offer)
                    guard let remote = ICECredentials(ufrag: accepted.remote.ufrag, password: accepted.remote.pwd)
                    else {
                        throw SDPError(.malformed, "Its ICE credentials are invalid.")
                    }
                    let paths = await MediaProbe(local: local, remote: remote)
                        .paths(accepted.remote.candidates, others: others)
                    notes.note { $0.paths = paths }
                } catch {
                    notes.note { $0.offerError = "The answer cannot be read: \(error)" }
                }
                return
            case .error(let failure) where failure.re == 1:
                notes.note { $0.offerError = failure.error.message }
                return
            default: continue
            }
        }
    }

    // MARK: HTTP and WebSocket

    private func upgrade(key: String) -> String {
        [
            "GET \(site.path)\(WebSocketUpgrade.path) HTTP/1.1", "Host: \(site.authority)", "Upgrade: websocket",
            "Connection: Upgrade", "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: \(WebSocketUpgrade.subprotocol)", "Origin: \(origin)",
            "User-Agent: confab-doctor/\(ConfabServer.version)", "", "",
        ].joined(separator: "\r\n")
    }

    private static func response(from reader: inout StreamReader, key: String) async throws
        -> SocketObservation.Upgrade
    {
        while true {
            if let head = HTTPResponseHeadText(reader.bytes) {
                _ = reader.take(head.length)
                guard head.status == 101 else { return .refused(head.status) }
                let isOurs =
                    head.headers["sec-websocket-accept"] == WebSocketUpgrade.accept(key)
                    && head.headers["sec-websocket-protocol"] == WebSocketUpgrade.subprotocol
                return isOurs ? .opened : .wrongAnswer
            }
            guard reader.bytes.count <= HTTPResponseHeadText.maxLength else {
                return .failed("its response is too long")
            }
            guard try await reader.more() else { return .failed("the connection was closed") }
        }
    }

    /// Returns the next message, or nil if the socket is closed. Skips messages that cannot be decoded: a newer server may have
    /// others.
    private static func message(from reader: inout StreamReader) async throws -> ServerMessage? {
        var text: [UInt8] = []
        while true {
            switch FrameHeader.parse(reader.bytes, maxLength: maxMessage) {
            case .violation: return nil
            case .header(let header) where reader.bytes.count >= header.size + header.length:
                let payload = reader.take(header.size + header.length).dropFirst(header.size)
                switch header.opcode {
                case .text, .continuation:
                    text += payload
                    guard text.count <= maxMessage else { return nil }
                    guard header.isFinal else { continue }
                    if let message = try? Envelope<ServerMessage>.decode(text).message { return message }
                    text = []
                case .close: return nil
                case .binary, .ping, .pong, .reserved: continue
                }
            case .header, .incomplete: guard try await reader.more() else { return nil }
            }
        }
    }

    /// A message in a masked frame, as clients send it.
    private static func frame(
        _ message: ClientMessage, number: UInt64? = nil, using random: inout SystemRandomNumberGenerator
    ) -> ByteBuffer {
        let payload = Envelope(seq: number, message: message).encode()
        var bytes = FrameHeader.bytes(of: .text, length: payload.count)
        bytes[1] |= 0x80
        let mask = (0..<4).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        bytes += mask
        bytes += payload.enumerated().map { index, byte in byte ^ mask[index % 4] }
        return ByteBuffer(bytes: bytes)
    }

    /// An offer to receive audio. Its fingerprint belongs to no certificate: no handshake follows the connectivity checks.
    private static func offer(
        _ local: ICECredentials, using random: inout SystemRandomNumberGenerator
    ) -> RTC.SessionDescription? {
        let bytes = (0..<Fingerprint.Algorithm.sha256.length).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
        guard let fingerprint = Fingerprint(.sha256, bytes) else { return nil }
        // The two highest bits are zero, so it is well below the maximum, 2^63 - 1 (RFC 8829 §5.2.1).
        let id: UInt64 = random.next() >> 2
        return RTC.offer(
            [.audio(mid: "0", .recvonly)],
            local: LocalParameters(
                ufrag: local.ufrag, pwd: local.password, fingerprint: fingerprint, candidates: [], sessionID: id,
                version: 1, cname: "confab-doctor"))
    }
}

import Crypto
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A project's server that receives webhooks. It records each request before it answers.
final class WebhookReceiver: Sendable {
    /// A request that was received completely.
    struct Delivery: Sendable {
        var headers: [String: String]
        var body: [UInt8]

        /// What the request reports, such as `streamDestroyed networkDisconnected`.
        var name: String {
            let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            let words = ["event", "reason"].compactMap { object?[$0] as? String }
            return words.joined(separator: " ")
        }

        var session: String {
            let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            return object?["sessionId"] as? String ?? ""
        }

        /// Verifies the signature as docs/webhooks.md describes it.
        func isSigned(with secret: String, now: Date = Date()) -> Bool {
            let parts = (headers["x-confab-signature"] ?? "").split(separator: ",")
            guard parts.count == 2, parts[0].hasPrefix("t="), let time = Int(parts[0].dropFirst(2)),
                abs(now.timeIntervalSince1970 - Double(time)) < 300, parts[1].hasPrefix("v1=")
            else { return false }
            let code = HMAC<SHA256>.authenticationCode(
                for: Data("\(time).".utf8) + body, using: SymmetricKey(data: Data(secret.utf8)))
            return parts[1].dropFirst(3) == code.map { String(format: "%02x", $0) }.joined()
        }
    }

    private struct State: Sendable {
        var deliveries: [Delivery] = []
        /// How many more requests are answered; nil for all.
        var answers: Int?
    }

    private let descriptor: Int32
    private let stopped = Flag()
    private let state: Mutex<State>

    /// - Parameter answers: how many requests are answered. Later ones are recorded and never answered. Nil for all.
    init(port: Int, answers: Int? = nil) throws {
        state = Mutex(State(answers: answers))
        descriptor = socket(AF_INET, streamSocket, 0)
        guard descriptor >= 0 else { throw SocketError("no socket", errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                inet_pton(AF_INET, "127.0.0.1", &pointer.pointee.sin_addr) == 1
                    && bind(descriptor, address, size) == 0 && listen(descriptor, 64) == 0
            }
        }
        guard isListening else { throw SocketError("listen", errno) }
        Thread.detachNewThread { [self] in accept() }
    }

    var deliveries: [Delivery] { state.withLock { $0.deliveries } }

    /// Closes the port. Open connections are closed too.
    func stop() { stopped.set() }

    private func accept() {
        while !stopped.isSet {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 20) > 0 else { continue }
            #if canImport(Glibc)
            let connection = Glibc.accept(descriptor, nil, nil)
            #elseif canImport(Musl)
            let connection = Musl.accept(descriptor, nil, nil)
            #else
            let connection = Darwin.accept(descriptor, nil, nil)
            #endif
            guard connection >= 0 else { continue }
            let socket = RawSocket(descriptor: connection)
            Thread.detachNewThread { [self] in try? serve(socket) }
        }
        close(descriptor)
    }

    private func serve(_ socket: RawSocket) throws {
        while !stopped.isSet {
            guard socket.isReadable(until: .now + .milliseconds(20)) else { continue }
            let head = String(decoding: try socket.receive(until: Array("\r\n\r\n".utf8)), as: UTF8.self)
            var headers: [String: String] = [:]
            for line in head.components(separatedBy: "\r\n").dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2 {
                    headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
                }
            }
            guard let length = headers["content-length"].flatMap({ Int($0) }),
                let body = try socket.receive(exactly: length)
            else { return }
            let isAnswered = state.withLock { state in
                state.deliveries.append(Delivery(headers: headers, body: body))
                guard let left = state.answers else { return true }
                state.answers = left - 1
                return left > 0
            }
            if isAnswered { try socket.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
        }
    }
}

import Crypto
import Foundation
import TestSupport
import Wire

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A port that counts connections and answers nothing.
final class Trap: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, streamSocket, 0)
        guard descriptor >= 0 else { throw SocketError("no socket", errno) }
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                inet_pton(AF_INET, "127.0.0.1", &pointer.pointee.sin_addr) == 1
                    && bind(descriptor, address, size) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, address, &size) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isListening else { throw SocketError("listen", errno) }
    }

    deinit { close(descriptor) }

    /// Returns the number of connections since this function was last called.
    func caught() -> Int {
        var count = 0
        while true {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { return count }
            close(connection)
            count += 1
        }
    }
}

extension PushRegistration {
    /// A browser's registration with a new key.
    static func browser(_ endpoint: String) -> PushRegistration {
        let key = P256.KeyAgreement.PrivateKey().publicKey.x963Representation
        let secret = Data((0..<16).map { _ in UInt8.random(in: 0...255) })
        return PushRegistration(
            kind: .web, endpoint: endpoint, p256dh: Forging.base64URL(key), auth: Forging.base64URL(secret))
    }
}

/// A TLS server that sends a fixed response.
final class TLSAnswerer: Sendable {
    private let program: ChildProgram
    private let line: RawSocket

    init(_ program: ChildProgram, _ line: RawSocket) { (self.program, self.line) = (program, line) }

    /// Waits for a request, sends the response, and returns the request's head.
    func answer(_ text: String) throws -> String {
        let head = try line.receive(until: Array("\r\n\r\n".utf8), within: .seconds(30))
        try line.send(text)
        return String(decoding: head, as: UTF8.self)
    }

    func end() {
        line.close()
        if program.isRunning { kill(program.id, SIGTERM) }
    }
}

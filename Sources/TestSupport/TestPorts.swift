#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

import Synchronization

/// TCP ports of 127.0.0.1 for programs that must be given one before they listen, or that listen again on the same one.
///
/// A port that was bound with the number 0 and closed again is not safe: among thousands of tests with sockets, the
/// system gives it to another one before the program listens. These ports are below the range from which the system
/// chooses.
public enum TestPorts {
    /// The ports of this process are all in use.
    public struct NoneLeft: Error, CustomStringConvertible {
        public var description: String { "No port from \(first) to \(first + total - 1) is free." }
    }

    private static let first = 20_000
    /// How many test processes that run at the same time have different ports, if their ids are consecutive.
    private static let processes = 96
    private static let portsPerProcess = 120
    private static let total = processes * portsPerProcess
    private static let count = Mutex(0)

    /// Returns a port at which nothing listens. Returns another one each time.
    public static func next() throws -> Int {
        let own = Int(getpid()) % processes * portsPerProcess
        for _ in 0..<total {
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            let port = first + (own + number) % total
            if BoundPort(port) != nil { return port }
        }
        throw NoneLeft()
    }
}

/// A port of 127.0.0.1 that refuses connections as long as this object lives: nobody else can listen on it.
public final class RefusingPort: Sendable {
    /// The number of the port.
    public let number: Int
    private let bound: BoundPort

    /// - Throws: ``TestPorts/NoneLeft`` if the system has no port.
    public init() throws {
        guard let bound = BoundPort(0) else { throw TestPorts.NoneLeft() }
        (self.bound, number) = (bound, bound.number)
    }
}

/// A socket that is bound to a port, but does not listen.
private final class BoundPort: Sendable {
    let number: Int
    private let descriptor: Int32

    /// Returns nil if the port is in use. The number 0 stands for a port that the system chooses.
    init?(_ number: Int) {
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #elseif canImport(Musl)
        let kind = SOCK_STREAM | SOCK_CLOEXEC
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(number).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        (self.number, self.descriptor) = (Int(UInt16(bigEndian: address.sin_port)), descriptor)
        // All properties are set, so this runs `deinit`.
        guard isBound else { return nil }
    }

    deinit { close(descriptor) }
}

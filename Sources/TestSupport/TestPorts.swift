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
/// system gives it to another one before the program listens. These ports are below the range from which Linux (from
/// 32768) and macOS (from 49152) choose. A process that needs some takes a block of them, by keeping its first port
/// bound until it ends.
public enum TestPorts {
    /// Other processes have all blocks, or other programs use their first ports.
    public struct NoneLeft: Error, CustomStringConvertible {
        public var description: String { "All blocks of ports from \(first) are taken." }
    }

    private static let first = 20_000
    private static let blocks = 100
    private static let portsPerBlock = 120

    private struct State {
        /// The first ports of the blocks that this process has.
        var taken: [BoundPort] = []
        /// The ports of the last block that were not returned.
        var left: Range<Int> = 0..<0
    }

    private static let state = Mutex(State())

    /// Returns a port at which nothing listens. Returns another one each time.
    public static func next() throws -> Int {
        try state.withLock { state in
            while true {
                while let port = state.left.popFirst() {
                    if try BoundPort(port) != nil { return port }
                }
                let block = try takeBlock()
                state.left = block.number + 1..<block.number + portsPerBlock
                state.taken.append(block)
            }
        }
    }

    private static func takeBlock() throws -> BoundPort {
        for number in 0..<blocks {
            if let block = try BoundPort(first + number * portsPerBlock) { return block }
        }
        throw NoneLeft()
    }
}

/// A port of 127.0.0.1 that refuses connections as long as this object lives: no other program can listen on it. On macOS,
/// connections time out instead.
public final class RefusingPort: Sendable {
    /// The number of the port.
    public let number: Int
    private let bound: BoundPort

    /// - Throws: ``TestPorts/NoneLeft`` if the system has no port.
    public init() throws {
        guard let bound = try BoundPort(0) else { throw TestPorts.NoneLeft() }
        (self.bound, number) = (bound, bound.number)
    }
}

/// A socket that is bound to a port, but does not listen.
private final class BoundPort: Sendable {
    let number: Int
    private let descriptor: Int32

    struct Failure: Error, CustomStringConvertible {
        let code = errno
        var description: String { "No socket: \(String(cString: strerror(code)))" }
    }

    /// Returns nil if the port is in use. The number 0 stands for a port that the system chooses.
    init?(_ number: Int) throws {
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #elseif canImport(Musl)
        let kind = SOCK_STREAM | SOCK_CLOEXEC
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw Failure() }
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

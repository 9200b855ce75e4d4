import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(Glibc)
let streamSocket = Int32(SOCK_STREAM.rawValue)
#else
let streamSocket = SOCK_STREAM
#endif

struct SocketError: Error, CustomStringConvertible {
    let description: String
    init(_ what: String, _ number: Int32) { description = "\(what): \(String(cString: strerror(number)))" }
}

/// A TCP connection that sends arbitrary bytes. Every wait has a limit. There is no lock, because only one thread at a
/// time uses the connection.
final class RawSocket: @unchecked Sendable {
    let descriptor: Int32
    /// Bytes that were received but not yet consumed.
    private(set) var pending: [UInt8] = []
    /// True if the peer reset the connection instead of closing it.
    private(set) var wasReset = false
    private(set) var isAtEnd = false
    private var isClosed = false

    /// - Parameters:
    ///   - source: the local address. On Linux all of 127.0.0.0/8 is this machine.
    ///   - receiveBuffer: size of the kernel's receive buffer in bytes.
    init(port: Int, host: String = "127.0.0.1", from source: String? = nil, receiveBuffer: Int? = nil) throws {
        descriptor = socket(AF_INET, streamSocket, 0)
        guard descriptor >= 0 else { throw SocketError("no socket", errno) }
        // From here on, `deinit` closes the descriptor after an error.
        prepare(receiveBuffer)
        if let source { try Self.with(source, 0, "bind") { bind(descriptor, $0, $1) } }
        try Self.with(host, port, "connect") { connect(descriptor, $0, $1) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// Uses a descriptor that is already connected, such as a tunnel's.
    init(descriptor: Int32) {
        self.descriptor = descriptor
        prepare(nil)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close() }

    private func prepare(_ receiveBuffer: Int?) {
        set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        if let receiveBuffer { set(SOL_SOCKET, SO_RCVBUF, Int32(receiveBuffer)) }
        #if canImport(Darwin)
        set(SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
        // A server process that is started meanwhile must not inherit this descriptor.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func with(
        _ host: String, _ port: Int, _ what: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw SocketError("address \(host)", EINVAL) }
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, size) }
        }
        guard result == 0 else { throw SocketError("\(what) \(host):\(port)", errno) }
    }

    /// Waits until the descriptor is readable or writable; returns false at the deadline.
    private func wait(for events: Int32, until deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = max(.zero, deadline - ContinuousClock.now)
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let count = poll(&entry, 1, Int32((left.inSeconds * 1000).rounded(.up)))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    // MARK: Sending

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8], within limit: Duration = .seconds(10)) throws {
        let sent = sendWhatGoes(bytes, within: limit)
        guard sent < bytes.count else { return }
        guard wasReset else { throw TimedOut("the peer took only \(sent) of \(bytes.count) bytes in \(limit)") }
        throw SocketError("send", EPIPE)
    }

    /// Sends until everything is sent, the peer closes, or the peer accepts nothing for this long. Returns the number
    /// of bytes sent.
    @discardableResult
    func sendWhatGoes(_ bytes: [UInt8], within limit: Duration = .seconds(10)) -> Int {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        var sent = 0
        while sent < bytes.count, !isClosed, !wasReset {
            let count = bytes[sent...].withUnsafeBytes { platformSend(descriptor, $0.baseAddress, $0.count, flags) }
            if count > 0 {
                sent += count
            } else if errno == EAGAIN || errno == EWOULDBLOCK {
                guard wait(for: Int32(POLLOUT), until: .now + limit) else { break }
            } else if errno != EINTR {
                wasReset = true
            }
        }
        return sent
    }

    // MARK: Receiving

    /// Waits for at least one byte and returns all available bytes. Returns an empty array at the end of the
    /// connection.
    func receive(atMost count: Int = 65536, within limit: Duration = .seconds(10)) throws -> [UInt8] {
        let deadline = ContinuousClock.now + limit
        if pending.isEmpty, !isAtEnd {
            guard try fill(until: deadline) else { throw TimedOut("nothing was received in \(limit)") }
        }
        return take(min(count, pending.count))
    }

    /// Reads everything up to and including the mark.
    func receive(until mark: [UInt8], within limit: Duration = .seconds(10)) throws -> [UInt8] {
        let deadline = ContinuousClock.now + limit
        var searched = 0
        while true {
            if let end = Self.end(of: mark, in: pending, from: max(0, searched - mark.count)) { return take(end) }
            searched = pending.count
            guard !isAtEnd else { throw TimedOut("the connection ended after \"\(Self.excerpt(pending))\"") }
            guard try fill(until: deadline) else {
                throw TimedOut("in \(limit) came only \"\(Self.excerpt(pending))\"")
            }
        }
    }

    /// Reads exactly this many bytes. Returns nil if the connection ends first.
    func receive(exactly count: Int, within limit: Duration = .seconds(10)) throws -> [UInt8]? {
        let deadline = ContinuousClock.now + limit
        while pending.count < count {
            if isAtEnd { return nil }
            guard try fill(until: deadline) else {
                throw TimedOut("in \(limit) came only \(pending.count) of \(count) bytes")
            }
        }
        return take(count)
    }

    /// Reads everything up to the end of the connection.
    func receiveAll(within limit: Duration = .seconds(10)) throws -> [UInt8] {
        let deadline = ContinuousClock.now + limit
        while !isAtEnd {
            guard try fill(until: deadline) else {
                throw TimedOut("the connection is still open after \(limit); received \(pending.count) bytes")
            }
        }
        return take(pending.count)
    }

    /// Whether the peer closes the connection within the limit. Data received until then stays readable.
    func isClosedByPeer(within limit: Duration) -> Bool {
        let deadline = ContinuousClock.now + limit
        while !isAtEnd {
            guard (try? fill(until: deadline)) == true else { break }
        }
        return isAtEnd
    }

    /// Whether data or the end of the connection can be read.
    func isReadable(until deadline: ContinuousClock.Instant) -> Bool {
        !pending.isEmpty || isAtEnd || wait(for: Int32(POLLIN), until: deadline)
    }

    /// Puts bytes back to be read again.
    func putBack(_ bytes: [UInt8]) { pending = bytes + pending }

    private func take(_ count: Int) -> [UInt8] {
        defer { pending.removeFirst(count) }
        return Array(pending.prefix(count))
    }

    /// Reads once; returns false at the deadline.
    private func fill(until deadline: ContinuousClock.Instant) throws -> Bool {
        guard !isClosed else { throw SocketError("receive", EBADF) }
        while wait(for: Int32(POLLIN), until: deadline) {
            let count = withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 1) { buffer in
                let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
                if count > 0 { pending += UnsafeRawBufferPointer(rebasing: buffer[..<count]) }
                return count
            }
            if count > 0 { return true }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            isAtEnd = true
            wasReset = wasReset || count < 0
            return true
        }
        return false
    }

    private static func end(of mark: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        guard !mark.isEmpty, bytes.count - start >= mark.count else { return nil }
        for index in start...(bytes.count - mark.count) where bytes[index] == mark[0] {
            if bytes[index..<(index + mark.count)].elementsEqual(mark) { return index + mark.count }
        }
        return nil
    }

    private static func excerpt(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix(200), as: UTF8.self) }

    // MARK: Closing

    /// Closes the sending direction.
    func shutdownWrite() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        closeDescriptor()
    }

    /// Closes with a reset, so that the peer gets an error.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close()
    }

    private func closeDescriptor() { platformClose(descriptor) }
}

/// Aliases for the system's functions, because inside the class `send` and `close` are its own methods.
private func platformSend(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(descriptor, bytes, count, flags)
}

private func platformClose(_ descriptor: Int32) { _ = close(descriptor) }

/// Raises the limit of open descriptors for this process and the servers that it starts. Returns the new limit.
@discardableResult
func raiseDescriptorLimit(to wanted: Int = 20_000) -> Int {
    var limit = rlimit()
    #if canImport(Glibc)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limit) == 0 else { return 256 }
    if limit.rlim_cur < rlim_t(wanted) {
        limit.rlim_cur = min(rlim_t(wanted), limit.rlim_max)
        setrlimit(resource, &limit)
        getrlimit(resource, &limit)
    }
    return Int(clamping: limit.rlim_cur)
}

import CLibAV
import LiveComposing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs a compositor on a socket: reads messages, composes each frame when it is due, and writes messages. One thread does all of
/// it, so that nothing needs a lock. Between two frames it reads what has arrived.
public struct SocketShell {
    /// Bytes that are read between two frames at most. A server that sends more has to wait.
    private static let maxRead = 4 << 20
    /// Bytes for the server at most, 30 s of output. A server that reads nothing for so long is broken.
    private static let maxWaiting = 16 << 20

    private let socket: Int32
    private let origin = ContinuousClock.now
    private var reader = CompositorMessageReader()
    private var compositor: Compositor?
    private var waiting: [UInt8] = []
    private var hasEnded = false
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)

    /// - Parameter socket: a connected stream socket.
    public init(socket: Int32) {
        self.socket = socket
        _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
    }

    private var now: Duration { ContinuousClock.now - origin }

    /// Runs until the server says `stop` or closes the socket.
    ///
    /// - Returns: nil after `stop` or the end of the socket, and otherwise what went wrong, which was also sent to the server.
    public mutating func run() -> String? {
        do {
            while !(hasEnded || compositor?.isFinished == true) { try turn() }
            return nil
        } catch {
            let text = "\(error)"
            queue([.fault(CompositorFault(text, isFatal: true))])
            try? flush()
            return text
        }
    }

    private mutating func turn() throws {
        try wait()
        let began = now
        try receive()
        if let compositor, now >= compositor.due {
            try compositor.composeFrame(now: now)
            if compositor.isFinished {
                queue(compositor.takeOutput())
                return try flush()
            }
        }
        if let compositor { queue(compositor.takeOutput()) }
        try send()
        compositor?.addBusy(now - began)
    }

    /// Waits until a frame is due or the socket is ready.
    private func wait() throws {
        var milliseconds: Int32 = 1_000
        if let compositor {
            let (seconds, attoseconds) = max(.zero, min(compositor.due - now, .seconds(1))).components
            milliseconds = Int32(seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
            // Rounded up, because a frame that is not due yet would only be looked at.
            if attoseconds % 1_000_000_000_000_000 > 0 { milliseconds += 1 }
        }
        var entry = pollfd(fd: socket, events: Int16(waiting.isEmpty ? POLLIN : POLLIN | POLLOUT), revents: 0)
        if poll(&entry, 1, milliseconds) < 0, errno != EINTR { throw ShellError(text: "The socket cannot be read.") }
    }

    private mutating func receive() throws {
        var total = 0
        while total < Self.maxRead {
            let count = read(socket, &buffer, buffer.count)
            if count == 0 { hasEnded = true }
            if count < 0, errno != EAGAIN, errno != EINTR { hasEnded = true }
            guard count > 0 else { return }
            total += count
            reader.append(buffer.prefix(count))
            while let message = try reader.next() { try take(CompositorInput(message)) }
        }
    }

    private mutating func take(_ input: CompositorInput) throws {
        if let compositor { return compositor.take(input, now: now) }
        guard case .config(let configuration, let time) = input else {
            throw ShellError(text: "The first message is not a configuration.")
        }
        compositor = try Compositor(configuration, start: time, now: now)
    }

    private mutating func queue(_ messages: [CompositorOutput]) {
        for message in messages { waiting += message.message.bytes }
    }

    /// Sends as much as the socket takes.
    private mutating func send() throws {
        while !waiting.isEmpty {
            let count = write(socket, waiting, waiting.count)
            if count > 0 {
                waiting.removeFirst(count)
            } else if errno == EAGAIN || errno == EINTR {
                guard waiting.count <= Self.maxWaiting else {
                    throw ShellError(text: "The server has stopped reading.")
                }
                return
            } else {
                return hasEnded = true
            }
        }
    }

    /// Sends what is left, for at most five seconds.
    private mutating func flush() throws {
        let end = now + .seconds(5)
        while !waiting.isEmpty, !hasEnded, now < end {
            var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
            _ = poll(&entry, 1, 100)
            try send()
        }
    }
}

/// A fault of the shell.
private struct ShellError: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
}

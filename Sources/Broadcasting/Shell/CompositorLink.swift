import DequeModule
import Foundation
import LiveComposing
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The server's end of the socket to one run of the compositor. One thread writes what waits, and another one reads.
final class CompositorLink: Sendable {
    private struct State {
        var pieces = Deque<[UInt8]>()
        var waiting = 0
        var isClosed = false
        /// The threads that use the socket. The last one closes it.
        var users = 2
    }

    /// The compositor's end of the socket. `ChildProcess.run` closes it.
    let childEnd: Int32
    private let socket: Int32
    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let isRead: AsyncStream<Void>
    private let finishReading: AsyncStream<Void>.Continuation

    /// Returns nil if the process has no descriptors left.
    init?() {
        var ends: [Int32] = [0, 0]
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
        (socket, childEnd) = (ends[0], ends[1])
        (isRead, finishReading) = AsyncStream.makeStream()
    }

    /// The number of bytes that the compositor has not read.
    var waiting: Int { state.withLock { $0.waiting } }

    /// Starts the threads.
    ///
    /// - Parameter onMessage: called with each message on the reading thread. After an error, the compositor's end sees a closed
    ///   socket, and `onEnd` gets the error.
    func start(
        onMessage: @escaping (CompositorMessage) throws -> Void, onEnd: @escaping (any Error) -> Void
    ) {
        nonisolated(unsafe) let (onMessage, onEnd) = (onMessage, onEnd)
        Thread.detachNewThread { [self] in
            do { try read(onMessage) } catch { onEnd(error) }
            close()
            finishReading.finish()
            release()
        }
        Thread.detachNewThread { [self] in
            write()
            release()
        }
    }

    /// Appends bytes. Its caller bounds how many wait.
    func append(_ bytes: [UInt8]) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.pieces.append(bytes)
            state.waiting += bytes.count
        }
        work.signal()
    }

    /// Waits until everything was read that the compositor has written, also in a task that was canceled.
    func waitUntilRead() async {
        let isRead = isRead
        await Task { for await _ in isRead {} }.value
    }

    /// Drops what waits, and ends both directions. What the compositor has written before can still be read.
    private func close() {
        state.withLock { state in
            (state.isClosed, state.pieces, state.waiting) = (true, [], 0)
            if state.users > 0 { shutdown(socket, Int32(SHUT_RDWR)) }
        }
        work.signal()
    }

    private func release() {
        state.withLock { state in
            state.users -= 1
            if state.users == 0 { closeDescriptor(socket) }
        }
    }

    private func read(_ onMessage: (CompositorMessage) throws -> Void) throws {
        var reader = CompositorMessageReader()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            reader.append(buffer.prefix(count))
            while let message = try reader.next() { try onMessage(message) }
        }
    }

    private func write() {
        while true {
            work.wait()
            let next = state.withLock { state in
                (piece: state.pieces.popFirst(), isClosed: state.isClosed)
            }
            guard let piece = next.piece else {
                if next.isClosed { return }
                continue
            }
            guard write(piece) else { return close() }
            state.withLock { $0.waiting = max(0, $0.waiting - piece.count) }
        }
    }

    /// Returns false if the compositor reads nothing more.
    private func write(_ piece: [UInt8]) -> Bool {
        var offset = 0
        while offset < piece.count {
            let count = piece.withUnsafeBytes { bytes in
                send(socket, bytes.baseAddress.map { $0 + offset }, bytes.count - offset, Self.sendFlags)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    #if canImport(Glibc)
    /// A compositor that has ended must not end this process.
    private static let sendFlags = Int32(MSG_NOSIGNAL)
    #else
    private static let sendFlags = MSG_NOSIGNAL
    #endif
}

/// A function of the system that has the name of a method.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

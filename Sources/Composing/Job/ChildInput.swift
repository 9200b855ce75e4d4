import CSpawn
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What a child process reads from its standard input: a bounded queue that any thread appends to. The thread of ``ChildProcess``
/// writes it to the child as fast as the child reads.
package final class ChildInput: Sendable {
    fileprivate struct State {
        /// What the child has not read, of which the first `offset` bytes are written.
        var pieces: [[UInt8]] = []
        var offset = 0
        var waiting = 0
        /// Whether the input ends after the pieces.
        var isClosed = false
        /// Whether the child reads nothing any more.
        var isEnded = false
        /// The end of the child's pipe, and both ends of the one that interrupts the wait for it; -1 if not open.
        var child: Int32 = -1
        var wake: (read: Int32, write: Int32) = (-1, -1)
    }

    private let maxBytes: Int
    private let state = Mutex(State())

    /// - Parameter maxBytes: the maximum number of bytes that wait.
    package init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// The number of bytes that the child has not read.
    package var waiting: Int { state.withLock { $0.waiting } }

    /// Appends bytes. They may come before the child starts.
    ///
    /// - Returns: false if they do not fit, or the input has ended. Then nothing is appended.
    package func append(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard !state.isClosed, !state.isEnded, bytes.count <= maxBytes - state.waiting else { return false }
            guard !bytes.isEmpty else { return true }
            state.pieces.append(bytes)
            state.waiting += bytes.count
            state.interrupt()
            return true
        }
    }

    /// Ends the input after the bytes that wait.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            state.interrupt()
        }
    }

    /// Opens the pipe, and returns the child's end of it, which its caller closes.
    ///
    /// - Throws: `ComposeError.cannotWrite`. Then nothing is open.
    func open(_ makePipe: ChildStreams.MakePipe = ChildStreams.makePipe) throws -> Int32 {
        // A child that has ended must not end this process. This thread belongs to the child.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        guard let pipe = makePipe() else { throw ComposeError.cannotWrite("A pipe") }
        guard let wake = makePipe() else {
            for descriptor in [pipe.read, pipe.write] { closeDescriptor(descriptor) }
            throw ComposeError.cannotWrite("A pipe")
        }
        for descriptor in [pipe.write, wake.read, wake.write] {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        }
        state.withLock { state in
            (state.child, state.wake) = (pipe.write, wake)
            state.interrupt()
        }
        return pipe.read
    }

    /// What to wait for: more bytes, and that the child reads those that wait.
    var events: [pollfd] {
        state.withLock { state in
            var events = [pollfd(fd: state.wake.read, events: Int16(POLLIN), revents: 0)]
            if state.child >= 0, !state.pieces.isEmpty {
                events.append(pollfd(fd: state.child, events: Int16(POLLOUT), revents: 0))
            }
            return events
        }
    }

    /// Writes what the child can take now.
    func proceed() {
        state.withLock { state in
            var ignored = [UInt8](repeating: 0, count: 64)
            while readDescriptor(state.wake.read, &ignored) > 0 {}
            while let piece = state.pieces.first, state.child >= 0 {
                let count = writeDescriptor(state.child, piece, from: state.offset)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    if errno != EAGAIN { state.end() }
                    return
                }
                state.waiting -= count
                state.offset += count
                if state.offset == piece.count {
                    state.pieces.removeFirst()
                    state.offset = 0
                }
            }
            if state.isClosed, state.pieces.isEmpty { state.closeChild() }
        }
    }

    /// Drops what waits, because the child has ended, or was not started.
    func end() {
        state.withLock { state in
            state.end()
            for descriptor in [state.wake.read, state.wake.write] where descriptor >= 0 { closeDescriptor(descriptor) }
            state.wake = (-1, -1)
        }
    }
}

extension ChildInput.State {
    /// Ends the wait of the child's thread.
    fileprivate func interrupt() {
        // If the pipe is full, the thread is about to wake up.
        if wake.write >= 0 { _ = writeDescriptor(wake.write, [0], from: 0) }
    }

    fileprivate mutating func end() {
        (pieces, offset, waiting, isEnded) = ([], 0, 0, true)
        closeChild()
    }

    fileprivate mutating func closeChild() {
        if child >= 0 { closeDescriptor(child) }
        child = -1
    }
}

// Functions of the system that have the names of methods.

private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

private func readDescriptor(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int {
    read(descriptor, &buffer, buffer.count)
}

private func writeDescriptor(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int) -> Int {
    bytes.withUnsafeBytes { write(descriptor, $0.baseAddress.map { $0 + offset }, bytes.count - offset) }
}

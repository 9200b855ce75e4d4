import RTC

/// A send buffer. Datagrams are stored back to back in one block of memory until the loop sends them all at once.
///
/// Consecutive datagrams with the same path and length are joined into one message, which the kernel splits again (UDP GSO).
/// The packets of a video frame then cost one system call instead of several.
///
/// The arena is a class, so its owner can store it in a `let` and avoids an exclusivity check for each packet.
package final class DatagramArena {
    /// One or more datagrams with the same path, which are passed to the kernel as one message.
    package struct Message {
        package var path: Path
        package var offset: Int
        package var length: Int
        /// The length of each datagram in the message; the last datagram may be shorter.
        package var segment: Int
        package var count: Int
    }

    /// The size of the buffer in bytes, enough for most iterations of the loop. More data is sent in several rounds.
    package static let size = 512 * 1024
    /// The maximum number of datagrams in a message, which is the kernel's UDP_MAX_SEGMENTS.
    package static let maxSegments = 64
    /// The maximum length of a message in bytes: the maximum of IPv4, minus some room for headers.
    package static let longestMessage = 65_000

    private let memory: UnsafeMutableRawBufferPointer
    private var used = 0
    /// The number of bytes that the caller may commit.
    package private(set) var prepared = 0
    package private(set) var messages: [Message] = []
    private let joins: Bool

    /// - Parameter joins: whether the kernel can split messages (UDP GSO).
    package init(joins: Bool) {
        memory = .allocate(byteCount: Self.size, alignment: 16)
        self.joins = joins
        messages.reserveCapacity(1024)
    }

    deinit { memory.deallocate() }

    package var isEmpty: Bool { messages.isEmpty }

    /// Returns memory for the next datagram; nil if the buffered datagrams must be sent first.
    package func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer? {
        guard used + capacity <= memory.count else {
            prepared = 0
            return nil
        }
        prepared = capacity
        return UnsafeMutableRawBufferPointer(rebasing: memory[used..<used + capacity])
    }

    package func commit(_ count: Int, on path: Path) {
        guard count > 0, count <= prepared else { return }
        defer {
            used += count
            prepared = 0
        }
        if joins, let last = messages.indices.last, messages[last].takes(count, on: path) {
            messages[last].length += count
            messages[last].count += 1
        } else {
            messages.append(Message(path: path, offset: used, length: count, segment: count, count: 1))
        }
    }

    package func bytes(of message: Message) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[message.offset..<message.offset + message.length])
    }

    package func clear() {
        used = 0
        messages.removeAll(keepingCapacity: true)
    }
}

extension DatagramArena.Message {
    /// Returns whether another datagram can join this message. It must have the same path, must not be longer than the
    /// others, and none of the others may be shorter than the first. The limits of a message must not be exceeded.
    func takes(_ size: Int, on path: Path) -> Bool {
        size <= segment && length == segment * count && count < DatagramArena.maxSegments
            && length + size <= DatagramArena.longestMessage && self.path == path
    }
}

import RTC

/// What is to be sent, back to back in one piece of memory, until the loop sends it all at once.
///
/// Neighbours that go the same way and have the same length become one message, which the kernel cuts up again (UDP
/// GSO): the packets of a video frame cost one system call's work instead of several.
///
/// A class, so that whoever holds it in a `let` is not asked for each packet whether somebody else is changing it too.
package final class DatagramArena {
    package struct Message {
        package var path: Path
        package var offset: Int
        package var length: Int
        /// Of each datagram in it; the last may be shorter.
        package var segment: Int
        package var count: Int
    }

    /// A loop's wake-up seldom has more to send; when it does it is sent in parts.
    package static let size = 512 * 1024
    /// The kernel's UDP_MAX_SEGMENTS.
    package static let mostSegments = 64
    /// What IPv4 can carry, and some room for headers.
    package static let longestMessage = 65_000

    private let memory: UnsafeMutableRawBufferPointer
    private var used = 0
    /// How much may be committed.
    package private(set) var prepared = 0
    package private(set) var messages: [Message] = []
    private let joins: Bool

    /// - Parameter joins: whether the kernel can cut messages up.
    package init(joins: Bool) {
        memory = .allocate(byteCount: Self.size, alignment: 16)
        self.joins = joins
        messages.reserveCapacity(1024)
    }

    deinit { memory.deallocate() }

    package var isEmpty: Bool { messages.isEmpty }

    /// Memory for the next datagram, or nil when what is here has to be sent first.
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
    /// Whether another datagram may follow in the same message: it is not longer, and none before it was shorter.
    func takes(_ size: Int, on path: Path) -> Bool {
        size <= segment && length == segment * count && count < DatagramArena.mostSegments
            && length + size <= DatagramArena.longestMessage && self.path == path
    }
}

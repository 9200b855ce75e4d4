import CSockets
import Foundation

/// Waits until any of several sockets is readable or writable.
package protocol Poller: AnyObject {
    func add(_ descriptor: Int32, tag: UInt32)
    /// Sets whether to wait until the socket is writable, in addition to readable.
    func watch(_ descriptor: Int32, tag: UInt32, writing: Bool)
    func remove(_ descriptor: Int32)
    /// Waits at most `milliseconds` (-1 means no limit), and calls `body` for each socket that is ready.
    func wait(_ milliseconds: Int32, _ body: (_ tag: UInt32, _ readable: Bool, _ writable: Bool) -> Void)
}

#if os(Linux)
/// A poller that uses Linux's epoll(7).
package final class EpollPoller: Poller {
    private let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    private var events = [epoll_event](repeating: epoll_event(), count: 256)

    package init() {}

    deinit { close(descriptor) }

    package func add(_ socket: Int32, tag: UInt32) { control(EPOLL_CTL_ADD, socket, tag, writing: false) }

    package func watch(_ socket: Int32, tag: UInt32, writing: Bool) {
        control(EPOLL_CTL_MOD, socket, tag, writing: writing)
    }

    package func remove(_ socket: Int32) { epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil) }

    private func control(_ operation: Int32, _ socket: Int32, _ tag: UInt32, writing: Bool) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue | (writing ? EPOLLOUT.rawValue : 0)
        event.data.u32 = tag
        epoll_ctl(descriptor, operation, socket, &event)
    }

    package func wait(_ milliseconds: Int32, _ body: (UInt32, Bool, Bool) -> Void) {
        let count = epoll_wait(descriptor, &events, Int32(events.count), milliseconds)
        guard count > 0 else { return }
        for index in 0..<Int(count) {
            let event = events[index]
            // Report errors and hang-ups as readable, because reading from the socket returns the error.
            let readable = event.events & ~EPOLLOUT.rawValue != 0
            body(event.data.u32, readable, event.events & EPOLLOUT.rawValue != 0)
        }
    }
}
#endif

/// A poller that uses poll(2), which every system supports. It scans all sockets in each call.
package final class PlainPoller: Poller {
    private var entries: [pollfd] = []
    private var tags: [UInt32] = []

    package init() {}

    package func add(_ descriptor: Int32, tag: UInt32) {
        entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        tags.append(tag)
    }

    package func watch(_ descriptor: Int32, tag: UInt32, writing: Bool) {
        guard let index = entries.firstIndex(where: { $0.fd == descriptor }) else { return }
        entries[index].events = Int16(POLLIN) | (writing ? Int16(POLLOUT) : 0)
    }

    package func remove(_ descriptor: Int32) {
        guard let index = entries.firstIndex(where: { $0.fd == descriptor }) else { return }
        entries.remove(at: index)
        tags.remove(at: index)
    }

    package func wait(_ milliseconds: Int32, _ body: (UInt32, Bool, Bool) -> Void) {
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
        // Collect the ready sockets first, because `body` may add and remove sockets.
        let ready = zip(entries, tags).filter { $0.0.revents != 0 }
        for (entry, tag) in ready {
            body(tag, entry.revents & ~Int16(POLLOUT) != 0, entry.revents & Int16(POLLOUT) != 0)
        }
    }
}

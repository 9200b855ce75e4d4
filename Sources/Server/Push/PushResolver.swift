import CSockets
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A DNS resolver for push services and webhooks.
protocol PushResolver: Sendable {
    /// Returns the addresses of a host in order of preference; empty if the name does not exist or cannot be looked
    /// up.
    ///
    /// - Throws: `CancellationError`.
    func addresses(of host: String) async throws -> [IPAddress]
}

/// The system's resolver. It blocks a thread until the name servers answer, so each lookup gets a separate thread and
/// never blocks the threads that serve calls. ``PushLookups`` limits the number of threads.
struct SystemResolver: PushResolver {
    func addresses(of host: String) async throws -> [IPAddress] {
        let answer = Once<[IPAddress]>()
        Thread.detachNewThread { answer.settle(Self.lookUp(host)) }
        // The value is nil if the task was canceled. The thread then still finishes the lookup.
        return try await answer.value() ?? { throw CancellationError() }()
    }

    private static func lookUp(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        // Return IPv6 addresses only if this machine has an IPv6 address, and IPv4 addresses only if it has an IPv4
        // address.
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [IPAddress] = []
        var next = list
        while let entry = next?.pointee {
            // getaddrinfo returns each address once per socket type.
            if let address = address(entry), !found.contains(address) { found.append(address) }
            next = entry.ai_next
        }
        return found
    }

    private static func address(_ entry: addrinfo) -> IPAddress? {
        guard let socketAddress = entry.ai_addr else { return nil }
        switch entry.ai_family {
        case AF_INET:
            return socketAddress.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                withUnsafeBytes(of: address.pointee.sin_addr) { IPAddress(bytes: Array($0)) }
            }
        case AF_INET6:
            return socketAddress.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                withUnsafeBytes(of: address.pointee.sin6_addr) { IPAddress(bytes: Array($0)) }
            }
        default: return nil
        }
    }
}

/// A value that is set at most once. At most one task can wait for it, and that task may be canceled.
final class Once<Value: Sendable>: Sendable {
    /// Whether the value is set, a task waits for it, or the waiting task was canceled.
    private enum State {
        case open
        case awaited(CheckedContinuation<Value?, Never>)
        case settled(Value)
        case abandoned
    }

    private let state = Mutex(State.open)

    func settle(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value?, Never>? in
            switch state {
            case .open: state = .settled(value)
            case .awaited(let continuation):
                state = .settled(value)
                return continuation
            case .settled, .abandoned: break
            }
            return nil
        }
        waiting?.resume(returning: value)
    }

    /// Waits for the value. Returns nil if the task is canceled first. Only one task may wait.
    func value() async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Value?? in
                    switch state {
                    case .open:
                        state = .awaited(continuation)
                        return nil
                    case .settled(let value): return .some(value)
                    case .awaited, .abandoned: return .some(nil)
                    }
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Value?, Never>? in
                switch state {
                case .awaited(let continuation):
                    state = .abandoned
                    return continuation
                case .open: state = .abandoned
                case .settled, .abandoned: break
                }
                return nil
            }
            waiting?.resume(returning: nil)
        }
    }
}

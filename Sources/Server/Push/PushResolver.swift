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

/// Finds the addresses of a push service.
protocol PushResolver: Sendable {
    /// In the order in which they should be tried; empty when there is no such name.
    func addresses(of host: String) async throws -> [IPAddress]
}

/// Asks the system. That blocks a thread for as long as name servers take, so each question has one of its own, never
/// one of those that carry calls.
final class SystemResolver: PushResolver {
    /// Questions at a time. A resolver that hangs keeps each for half a minute; more at once would only be more
    /// threads.
    static let questions = 8

    private let asked = Atomic<Int>(0)

    func addresses(of host: String) async throws -> [IPAddress] {
        guard asked.wrappingAdd(1, ordering: .relaxed).newValue <= Self.questions else {
            asked.wrappingSubtract(1, ordering: .relaxed)
            throw PushFailure.nameUnknown(host)
        }
        let answer = Once<[IPAddress]>()
        Thread.detachNewThread { [self] in
            answer.settle(Self.ask(host))
            asked.wrappingSubtract(1, ordering: .relaxed)
        }
        // Nil when nobody waits any more; the thread ends by itself.
        return try await answer.value() ?? { throw CancellationError() }()
    }

    private static func ask(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        // No IPv6 addresses for a machine that has none itself.
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [IPAddress] = []
        var next = list
        while let entry = next?.pointee {
            // Once for each kind of socket.
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

/// Which addresses lead out of this machine and its networks.
enum PublicAddresses {
    /// What the registries of RFC 6890 call not globally reachable, and what nobody can send to.
    private static let refused: [CIDRBlock] = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        // Of global unicast: protocols such as Teredo, documentation, and 6to4, which carry IPv4 addresses unseen.
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    ].compactMap { CIDRBlock($0) }

    /// Everything else of IPv6 is loopback, local, multicast, mapped, or not given out.
    private static let globalUnicast = CIDRBlock("2000::/3")
    /// By which networks without IPv4 reach it (RFC 6052 §2.1); the last four bytes are the IPv4 address.
    private static let translated = CIDRBlock("64:ff9b::/96")

    static func contain(_ address: IPAddress) -> Bool {
        if address.isIPv4 { return !refused.contains { $0.contains(address) } }
        if translated?.contains(address) == true {
            return IPAddress(bytes: address.bytes.suffix(4)).map(contain) ?? false
        }
        return globalUnicast?.contains(address) == true && !refused.contains { $0.contains(address) }
    }
}

/// A value that comes once, for one who waits and may give up.
final class Once<Value: Sendable>: Sendable {
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

    /// Nil when the task that waits is cancelled first. Only one may wait.
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

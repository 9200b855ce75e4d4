import Logging
import NIOCore
import ServiceLifecycle

#if canImport(Glibc)
import Glibc
#endif

/// Gives memory that nobody uses back to the system.
///
/// A client's arrival costs far more memory for a moment than its stay: its DTLS handshake alone takes 50 kB. The C
/// library keeps what was freed in between for the next arrivals, so after a crowd came, a third of the process could be
/// such holes. Only the C library of GNU needs this, and only it has the function.
struct ReturnedMemory: Service {
    /// Long enough for a handshake's memory to be free: it is kept for up to 10 s.
    private static let interval: Duration = .seconds(12)
    /// Fewer leave holes that are not worth the search: at 50 kB each, one MB.
    private static let crowd: UInt64 = 20

    let gateway: NIOLoopBound<Gateway>

    func run() async throws {
        guard let trim = Self.trim else { return try await gracefulShutdown() }
        let gateway = gateway
        try await cancelWhenGracefulShutdown {
            var seen: UInt64 = 0
            while !Task.isCancelled {
                do {
                    try await Task.sleep(for: Self.interval)
                } catch {
                    return
                }
                let arrivals = try await gateway.eventLoop.submit { gateway.value.runner.arrivals }.get()
                guard arrivals >= seen + Self.crowd else { continue }
                seen = arrivals
                _ = trim(0)
            }
        }
    }

    /// `malloc_trim` (malloc.h), looked up by name: Swift's module of the C library does not show it.
    private static var trim: (@convention(c) (Int) -> Int32)? {
        #if canImport(Glibc)
        guard let symbol = dlsym(nil, "malloc_trim") else { return nil }
        return unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)
        #else
        return nil
        #endif
    }
}

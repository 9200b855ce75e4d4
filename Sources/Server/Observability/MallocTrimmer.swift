import Logging
import NIOCore
import ServiceLifecycle

#if canImport(Glibc)
import Glibc
#endif

/// Returns freed memory to the operating system after many clients have connected.
///
/// A connecting client temporarily needs far more memory than a connected one: the DTLS handshake alone takes 50 kB. The C
/// library keeps the freed memory, so after many arrivals a third of the process's memory could be unused. Only glibc needs
/// this, and only glibc has the function.
struct MallocTrimmer: Service {
    /// How often to return memory. Longer than the 10 s for which a handshake may hold its memory.
    private static let interval: Duration = .seconds(12)
    /// Minimum number of arrivals since memory was last returned. Fewer arrivals free less than 1 MB (50 kB each),
    /// which is not worth the work.
    private static let minArrivals: UInt64 = 20

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
                guard arrivals >= seen + Self.minArrivals else { continue }
                seen = arrivals
                _ = trim(0)
            }
        }
    }

    /// `malloc_trim` (malloc.h), looked up by name because Swift's Glibc module does not export it. Nil if the C
    /// library does not have it.
    private static var trim: (@convention(c) (Int) -> Int32)? {
        #if canImport(Glibc)
        guard let symbol = dlsym(nil, "malloc_trim") else { return nil }
        return unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)
        #else
        return nil
        #endif
    }
}

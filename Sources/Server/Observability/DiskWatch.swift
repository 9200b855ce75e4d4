import Logging
import NIOCore
import ServiceLifecycle

/// Tells the gateway whether the disk is nearly full, so that it stores nothing optional.
struct DiskWatch: Service {
    let gateway: NIOLoopBound<Gateway>
    let disk: DiskSpace
    /// In bytes. Below it, the disk is nearly full.
    let mark: Int
    let logger: Logger
    /// Longer than the time for which `DiskSpace` keeps its answer. Budgets limit what can be stored meanwhile.
    var interval: Duration = .seconds(4)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var wasLow = false
            while !Task.isCancelled {
                // `Readiness` reports file system errors.
                if let free = await disk.free() {
                    let isLow = free < mark
                    if isLow != wasLow { report(isLow, free) }
                    wasLow = isLow
                    gateway.eventLoop.execute { gateway.value.isDiskLow = isLow }
                }
                try? await Task.sleep(for: interval)
            }
        }
    }

    private func report(_ isLow: Bool, _ free: Int) {
        let metadata: Logger.Metadata = ["freeMiB": "\(free >> 20)"]
        if isLow {
            logger.warning("The disk is nearly full. Nothing optional is stored.", metadata: metadata)
        } else {
            logger.info("The disk has space again", metadata: metadata)
        }
    }
}

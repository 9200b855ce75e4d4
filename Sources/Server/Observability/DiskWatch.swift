import Logging
import NIOCore
import ServiceLifecycle

/// Measures the free space of the disk regularly, so that the gateway stores nothing optional when it is nearly full.
struct DiskWatch: Service {
    let gateway: NIOLoopBound<Gateway>
    /// In bytes. Below it, the disk is nearly full.
    let mark: Int
    let logger: Logger
    /// Budgets limit what can be stored meanwhile. Files in rooms have a measurement of their own.
    var interval: Duration = .seconds(4)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var wasLow = false
            while !Task.isCancelled {
                // `Readiness` reports file system errors.
                if let free = await gateway.measureDisk() {
                    let isLow = free < mark
                    if isLow != wasLow { report(isLow, free) }
                    wasLow = isLow
                }
                try? await Task.sleep(for: interval)
            }
        }
    }

    private func report(_ isLow: Bool, _ free: Int) {
        let metadata: Logger.Metadata = ["freeMiB": "\(free >> 20)"]
        if isLow {
            logger.warning("The disk is nearly full. Only essential data is stored.", metadata: metadata)
        } else {
            logger.info("The disk has enough space again", metadata: metadata)
        }
    }
}

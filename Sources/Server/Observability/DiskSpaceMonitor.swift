import Logging
import NIOCore
import ServiceLifecycle

/// Measures the free disk space regularly, so that the gateway stores only essential data when the disk is nearly full.
struct DiskSpaceMonitor: Service {
    let gateway: NIOLoopBound<Gateway>
    /// The free space in bytes below which the disk counts as nearly full.
    let mark: Int
    let logger: Logger
    /// The time between two measurements. Budgets limit how much can be stored in between. Before each upload of a
    /// file, the disk is measured separately.
    var interval: Duration = .seconds(4)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var wasLow = false
            while !Task.isCancelled {
                // Report nothing if the space cannot be measured: `Readiness` reports file system errors.
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

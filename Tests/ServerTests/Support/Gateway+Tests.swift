import Cluster
import Logging
import NIOCore
import Signaling

@testable import Server

extension Gateway {
    /// Makes a gateway without a server. Call it on its event loop.
    static func forTests(
        _ project: Project, on eventLoop: any EventLoop, as tag: NodeTag? = nil,
        _ configure: (inout ConfabConfiguration) -> Void = { _ in }
    ) throws -> Gateway {
        var configuration = ConfabConfiguration()
        configure(&configuration)
        let (storage, metrics) = (try SQLiteStorage.inMemory(), GatewayMetrics())
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let runner = HubRunner(
            hubSettings: HubSettings(rules: configuration.rules, project: project, tag: tag), storage: storage,
            media: nil,
            trouble: StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10)),
            maxHeldBytes: configuration.limits.sendQueue, clock: ServerClock(), logger: logger, metrics: metrics,
            eventLoop: eventLoop)
        return Gateway(
            runner: runner, storage: storage, configuration: configuration, logger: logger, metrics: metrics)
    }
}

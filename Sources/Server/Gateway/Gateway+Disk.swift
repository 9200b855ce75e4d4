import NIOCore
import Signaling
import Synchronization

/// Measures the free disk space, which limits optional data and the files in rooms.
///
/// Measurements do not overlap: the rules require that each one starts after the previous one was reported.
final class DiskMeter {
    private let disk: DiskSpace
    /// The free space in bytes below which the disk counts as nearly full.
    private let mark: Int
    private var running: EventLoopFuture<Int?>?

    init(_ disk: DiskSpace, mark: Int) { (self.disk, self.mark) = (disk, mark) }

    /// Measures the free space and reports it to the gateway. If a measurement is in progress, returns its result.
    ///
    /// - Returns: the free bytes; nil if they cannot be read.
    func measure(for gateway: Gateway) -> EventLoopFuture<Int?> {
        if let running { return running }
        let eventLoop = gateway.eventLoop
        let (meter, disk) = (NIOLoopBound(self, eventLoop: eventLoop), disk)
        let bound = NIOLoopBound(gateway, eventLoop: eventLoop)
        // Read the number of arrived bytes before the free space is measured, so that it does not include bytes that
        // are written after the measurement.
        let arrived = gateway.runner.roomFiles?.arrivedBytes ?? 0
        let reported = eventLoop.makeFutureWithTask { await disk.measure() }.map { free in
            meter.value.running = nil
            meter.value.report(free, arrived, to: bound.value)
            return free
        }
        running = reported
        return reported
    }

    /// Reports the free space to the rules, and updates `Gateway.isDiskLow`. `Readiness` reports file system errors.
    private func report(_ free: Int?, _ arrived: Int, to gateway: Gateway) {
        gateway.runner.submit(.diskMeasured(DiskMeasurement(free: free, reserve: mark, arrived: arrived)))
        // Recordings may be on another disk, which the recorder measures.
        if let recorder = gateway.runner.recorder {
            gateway.runner.submit(.recordingSpace(isEnough: recorder.refusal == nil))
        }
        guard let free else { return }
        gateway.isDiskLow = free < mark
        gateway.storage.webhookSignal.isDiskLow.store(free < mark, ordering: .relaxed)
    }
}

extension NIOLoopBound where Value == Gateway {
    /// Measures the free disk space now and returns it in bytes. Returns nil if it cannot be measured, or if the
    /// gateway stores nothing on a disk.
    @discardableResult
    func measureDisk() async -> Int? {
        let gateway = self
        return try? await eventLoop.flatSubmit {
            gateway.value.diskMeter?.measure(for: gateway.value) ?? gateway.eventLoop.makeSucceededFuture(nil)
        }.get()
    }
}

import Metrics
import NIOSSL
import Synchronization

/// Metrics of the process, its build, its disk and its HTTPS certificate. The figures of the process and the disk are
/// read at each scrape.
final class OperatingMetrics: Sendable {
    private let ready = Readiness.Part.allCases.map { part in
        (part, Gauge(label: "confab_ready", dimensions: [("part", part.rawValue)]))
    }
    private let diskFree = Gauge(label: "confab_disk_free_bytes")
    private let disk: DiskSpace
    #if os(Linux)
    private let cpu = FloatingPointCounter(label: "process_cpu_seconds_total")
    private let cpuSeconds = Mutex(0.0)
    private let resident = Gauge(label: "process_resident_memory_bytes")
    private let open = Gauge(label: "process_open_fds")
    private let limit = Gauge(label: "process_max_fds")
    private let started = Gauge(label: "process_start_time_seconds")
    #endif

    /// The help text of each metric, keyed by metric name.
    static let help = [
        "confab_build_info": "Always 1. The labels are the versions of Confab and OpenSSL, and what encrypts media.",
        "confab_ready": "1 if this part of the server is ready, otherwise 0.",
        "confab_disk_free_bytes": "Free space on the disk of the data directory.",
        "confab_tls_certificate_expiry_timestamp_seconds": "Expiry of the HTTPS certificate, in seconds since 1970.",
        "confab_acme_failed_attempts": "Failed attempts to get a certificate since the last success (ACME).",
        "process_cpu_seconds_total": "CPU time of the process.",
        "process_resident_memory_bytes": "Resident memory of the process in bytes.",
        "process_open_fds": "Open file descriptors of the process.",
        "process_max_fds": "Maximum number of open file descriptors of the process.",
        "process_start_time_seconds": "Start time of the process in seconds since 1970.",
    ]

    static let version = "0.1.0"

    init(disk: DiskSpace) {
        self.disk = disk
        Gauge(
            label: "confab_build_info",
            dimensions: [
                ("version", Self.version), ("openssl", MediaPlane.openSSLVersion),
                ("srtp", MediaPlane.srtpImplementation),
            ]
        ).record(1)
    }

    /// Records when the certificate expires. Without HTTPS there is no such metric.
    static func record(expiryOf certificate: NIOSSLCertificate) {
        Gauge(label: "confab_tls_certificate_expiry_timestamp_seconds").record(Int64(certificate.notValidAfter))
    }

    /// Records the readiness, the free disk space and the figures of the process. Do not call this on an event loop:
    /// it reads files.
    func record(_ readiness: Readiness) async {
        for (part, gauge) in ready { gauge.record(readiness.failing.contains(part) ? 0 : 1) }
        if let free = await disk.free() { diskFree.record(free) }
        #if os(Linux)
        guard let figures = ProcessFigures.read() else { return }
        let added = cpuSeconds.withLock { last in
            defer { last = max(last, figures.cpuSeconds) }
            return figures.cpuSeconds - last
        }
        cpu.increment(by: added)
        resident.record(figures.residentBytes)
        open.record(figures.openDescriptors)
        if let maximum = figures.maxDescriptors { limit.record(maximum) }
        started.record(figures.startedAt)
        #endif
    }
}

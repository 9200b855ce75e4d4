import CAllocations
import Foundation
import Logging
import MediaFiles
import RTC
import Signaling
import Synchronization
import Testing
import Wire

@testable import SFU
@testable import Server

/// The memory of the recorder's thread over a long time, which is simulated. The ring, the recorder and the files are a server's.
///
/// `CONFAB_RECORDING_MINUTES` sets how long is recorded; by default 10 seconds, because the test keeps a core busy.
@Suite(
    "Memory of the recorder", .timeLimit(.minutes(60)),
    .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator")
)
struct RecorderMemoryTests: StorageFixtures {
    private static let seconds =
        Int(ProcessInfo.processInfo.environment["CONFAB_RECORDING_MINUTES"] ?? "").map { 60 * $0 } ?? 10
    private static let archives = (UInt64(1)...20).map { ArchiveID(high: 5, low: $0) }
    private static let streamsPerArchive: UInt64 = 4
    /// The bytes of a video frame. Only few frames wait in the recorder, so their size matters little.
    private static let frameSize = 100

    /// A router, and publishers that all send the same packets at the same times.
    private final class SimulatedRouter: RecordingSource {
        private struct State {
            var recordings: [UInt32] = []
            var isKeyframeRequested = true
            var reported: [RecordingEvent] = []
        }

        let ring = RecordingRing()
        private let state = Mutex(State())

        var recordingRings: [RecordingRing] { [ring] }
        var recordings: [UInt32] { state.withLock { $0.recordings } }
        var reported: [RecordingEvent] { state.withLock { $0.reported } }

        func record(_ stream: StreamID, as number: UInt32, _ request: RecordingRequest) {
            state.withLock { $0.recordings.append(number) }
        }
        func stopRecording(_ stream: StreamID, _ number: UInt32) {}
        func requestKeyframe(of stream: StreamID, for number: UInt32) {
            state.withLock { $0.isKeyframeRequested = true }
        }
        func takeKeyframeRequest() -> Bool {
            state.withLock { state in
                defer { state.isKeyframeRequested = false }
                return state.isKeyframeRequested
            }
        }
        func note(_ event: RecordingEvent) { state.withLock { $0.reported.append(event) } }
    }

    /// What the publishers send: 30 frames and 50 audio packets a second, and sender reports.
    private struct Media {
        private let router: SimulatedRouter
        private let recordings: [UInt32]
        private let writer: PipeRingWriter
        private let start: MediaTime
        private var packetizer = VP8Packetizer(pictureID: 1)
        private var (frames, audioPackets, videoPackets): (Int64, Int64, Int64) = (0, 0, 0)

        init(_ router: SimulatedRouter, at start: MediaTime) {
            (self.router, self.start, recordings) = (router, start, router.recordings)
            writer = PipeRingWriter(router.ring.ring)
            send(.tracks(audio: true, video: true))
            send(.source(.vp8, isNew: true))
            send(.source(nil, isNew: true))
        }

        /// Called every 20 ms.
        mutating func send(at time: MediaTime) {
            let elapsed = (time - start).milliseconds
            send([0xf8, 1, 2], isVideo: false, audioPackets, timestamp: 960 * audioPackets, at: time)
            audioPackets += 1
            if 1_000 * frames <= 30 * elapsed { sendFrame(at: time) }
            for (isVideo, interval, rate) in [(true, Int64(1_000), Int64(90)), (false, 5_000, 48)]
            where elapsed % interval == 500 {
                let ntp = NTPTime(0xe000_0000_0000_0000) + (time - start)
                send(
                    .report(
                        isVideo: isVideo, ntp: ntp, timestamp: UInt32(truncatingIfNeeded: rate * elapsed),
                        arrivedAt: time))
            }
            _ = writer.commit()
        }

        func end() {
            send(.ended)
            _ = writer.commit()
        }

        private mutating func sendFrame(at time: MediaTime) {
            // 320 × 240.
            var frame: [UInt8] =
                router.takeKeyframeRequest() ? [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 1, 0xf0, 0] : [0x11, 0, 0]
            frame += [UInt8](repeating: 7, count: RecorderMemoryTests.frameSize - frame.count)
            var payloads: [(bytes: [UInt8], marker: Bool)] = []
            frame.withUnsafeBytes { packetizer.cut($0) { payloads.append((Array($0), $1)) } }
            for payload in payloads {
                send(
                    payload.bytes, isVideo: true, marker: payload.marker, videoPackets, timestamp: 3_000 * frames,
                    at: time)
                videoPackets += 1
            }
            frames += 1
        }

        private func send(_ message: RecordingMessage) {
            for recording in recordings { writer.write(.recorded(recording, message)) }
        }

        private func send(
            _ payload: [UInt8], isVideo: Bool, marker: Bool = false, _ number: Int64, timestamp: Int64,
            at time: MediaTime
        ) {
            let (number16, timestamp32) = (UInt16(truncatingIfNeeded: number), UInt32(truncatingIfNeeded: timestamp))
            var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | 96]
            bytes += (0..<2).map { UInt8(truncatingIfNeeded: number16 >> (8 - 8 * $0)) }
            bytes += (0..<4).map { UInt8(truncatingIfNeeded: timestamp32 >> (24 - 8 * $0)) }
            bytes += [0, 0, 0, 1] + payload
            bytes.withUnsafeBytes { bytes in
                guard let packet = RTPPacket(bytes) else { return }
                let feed = FeedPacket(
                    bytes: bytes, packet: packet, sequence: number, codec: 0, startsKeyframe: false)
                for recording in recordings {
                    _ = writer.write(feed, track: recording, feed: isVideo ? 0 : -1, arrivedAt: time)
                }
            }
        }
    }

    /// The bytes that the recorder's thread has allocated and not released.
    private struct Measured: Sendable {
        var settled: Int64 = 0
        var end: Int64 = 0
        var peak: Int64 = 0
        var results: [RecordingResult] = []
    }

    @Test("is bounded, and does not grow with the time, while 20 archives of four streams are recorded")
    func bounded() async throws {
        let createdAt = now
        try await withDirectory { folder in
            let before = Self.residentBytes
            let measured = try await blocking { Self.record(in: "\(folder)/recordings", createdAt) }
            print(
                "20 archives, \(Self.seconds) s: \(measured.peak / 1_024) KiB at most, "
                    + "\((measured.end - measured.settled) / 1_024) KiB more at the end than when settled. "
                    + "Resident memory of all tests: \((Self.residentBytes - before) / 1_024) KiB more.")
            #expect(measured.peak < 256 << 20)
            // The index of a file grows by 24 bytes for each Cluster, of which there is at most one a second, and arrays grow in
            // steps. What waits differs by some packets.
            let perArchive = Int64(128 << 10 + 256 * Self.seconds)
            #expect(measured.end - measured.settled < perArchive * Int64(Self.archives.count))

            // Nothing was dropped, so all of it went through the recorder.
            #expect(measured.results.count == Self.archives.count)
            let least = Int64((30 * Self.frameSize + 50 * 3) * Self.seconds)
            for result in measured.results {
                #expect(result.files.count == Int(Self.streamsPerArchive))
                let length = result.duration.wholeMilliseconds
                #expect(abs(length - Int64(1_000 * Self.seconds)) < 1_000, "\(length) ms")
                #expect(result.files.allSatisfy { $0.size > least })
            }
        }
    }

    /// The memory of the whole process. Other tests run in it at the same time.
    private static var residentBytes: Int {
        #if os(Linux)
        ProcessFigures.read()?.residentBytes ?? 0
        #else
        0
        #endif
    }

    private static func record(in folder: String, _ createdAt: Timestamp) -> Measured {
        let router = SimulatedRouter()
        // Other threads sync the files. They would release memory that this one has allocated.
        let settings = Recorder.Settings(
            folder: folder, maxHeight: 720, minFreeSpace: 0, reserve: 0, syncInterval: .seconds(86_400)
        ) {
            createdAt
        }
        let start = MediaTime(nanoseconds: 1_000_000_000)
        var time = start
        let loop = RecorderLoop(
            settings, source: router, counters: RecorderCounters(), clock: { time },
            logger: Logger(label: "recorder") { _ in SwiftLogNoOpLogHandler() }
        ) { event in
            router.note(event)
        }
        confab_allocations_begin()
        defer { _ = confab_allocations_end() }
        for archive in archives {
            loop.perform(.begin(archive, SessionID("2_session")!, RecordingOptions(createdAt: createdAt)))
            for number in 1...streamsPerArchive {
                let details = Signaling.RecordedStream(publisher: ConnectionID(high: 0, low: number))
                loop.perform(.add(archive, StreamID(high: archive.low, low: number), details))
            }
        }
        var media = Media(router, at: start)
        var measured = Measured()
        let length = MediaInterval.milliseconds(1_000 * Int64(seconds))
        let settling = min(MediaInterval.milliseconds(300_000), MediaInterval(nanoseconds: length.nanoseconds / 2))
        while time - start < length {
            media.send(at: time)
            loop.work()
            time = time + .milliseconds(20)
            measured.end = confab_allocated_bytes()
            measured.peak = max(measured.peak, measured.end)
            if time - start == settling { measured.settled = measured.end }
        }
        for archive in archives { loop.perform(.end(archive, .requested)) }
        media.end()
        loop.work()
        for case .ended(_, .requested, let result) in router.reported { measured.results.append(result) }
        return measured
    }
}

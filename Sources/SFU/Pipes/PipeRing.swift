import RTC
import Synchronization

/// A bounded ring in which the router of one event loop writes packets and messages for the router of another. It has one
/// writer and one reader, and neither ever waits for the other.
///
/// A record is a packet with its bytes, or a message. The reader uses the bytes in place, and releases the memory after
/// its flush, as it does with the memory of datagrams.
///
/// ```
///  released        read          committed       written
///  ────┼─────────────┼───────────────┼──────────────┼────▶
///      │ used by the │ not read yet  │ not visible  │
///      │ flush       │               │ yet          │
/// ```
///
/// Positions count all bytes since the start, so they never decrease. The position in the memory is the remainder.
final class PipeRing: Sendable {
    /// The usual size of the memory in bytes: about 620 packets, or 30 ms of 200 Mbit/s.
    static let capacity = 1 << 20
    /// All records start at multiples of this number of bytes.
    fileprivate static let alignment = 16

    /// The writer owns the memory of a record until it commits the record, and again after the reader has released it.
    /// In between, the reader owns it.
    fileprivate nonisolated(unsafe) let memory: UnsafeMutableRawPointer
    /// The size of the memory in bytes, a power of two.
    fileprivate let capacity: Int
    /// The number of bytes that packets may occupy. The rest is for messages, which are small and are never dropped.
    fileprivate var packetCapacity: Int { capacity / 8 * 7 }
    /// The position up to which the writer has committed records.
    fileprivate let committed = Atomic<Int>(0)
    /// The position up to which the reader has released records.
    fileprivate let released = Atomic<Int>(0)

    /// - Parameter capacity: the size of the memory in bytes, a power of two. It is used only as far as packets wait.
    init(capacity: Int = PipeRing.capacity) {
        self.capacity = capacity
        memory = .allocate(byteCount: capacity, alignment: Self.alignment)
    }

    deinit {
        // Messages that were never read are still retained.
        var position = released.load(ordering: .relaxed)
        let end = committed.load(ordering: .relaxed)
        while position < end {
            let record = record(at: position)
            if record.pointee.kind == .message { Self.message(in: record).release() }
            position += Int(record.pointee.length)
        }
        memory.deallocate()
    }

    /// The beginning of each record.
    struct Record: BitwiseCopyable {
        /// What a record contains.
        enum Kind: UInt8, BitwiseCopyable {
            /// Fills the memory up to its end, where the next record would not fit.
            case filler
            case packet
            case message
        }
        /// The number of bytes from the beginning of the record to the next one.
        var length: UInt32
        var kind: Kind
    }

    /// A packet in a record. Its bytes follow, and then the bytes that may be overwritten (`FeedPacket.spare`).
    struct Packet {
        /// The track's id at the writer.
        var track: UInt32
        var feed: Int
        var arrivedAt: MediaTime
        var packet: FeedPacket
    }

    /// A reference to a message.
    fileprivate final class Box: Sendable {
        let message: PipeMessage
        init(_ message: PipeMessage) { self.message = message }
    }

    /// The offsets of the packet and of its bytes in a record, and the number of bytes after a packet that a reader may
    /// overwrite.
    fileprivate static let packetOffset = alignment
    fileprivate static let bytesOffset = packetOffset + rounded(MemoryLayout<Packet>.size)
    fileprivate static let spare = 16

    fileprivate static func rounded(_ count: Int) -> Int { (count + alignment - 1) & ~(alignment - 1) }

    fileprivate func record(at position: Int) -> UnsafeMutablePointer<Record> {
        (memory + (position & (capacity - 1))).assumingMemoryBound(to: Record.self)
    }

    fileprivate static func message(in record: UnsafeMutablePointer<Record>) -> Unmanaged<Box> {
        let pointer = UnsafeRawPointer(record).load(fromByteOffset: packetOffset, as: UnsafeRawPointer.self)
        return Unmanaged.fromOpaque(pointer)
    }
}

/// The writing end of a ring. It belongs to the writer's event loop.
final class PipeRingWriter {
    private let ring: PipeRing
    private var written = 0
    private var committed = 0
    /// The position that the reader had released when the ring was last full.
    private var released = 0
    /// Messages that do not fit now. Until they are written, packets are dropped, so that the order is kept.
    private var waiting: [PipeMessage] = []

    init(_ ring: PipeRing) {
        self.ring = ring
        // Packets are copied as bytes.
        precondition(_isPOD(PipeRing.Packet.self))
    }

    /// Writes a packet and a copy of its bytes.
    /// - Returns: false if the ring is too full, so that the packet is dropped.
    func write(_ packet: FeedPacket, track: UInt32, feed: Int, arrivedAt: MediaTime) -> Bool {
        let count = packet.bytes.count
        let length = PipeRing.rounded(PipeRing.bytesOffset + count + PipeRing.spare)
        guard waiting.isEmpty, let record = reserve(length, limit: ring.packetCapacity) else { return false }
        let bytes = UnsafeMutableRawPointer(record) + PipeRing.bytesOffset
        if let base = packet.bytes.baseAddress { bytes.copyMemory(from: base, byteCount: count) }
        var copy = packet
        copy.move(to: UnsafeRawBufferPointer(start: bytes, count: count))
        copy.spare = min(packet.spare, UInt8(PipeRing.spare))
        (UnsafeMutableRawPointer(record) + PipeRing.packetOffset).initializeMemory(
            as: PipeRing.Packet.self,
            to: PipeRing.Packet(track: track, feed: feed, arrivedAt: arrivedAt, packet: copy))
        record.initialize(to: PipeRing.Record(length: UInt32(length), kind: .packet))
        written += length
        return true
    }

    /// Writes a message. If there is no room, the message waits for the next `commit`.
    func write(_ message: PipeMessage) {
        if !waiting.isEmpty || !tryWrite(message) { waiting.append(message) }
    }

    /// Writes a message that may be lost, unless the ring is too full for packets.
    func writeIfRoom(_ message: PipeMessage) {
        if waiting.isEmpty { _ = tryWrite(message, limit: ring.packetCapacity) }
    }

    private func tryWrite(_ message: PipeMessage, limit: Int? = nil) -> Bool {
        let length = PipeRing.alignment * 2
        guard let record = reserve(length, limit: limit ?? ring.capacity) else { return false }
        let box = Unmanaged.passRetained(PipeRing.Box(message))
        UnsafeMutableRawPointer(record).storeBytes(
            of: UnsafeRawPointer(box.toOpaque()), toByteOffset: PipeRing.packetOffset, as: UnsafeRawPointer.self)
        record.initialize(to: PipeRing.Record(length: UInt32(length), kind: .message))
        written += length
        return true
    }

    /// Returns the memory for a record; nil if the ring would then contain more than `limit` bytes.
    private func reserve(_ length: Int, limit: Int) -> UnsafeMutablePointer<PipeRing.Record>? {
        let toEnd = ring.capacity - written & (ring.capacity - 1)
        let filler = length > toEnd ? toEnd : 0
        let end = written + filler + length
        if end - released > limit {
            released = ring.released.load(ordering: .acquiring)
            guard end - released <= limit else { return nil }
        }
        if filler > 0 {
            ring.record(at: written).initialize(to: PipeRing.Record(length: UInt32(filler), kind: .filler))
            written += filler
        }
        return ring.record(at: written)
    }

    /// Makes everything written visible to the reader.
    /// - Returns: whether there is anything new.
    func commit() -> Bool {
        var count = 0
        while count < waiting.count, tryWrite(waiting[count]) { count += 1 }
        waiting.removeFirst(count)
        guard written != committed else { return false }
        committed = written
        // The writer stores the position and then checks whether the reader waits. The reader marks itself as waiting and
        // then checks the position. With sequential consistency, at least one of them sees the other's store.
        ring.committed.store(committed, ordering: .sequentiallyConsistent)
        return true
    }
}

/// The reading end of a ring. It belongs to the reader's event loop.
final class PipeRingReader {
    private let ring: PipeRing
    private var position = 0
    private var end = 0
    private var released = 0

    init(_ ring: PipeRing) { self.ring = ring }

    /// A packet or a message that was read.
    enum Item {
        /// The memory of the packet and its bytes is valid until `release`.
        case packet(UnsafePointer<PipeRing.Packet>)
        case message(PipeMessage)
    }

    /// Whether there is anything to read.
    var hasMore: Bool { ring.committed.load(ordering: .sequentiallyConsistent) != position }

    /// Returns the next item; nil if there is none.
    func next() -> Item? {
        while true {
            if position == end {
                end = ring.committed.load(ordering: .acquiring)
                guard position != end else { return nil }
            }
            let record = ring.record(at: position)
            position += Int(record.pointee.length)
            switch record.pointee.kind {
            case .filler: continue
            case .packet:
                let packet = UnsafeRawPointer(record) + PipeRing.packetOffset
                return .packet(packet.assumingMemoryBound(to: PipeRing.Packet.self))
            case .message:
                // If the ring ends before this is released, nothing is left to free here.
                record.pointee.kind = .filler
                return .message(PipeRing.message(in: record).takeRetainedValue().message)
            }
        }
    }

    /// Lets the writer reuse the memory of everything that was read.
    func release() {
        guard released != position else { return }
        released = position
        ring.released.store(position, ordering: .releasing)
    }
}

import RTC

/// Reads what a crash left of a recording, and returns the edits that finish it.
///
/// The file is never read as a whole. The scan states which bytes it needs next, and its owner reads them:
///
/// ```swift
/// var scan = WebMScan(fileSize: size)
/// while let range = scan.wanted { scan.take(read(range)) }
/// for edit in scan.edits() { … }
/// ```
///
/// Everything from the first element that is not whole, or not expected, is removed. The result is the same, byte for byte, as a
/// file that was finished after its last whole block. A finished file needs no edits.
public struct WebMScan: Sendable {
    /// The number of bytes at the start of a frame that contain the size of its picture.
    static let frameStart = 24
    /// The bytes to read for each element: id and size, the four bytes of a block, and the start of the frame.
    static let step: Int64 = 64

    private enum State: Equatable {
        case header
        /// Elements of the Segment and of its Clusters.
        case elements
        case done
    }

    private let fileSize: Int64
    private var state = State.header
    private var summary: WebMSummary?
    private var position: Int64 = 0
    /// The end of the last whole block.
    private var end: Int64 = 0
    /// A Cluster whose first block was not read yet.
    private var opened: (position: Int64, time: Int64)?
    private var isFinished = false
    private var blocks = 0

    /// - Parameter fileSize: the size of the file in bytes.
    public init(fileSize: Int64) { self.fileSize = max(0, fileSize) }

    /// The part of the file to pass to `take`; nil at the end.
    public var wanted: Range<Int64>? {
        switch state {
        case .header: 0..<min(fileSize, Int64(WebMLayout.maxHeader))
        case .elements: position..<min(fileSize, position + Self.step)
        case .done: nil
        }
    }

    /// Whether the file is a recording with at least one whole block. Known after the scan.
    public var isRecording: Bool { blocks > 0 }
    /// The end of the last block in milliseconds from the start of the file.
    public var duration: Int64 { summary?.duration ?? 0 }

    /// Takes the bytes of `wanted`. If there are fewer, because the file was shortened, the scan ends there.
    public mutating func take(_ bytes: [UInt8]) {
        switch state {
        case .done: break
        case .header: takeHeader(bytes)
        case .elements: if !takeElement(bytes) { state = .done }
        }
    }

    /// Returns the edits that finish the file. Returns nothing if it is finished, or is not a recording with a block.
    public func edits() -> [FileEdit] {
        guard state == .done, blocks > 0, !isFinished, let summary else { return [] }
        return (end < fileSize ? [.truncate(end)] : []) + summary.finish(at: end)
    }

    private mutating func takeHeader(_ bytes: [UInt8]) {
        guard let layout = WebMLayout(bytes) else { return state = .done }
        summary = WebMSummary(layout: layout)
        position = layout.end
        let size = EBMLElement(bytes.dropFirst(Int(layout.segmentSize) - 4))?.size
        // The size is written last, and matches only a complete file.
        isFinished = size == fileSize - layout.seekHead
        state = position < fileSize ? .elements : .done
    }

    private mutating func takeElement(_ bytes: [UInt8]) -> Bool {
        guard let element = EBMLElement(bytes) else { return false }
        let content = position + Int64(element.headerLength)
        switch element.id {
        case EBMLID.cluster:
            // The content is read as elements. Its size may be unknown, or wrong after a loss of power.
            guard element.headerLength == 12 else { return false }
            opened = (position, 0)
            position = content
        case EBMLID.timestamp:
            guard let size = element.size, (1...8).contains(size), let opened, opened.position + 12 == position,
                let time = Self.unsigned(bytes.dropFirst(element.headerLength).prefix(Int(size)), Int(size))
            else { return false }
            self.opened = (opened.position, time)
            position = content + size
        case EBMLID.simpleBlock:
            guard let size = element.size, size >= 4, size <= fileSize - content else { return false }
            guard takeBlock(Array(bytes.dropFirst(element.headerLength).prefix(Int(min(size, Self.step))))) else {
                return false
            }
            position = content + size
            end = position
        default: return false
        }
        return position < fileSize
    }

    private mutating func takeBlock(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 4, bytes[0] == 0x80 | WebMHeader.videoTrack || bytes[0] == 0x80 | WebMHeader.audioTrack
        else { return false }
        guard opened != nil || summary?.cluster != nil else { return false }
        if let opened { summary?.beginCluster(at: opened.position, time: opened.time) }
        opened = nil
        let offset = Int16(bitPattern: UInt16(bytes[1]) << 8 | UInt16(bytes[2]))
        let time = (summary?.clusterTime ?? 0) + Int64(offset)
        let isKeyframe = bytes[3] & 0x80 != 0
        let frame = bytes.dropFirst(4)
        let track = bytes[0] & 0x7f
        summary?.note(track: track, time: time, isKeyframe: isKeyframe, frame: frame)
        if track == WebMHeader.videoTrack, isKeyframe, let video = summary?.layout.video,
            let size = PictureSize(of: frame, video)
        {
            summary?.note(size: size)
        }
        blocks += 1
        return true
    }

    /// The most milliseconds that a Cluster's timestamp can have, about 35,000 years, so that sums cannot overflow.
    private static let maxTime: Int64 = 1 << 50

    private static func unsigned(_ bytes: some Collection<UInt8>, _ count: Int) -> Int64? {
        guard bytes.count == count else { return nil }
        let value = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return value <= UInt64(maxTime) ? Int64(value) : nil
    }
}

/// Finishes a recording in memory, for tests and small files.
public enum WebMRecovery {
    /// Returns the file as `WebMScan` finishes it; nil if it is not a recording with at least one whole block.
    public static func finish(_ file: [UInt8]) -> [UInt8]? {
        var scan = WebMScan(fileSize: Int64(file.count))
        while let range = scan.wanted { scan.take(Array(file[Int(range.lowerBound)..<Int(range.upperBound)])) }
        guard scan.isRecording else { return nil }
        var result = file
        for edit in scan.edits() { edit.apply(to: &result) }
        return result
    }
}

extension FileEdit {
    /// Applies the edit to a file in memory. An edit beyond the end does nothing.
    public func apply(to file: inout [UInt8]) {
        switch self {
        case .append(let bytes): file += bytes
        case .truncate(let size): file.removeLast(max(0, file.count - Int(max(0, size))))
        case .replace(let bytes, let position):
            guard position >= 0, position <= Int64(file.count - bytes.count) else { return }
            file.replaceSubrange(Int(position)..<Int(position) + bytes.count, with: bytes)
        }
    }
}

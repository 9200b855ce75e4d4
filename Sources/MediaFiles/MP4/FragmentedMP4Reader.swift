/// Splits a stream of fragmented MP4 into its initialization section and its fragments.
///
/// Takes the bytes in pieces of any size, as they come from an encoder:
///
/// ```swift
/// var reader = FragmentedMP4Reader()
/// for item in try reader.take(bytes) { … }
/// ```
///
/// It reads what ffmpeg writes with `-movflags empty_moov+default_base_moof+frag_keyframe`: `ftyp`, `moov`, then `moof` and `mdat`
/// in turn. Boxes between them that players do not need are skipped. At most ``maxFragment`` bytes wait for the rest of a box.
public struct FragmentedMP4Reader: Sendable {
    /// What is in the stream.
    public enum Item: Hashable, Sendable {
        /// Comes once, before all fragments.
        case initialization(MP4Initialization)
        case fragment(MP4Fragment)
    }

    /// The maximum size of the initialization section in bytes. ffmpeg writes 1,300.
    public static let maxInitialization = 256 << 10
    /// The maximum size of a fragment in bytes. Ten seconds at 6 Mbit/s have half of it.
    public static let maxFragment = 16 << 20
    /// The maximum size in bytes of a box that is skipped.
    static let maxSkipped = 1 << 20
    /// Boxes that are skipped. Any other box is an error, because the reader would have lost its place in the stream.
    private static let skipped: Set = ["emsg", "free", "mfra", "prft", "sidx", "skip", "styp", "uuid"]

    private enum State: Equatable {
        /// Before `ftyp`.
        case start
        /// After `ftyp`, which is the first part of the initialization section.
        case type([UInt8])
        case fragments(MP4Initialization)
        /// After `moof`, which is the first part of the fragment.
        case fragment([UInt8], MP4Initialization)
        case failed(MediaFileError)
    }

    private var state = State.start
    /// The start of a box that is not complete.
    private var waiting: [UInt8] = []

    public init() {}

    /// Takes the next bytes of the stream, and returns what they complete.
    ///
    /// - Throws: `MediaFileError`. The same error is thrown for everything that follows.
    public mutating func take(_ bytes: some Collection<UInt8>) throws(MediaFileError) -> [Item] {
        if case .failed(let error) = state { throw error }
        do {
            return try takeBoxes(bytes)
        } catch {
            (state, waiting) = (.failed(error), [])
            throw error
        }
    }

    private mutating func takeBoxes(_ bytes: some Collection<UInt8>) throws(MediaFileError) -> [Item] {
        waiting += bytes
        var items: [Item] = []
        var position = 0
        while waiting.count - position >= MP4BoxHeader.maxLength {
            guard let box = MP4BoxHeader(waiting[position...]) else {
                throw MediaFileError(.damaged, "has a box with an impossible size")
            }
            // Before waiting for the rest of the box.
            try check(box)
            guard box.size <= Int64(waiting.count - position) else { break }
            let end = position + Int(box.size)
            if let item = try takeBox(box.kind, Array(waiting[position..<end])) { items.append(item) }
            position = end
        }
        waiting.removeFirst(position)
        return items
    }

    /// Checks that a box may come here, and is not too large.
    private func check(_ box: MP4BoxHeader) throws(MediaFileError) {
        let most: Int
        switch (state, box.kind) {
        case (.start, "ftyp"): most = Self.maxInitialization
        case (.type(let type), "moov"): most = Self.maxInitialization - type.count
        case (.fragments, "moof"): most = Self.maxFragment
        // Positions in `moof` count bytes from its start, so nothing may come between it and `mdat`.
        case (.fragment(let header, _), "mdat"): most = Self.maxFragment - header.count
        case (.fragment, _): throw MediaFileError(.damaged, "has a fragment without media")
        case (.start, _): throw MediaFileError(.notThisFormat, "is not an MP4 file")
        case (_, let kind) where Self.skipped.contains(kind): most = Self.maxSkipped
        default: throw MediaFileError(.damaged, "has a box that is not expected")
        }
        guard box.size <= Int64(most) else { throw MediaFileError(.tooLarge, "has a box with more than \(most) bytes") }
    }

    private mutating func takeBox(_ kind: String, _ bytes: [UInt8]) throws(MediaFileError) -> Item? {
        switch (state, kind) {
        case (.start, _):
            state = .type(bytes)
        case (.type(let type), "moov"):
            let initialization = try MP4Initialization(type + bytes)
            state = .fragments(initialization)
            return .initialization(initialization)
        case (.fragments(let initialization), "moof"):
            state = .fragment(bytes, initialization)
        case (.fragment(let header, let initialization), _):
            state = .fragments(initialization)
            return .fragment(try MP4Fragment(header + bytes, of: initialization))
        default: break
        }
        return nil
    }
}

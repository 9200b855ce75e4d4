import MediaFiles
import Wire

extension FuzzTarget {
    /// Fuzzes the reader of event logs. What is read must be bounded by the input, be written and read back, and name no file
    /// outside the folder.
    static let archiveLogs = FuzzTarget("archive-logs", longestInput: 1_200) { input throws(BrokenProperty) in
        let log = ArchiveLog(input)
        try require(
            log.lines.count + log.skipped <= input.count(where: { $0 == 0x0a }), "there are more lines than in the file"
        )
        try require(zip(log.lines, log.lines.dropFirst()).allSatisfy { $0.time <= $1.time }, "the time goes back")
        for case .file(let file) in log.lines.map(\.event) {
            try require(
                !file.name.contains("/") && !file.name.hasPrefix("-"), "\(file.name) is not a name in the folder")
        }
        let again = ArchiveLog(log.bytes)
        try require(again.lines == log.lines && again.skipped == 0, "\(log.lines) are read back as \(again.lines)")
    }

    /// Fuzzes the reader of manifests.
    static let archiveManifests = FuzzTarget("archive-manifests", longestInput: 800) { input throws(BrokenProperty) in
        guard let manifest = try? ArchiveManifest(input) else { return }
        try require((try? ArchiveManifest(manifest.json)) == manifest, "\(manifest) is read back differently")
    }
}

extension FuzzTarget {
    /// Fuzzes the readers of the beginning of a WebM file and of its clusters, which must end and stay in the file.
    static let matroskaStarts = FuzzTarget("matroska-starts", longestInput: 600) { input throws(BrokenProperty) in
        var reads = 0
        let start = MatroskaStart(size: Int64(input.count)) { offset, count in
            reads += 1
            return Array(input.dropFirst(Int(clamping: offset)).prefix(count))
        }
        // Each element has at least two bytes.
        try require(reads <= input.count + 3, "\(reads) reads of \(input.count) bytes")
        guard let start else { return }
        try require(start.hasVideo || start.hasAudio, "there is no track")
        let isPossible = start.firstFrame.map { $0 >= 0 && start.hasVideo } ?? true
        try require(isPossible, "\(start) has an impossible first frame")
        try require(start.duration.map { $0 >= 0 } ?? true, "\(start) has a negative length")
        reads = 0
        let clusters = MatroskaClusters(start, size: Int64(input.count)) { offset, count in
            reads += 1
            return Array(input.dropFirst(Int(clamping: offset)).prefix(count))
        }.all
        try require(reads <= input.count + 3, "\(reads) reads of \(input.count) bytes for the clusters")
        let isOrdered = zip(clusters, clusters.dropFirst()).allSatisfy { $0.offset < $1.offset }
        try require(isOrdered, "the clusters are not in the order of the file")
        let isInside = clusters.allSatisfy { (0..<Int64(input.count)).contains($0.offset) && $0.time >= 0 }
        try require(isInside, "a cluster is not in the file")
    }

    /// Fuzzes the reader of MP4 files, which must end and stay in the file.
    static let mp4Tracks = FuzzTarget("mp4-tracks", longestInput: 600) { input throws(BrokenProperty) in
        var reads = 0
        let tracks = MP4Tracks(size: Int64(input.count)) { offset, count in
            reads += 1
            return Array(input.dropFirst(Int(clamping: offset)).prefix(count))
        }
        try require(reads <= input.count / 8 + 3, "\(reads) reads of \(input.count) bytes")
        guard let tracks else { return }
        try require(tracks.tracks.count <= input.count / 8, "there are \(tracks.tracks.count) tracks")
        try require(tracks.tracks.allSatisfy { $0.samples >= 0 }, "a track has a negative number of samples")
    }
}

extension FuzzTarget {
    /// Fuzzes the reader of fragmented MP4. The pieces in which the bytes come must not matter, what is read must be a part of the
    /// input, and an error must last.
    static let fragmentedMP4 = FuzzTarget("fragmented-mp4", longestInput: 4_096) { input throws(BrokenProperty) in
        // The first byte is the size of the pieces.
        let pieceSize = Int(input.first ?? 0) + 1
        let bytes = Array(input.dropFirst())
        var whole = FragmentedMP4Reader()
        let (items, error) = read(bytes, by: bytes.count, with: &whole)
        var piecewise = FragmentedMP4Reader()
        let (others, otherError) = read(bytes, by: pieceSize, with: &piecewise)
        try require(
            error == otherError,
            "the error is \(String(describing: error)), in pieces \(String(describing: otherError))")
        // A whole input that ends in an error loses the items before it.
        try require(error != nil || items == others, "in pieces of \(pieceSize), other items are read")
        if let error {
            let (none, again) = read([0], by: 1, with: &piecewise)
            try require(none.isEmpty && again == error, "after \(error) it continues")
        }
        var size = 0
        for (index, item) in others.enumerated() {
            switch item {
            case .initialization(let initialization):
                try require(
                    index == 0 && !initialization.tracks.isEmpty, "an initialization section is not the first item")
                size += initialization.bytes.count
            case .fragment(let fragment):
                let isSane = fragment.runs.allSatisfy { $0.duration >= 0 && $0.samples >= 0 }
                try require(index > 0 && isSane, "\(fragment.runs) cannot be played")
                size += fragment.bytes.count
            }
        }
        try require(size <= bytes.count, "\(size) bytes are read of \(bytes.count)")
    }

    private static func read(
        _ bytes: [UInt8], by size: Int, with reader: inout FragmentedMP4Reader
    ) -> (items: [FragmentedMP4Reader.Item], error: MediaFileError?) {
        var items: [FragmentedMP4Reader.Item] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + max(1, size))
            do throws(MediaFileError) {
                items += try reader.take(bytes[position..<end])
            } catch {
                return (items, error)
            }
            position = end
        }
        return (items, nil)
    }
}

import MediaFiles

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

/// What `confab setup` will do, and what it says to the operator.
struct SetupPlan: Equatable, Sendable {
    /// A file that is created or changed.
    struct File: Equatable, Sendable {
        var path: String
        /// The present text; nil if there is no file.
        var old: String?
        var new: String
        /// Whether only the owner may read it, and its text is not shown.
        var isSecret = false
    }

    /// The files to write. Files that stay as they are, are missing.
    var files: [File] = []
    /// The settings that result.
    var configuration = ConfabConfiguration()
    /// What was seen, and what the operator should do about it.
    var findings: [DoctorFinding] = []
    /// What has to be open in firewalls.
    var ports: [SetupPort] = []
    /// Commands and sentences: what to do next.
    var steps: [String] = []
    /// A sample that is printed, because there is no place to write it.
    var sample: String?

    /// The changes as text: for each file its path, and the lines that are removed and added.
    var changesText: String {
        if files.isEmpty { return "Nothing changes: all files are already as they should be.\n" }
        return files.map(Self.text).joined(separator: "\n")
    }

    private static func text(_ file: File) -> String {
        var shown = "\(file.old == nil ? "Create" : "Change") \(file.path)\n"
        let changes = lines(file.new).difference(from: file.old.map(lines) ?? [])
        for change in changes.removals + changes.insertions {
            switch change {
            case .remove(_, let line, _): shown += "  - \(visible(line, file.isSecret))\n"
            case .insert(_, let line, _): shown += "  + \(visible(line, file.isSecret))\n"
            }
        }
        return shown
    }

    private static func visible(_ line: Substring, _ isSecret: Bool) -> String {
        guard isSecret, let equals = line.firstIndex(of: "=") else { return String(line) }
        return "\(line[...equals])[redacted]"
    }

    private static func lines(_ text: String) -> [Substring] {
        text.hasSuffix("\n")
            ? text.dropLast().split(separator: "\n", omittingEmptySubsequences: false)
            : text.split(separator: "\n", omittingEmptySubsequences: false)
    }
}

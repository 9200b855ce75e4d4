import Foundation

/// Files of the project that tests read or write.
enum Project {
    /// The folder of these tests.
    static let tests = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .deletingLastPathComponent()
    static let root = tests.deletingLastPathComponent().deletingLastPathComponent()

    static func setting(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }
}

import Foundation
import TestSupport

/// A child process whose output goes to files, because a full pipe would block the process.
final class RunningProcess: Sendable {
    private let program: ChildProgram

    init(
        _ executable: String, _ arguments: [String], environment: [String: String], logFile: String,
        errorFile: String? = nil
    ) throws {
        let output = try Self.handle(logFile)
        defer { try? output.close() }
        let errors = try errorFile.map(Self.handle)
        defer { try? errors?.close() }
        program = try ChildProgram(
            executable, arguments, environment: environment, output: output.fileDescriptor,
            errors: (errors ?? output).fileDescriptor)
    }

    private static func handle(_ path: String) throws -> FileHandle {
        if !FileManager.default.fileExists(atPath: path) {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
        return handle
    }

    var id: Int32 { program.id }
    var isRunning: Bool { program.isRunning }
    /// The exit status, or the number of the signal that ended the process. 0 while it is running.
    var status: Int32 {
        switch program.end {
        case .exit(let number)?, .signal(let number)?: number
        case nil: 0
        }
    }

    /// How the process failed, such as "status 1" or "signal 5"; nil if it exited normally.
    var misfortune: String? {
        switch program.end {
        case .signal(let number)?: "signal \(number)"
        case .exit(let status)?: status == 0 ? nil : "status \(status)"
        case nil: nil
        }
    }

    func send(_ signal: Int32) { if isRunning { kill(id, signal) } }

    /// Waits up to the limit and returns whether the process has ended.
    func waits(within limit: Duration) -> Bool {
        (try? eventually("the process runs", within: limit) { !isRunning }) != nil
    }
}

enum Executable {
    /// The path of the server to attack: the environment variable CONFAB_BINARY, or the server that was built with the
    /// tests.
    static func confab() throws -> String {
        let environment = ProcessInfo.processInfo.environment
        if let named = environment["CONFAB_BINARY"], !named.isEmpty {
            guard FileManager.default.isExecutableFile(atPath: named) else {
                throw TimedOut("CONFAB_BINARY names \(named), which is not an executable file.")
            }
            return named
        }
        var folder = testExecutable.deletingLastPathComponent()
        while folder.path != "/" {
            let candidate = folder.appendingPathComponent("confab").path
            var isFolder: ObjCBool = false
            if FileManager.default.fileExists(atPath: candidate, isDirectory: &isFolder), !isFolder.boolValue,
                FileManager.default.isExecutableFile(atPath: candidate)
            {
                return candidate
            }
            folder.deleteLastPathComponent()
        }
        throw TimedOut(
            "There is no \"confab\" beside \(testExecutable.path). Build it with \"swift build --product confab\", or "
                + "name one in the variable CONFAB_BINARY."
        )
    }

    private static var testExecutable: URL {
        let own = "/proc/self/exe"
        if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: own) {
            return URL(fileURLWithPath: path)
        }
        // On other systems the test runner belongs to the toolchain, and the test bundle is one of its arguments.
        let bundle = CommandLine.arguments.first { $0.contains(".xctest") } ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: bundle)
    }
}

/// Process statistics from the operating system.
enum ProcessFigures {
    static func memory(_ id: Int32) -> Int { status(id, "VmRSS") ?? residentByCommand(id) }

    /// The maximum memory in bytes. On systems that do not record a maximum, this is the current value.
    static func peakMemory(_ id: Int32) -> Int { status(id, "VmHWM") ?? residentByCommand(id) }

    static func descriptors(_ id: Int32) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd").count) ?? 0
    }

    /// Open descriptors by name, without the numbers of sockets: "socket 12, /data/confab.sqlite 2".
    static func openFiles(_ id: Int32) -> [String: Int] {
        let folder = "/proc/\(id)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let targets = names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0) }
        return Dictionary(targets.map { ($0.hasPrefix("socket:") ? "socket" : $0, 1) }, uniquingKeysWith: +)
    }

    private static func status(_ id: Int32, _ field: String) -> Int? {
        // Read to the end of the file, because files in /proc have size 0.
        guard let handle = FileHandle(forReadingAtPath: "/proc/\(id)/status") else { return nil }
        defer { try? handle.close() }
        let text = String(decoding: (try? handle.readToEnd()) ?? Data(), as: UTF8.self)
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(field + ":") }) else { return nil }
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
    }

    private static func residentByCommand(_ id: Int32) -> Int {
        guard let result = try? ChildProgram.run("/bin/ps", ["-o", "rss=", "-p", "\(id)"]) else { return 0 }
        return (Int(result.text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0) * 1024
    }
}

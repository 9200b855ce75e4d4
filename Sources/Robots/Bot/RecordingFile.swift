#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that only grows. What was written is with the system at once, and stays if the program is killed.
final class RecordingFile {
    let path: String
    private let descriptor: Int32

    /// - Throws: a sentence when it cannot be made, or is there already.
    init(creating path: String) throws(RobotError) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw RobotError("\(path) cannot be written: \(Self.reason).") }
    }

    deinit { close(descriptor) }

    /// Makes a file beside those that are there: `DIRECTORY/NAME-1.SUFFIX`, `-2` and so on.
    static func next(in directory: String, name: String, suffix: String) throws(RobotError) -> RecordingFile {
        for number in 1...mostNumber {
            let path = "\(directory)/\(name)-\(number).\(suffix)"
            if access(path, F_OK) == 0 { continue }
            return try RecordingFile(creating: path)
        }
        throw RobotError("\(directory) has \(mostNumber) recordings of one stream. Take another directory.")
    }

    /// Recordings of one stream; nobody begins anew so often but by a fault.
    private static let mostNumber = 9_999

    /// - Throws: a sentence when the disk is full, for example. What is written in part stays.
    func write(_ bytes: [UInt8]) throws(RobotError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { posixWrite(descriptor, $0) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw RobotError("\(path) cannot be written: \(Self.reason).") }
            rest = rest.dropFirst(count)
        }
    }

    private static var reason: String { String(cString: strerror(errno)) }
}

private func posixWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, bytes.count)
}

import Peers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// An append-only file. Each write goes to the kernel immediately, so the data survives if the process is killed.
final class RecordingFile {
    let path: String
    private let descriptor: Int32

    /// - Throws: `RobotError` if the file already exists or cannot be created.
    init(creating path: String) throws(RobotError) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw RobotError("\(path) cannot be written: \(Self.reason).") }
    }

    deinit { close(descriptor) }

    /// Creates the first of the files `DIRECTORY/NAME-1.SUFFIX`, `-2` and so on that does not exist yet.
    /// - Throws: `RobotError` if the file cannot be created, or if there are `maxNumber` files already.
    static func next(in directory: String, name: String, suffix: String) throws(RobotError) -> RecordingFile {
        for number in 1...maxNumber {
            let path = "\(directory)/\(name)-\(number).\(suffix)"
            if access(path, F_OK) == 0 { continue }
            return try RecordingFile(creating: path)
        }
        throw RobotError(
            "\(directory) already has \(maxNumber) recordings of one stream, the maximum. Use another directory.")
    }

    /// The maximum number of recordings of one stream. Only a bug could start so many.
    private static let maxNumber = 9_999

    /// Appends bytes to the file.
    ///
    /// - Throws: `RobotError`, for example if the disk is full. The part that was written stays in the file.
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

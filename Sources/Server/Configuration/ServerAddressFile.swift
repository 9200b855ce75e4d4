#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file `server.address` in the data directory: the URL of the running server. Commands that need the server read
/// it, so that they work with any port. The server removes the file when it stops. After a crash it remains until the
/// next start.
public enum ServerAddressFile {
    public static let fileName = "server.address"
    /// Maximum size of the file in bytes. It contains one URL, whose host name has at most 253 bytes.
    private static let maxSize = 1024

    /// Writes the server's URL to the file, replacing an earlier one.
    ///
    /// - Parameter host: the address that the server listens on; may be a wildcard.
    static func write(
        to directory: String, host: String, port: Int, isSecure: Bool
    ) throws(DataDirectoryError) {
        let url = ServerURLs(host: host, port: port, isSecure: isSecure).main
        try PrivateFiles.replace(directory + "/" + fileName, contents: Array((url + "\n").utf8), suffix: "address")
    }

    static func remove(from directory: String) {
        try? FileManager.default.removeItem(atPath: directory + "/" + fileName)
    }

    /// Returns the URL in the file; nil if the file does not exist or is empty. Without a file, no server is running
    /// with this data directory, or the server could not write it. After a crash, the file exists although no server
    /// is running.
    static func read(in directory: String) throws(DataDirectoryError) -> String? {
        guard let file = try PrivateFiles.read(directory + "/" + fileName, limit: maxSize) else { return nil }
        let text = String(decoding: file.bytes, as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).first.map { String($0) }
    }
}

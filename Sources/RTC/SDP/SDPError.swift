/// Why a session description cannot be used.
public struct SDPError: Error, Hashable, Sendable {
    public enum Code: String, Hashable, Sendable {
        /// More bytes than a description may have.
        case tooLarge
        /// A line is not what its clause says.
        case malformed
        /// More of something than one of the limits of `SessionDescription` allows.
        case tooMany
        /// Something that names one thing is there twice.
        case duplicate
        /// Something that this server cannot do without is not there.
        case missing
        /// Well-formed, and not what this server does.
        case unsupported
    }

    public var code: Code
    /// Counted from 1; nil where no single line is to blame.
    public var line: Int?
    /// A sentence for whoever wrote the client.
    public var message: String

    public init(_ code: Code, line: Int? = nil, _ message: String) {
        (self.code, self.line, self.message) = (code, line, message)
    }
}

extension SDPError: CustomStringConvertible {
    public var description: String { line.map { "Line \($0): \(message)" } ?? message }
}

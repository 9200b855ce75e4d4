/// The reason why a session description cannot be used.
public struct SDPError: Error, Hashable, Sendable {
    /// The kind of problem. `message` has the details.
    public enum Code: String, Hashable, Sendable {
        /// The description, or one of its lines, is too long.
        case tooLarge
        /// A line does not follow its grammar.
        case malformed
        /// A limit of `SessionDescription` is exceeded.
        case tooMany
        /// Something that must be unique appears twice.
        case duplicate
        /// Something that this server requires is missing.
        case missing
        /// The description is well-formed but not supported by this server.
        case unsupported
    }

    public var code: Code
    /// The number of the invalid line, counted from 1; nil if the error does not belong to one line.
    public var line: Int?
    /// A message for the developer of the client.
    public var message: String

    public init(_ code: Code, line: Int? = nil, _ message: String) {
        (self.code, self.line, self.message) = (code, line, message)
    }
}

extension SDPError: CustomStringConvertible {
    public var description: String { line.map { "Line \($0): \(message)" } ?? message }
}

/// The reason why Redis did not do what was requested.
///
/// ```swift
/// do { _ = try await redis.send(RedisCommand("GET", "key")) }
/// catch where error.code == .overloaded { … }
/// ```
package struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
    /// An error code. Later versions may add codes, so a `switch` needs a `default`.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        package let description: String

        private init(_ description: String) { self.description = description }

        /// Redis rejected the user name or the password.
        package static let authenticationFailed = Code("authenticationFailed")
        /// The client was closed.
        package static let closed = Code("closed")
        /// The connection was lost before the answer arrived, or could not be made. Retrying can help.
        package static let connectionLost = Code("connectionLost")
        /// The address or another setting is wrong.
        package static let invalidConfiguration = Code("invalidConfiguration")
        /// This server is a replica, or became one.
        package static let notPrimary = Code("notPrimary")
        /// Too many commands or bytes wait for answers. Retrying can help.
        package static let overloaded = Code("overloaded")
        /// The server sent something that is not RESP3, or an answer of the wrong type.
        package static let protocolViolation = Code("protocolViolation")
        /// Redis answered with an error. ``RedisError/serverCode`` says which.
        package static let rejected = Code("rejected")
        /// No answer arrived in time. Retrying can help.
        package static let timedOut = Code("timedOut")
        /// The server cannot be used at the moment: it loads its data, has too many connections, or refuses connections for
        /// another reason that can pass. Retrying can help.
        package static let unavailable = Code("unavailable")
        /// The server works, but cannot be used: its version, mode or configuration is wrong.
        package static let unsuitable = Code("unsuitable")
    }

    /// What kind of problem it is.
    package var code: Code
    /// A sentence for the operator. It contains no password and no argument of a command.
    package var message: String
    /// Whether Redis may have executed the command. If false, it certainly has not, except that a script that fails can
    /// have had effects before.
    package var mayHaveExecuted: Bool
    /// The code with which Redis's own error begins, such as `WRONGTYPE`: at most 32 capital letters, digits and
    /// underscores. Nil for errors of the client, and if Redis's error does not begin with a code.
    package var serverCode: String?

    package init(_ code: Code, _ message: String, mayHaveExecuted: Bool = false, serverCode: String? = nil) {
        (self.code, self.message) = (code, message)
        (self.mayHaveExecuted, self.serverCode) = (mayHaveExecuted, serverCode)
    }

    package var description: String {
        "\(message) (\(code)\(mayHaveExecuted ? "; the command may have been executed" : ""))"
    }
}

extension RedisError {
    /// The error for an error that the server sent as an answer.
    ///
    /// - Parameter text: the error's text, from ``RESPValue/errorText``.
    init(serverText text: String) {
        let code = Self.code(of: text)
        // Redis repeats the arguments of unknown commands, which can be secrets.
        let end = text.range(of: "with args beginning with") ?? text.endIndex
        var message = text[..<end]
        while let last = message.last, last == " " || last == "," { message.removeLast() }
        let isReplica = code == "READONLY" || code == "UNBLOCKED"
        self.init(isReplica ? .notPrimary : .rejected, "Redis answered: \(message)", serverCode: code)
    }

    /// The code with which an error of Redis begins; nil if it does not begin with one.
    static func code(of text: String) -> String? {
        let code = text.utf8.prefix { $0 != UInt8(ascii: " ") }
        guard (1...32).contains(code.count), code.allSatisfy(isCodeByte) else { return nil }
        return String(code)
    }

    private static func isCodeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }
}

extension String {
    /// Returns where the given text begins; nil if it is not contained. Foundation is not used here.
    fileprivate func range(of text: String) -> Index? {
        indices.first { self[$0...].hasPrefix(text) }
    }

    /// A text from a server for messages and logs: at most this many bytes, without control characters and without
    /// characters that change the direction of text. Invalid UTF-8 is replaced.
    init(printable bytes: some Sequence<UInt8>, maxBytes: Int = 256) {
        self = ""
        for scalar in String(decoding: Array(bytes.prefix(maxBytes)), as: UTF8.self).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: continue
            default:
                guard utf8.count + scalar.utf8.count <= maxBytes else { return }
                unicodeScalars.append(scalar)
            }
        }
    }
}

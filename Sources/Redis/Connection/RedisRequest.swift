import Crypto

/// A command with its arguments.
///
/// ```swift
/// RedisCommand("SET", "place:room:red", .bytes(tag), "NX", "PX", 3000)
/// ```
package struct RedisCommand: Hashable, Sendable, CustomStringConvertible {
    /// One argument of a command. Redis receives all arguments as bytes.
    ///
    /// Neither its description nor its mirror shows the bytes, because they can be secrets.
    package struct Argument: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
        CustomStringConvertible, CustomReflectable
    {
        let bytes: [UInt8]

        package init(stringLiteral value: String) { bytes = Array(value.utf8) }
        package init(integerLiteral value: Int) { bytes = Array("\(value)".utf8) }
        private init(_ bytes: [UInt8]) { self.bytes = bytes }

        package var description: String { "\(bytes.count) bytes" }
        /// Shows only the size, also to `dump`.
        package var customMirror: Mirror { Mirror(self, children: ["byteCount": bytes.count]) }

        /// An argument of any bytes.
        package static func bytes(_ bytes: [UInt8]) -> Self { Self(bytes) }
        /// A text, as UTF-8.
        package static func text(_ text: some StringProtocol) -> Self { Self(Array(text.utf8)) }
        /// An integer, as decimal digits.
        package static func number(_ number: some BinaryInteger) -> Self { Self(Array("\(number)".utf8)) }
    }

    /// The command's name, such as `XADD`.
    package let name: String
    /// What follows the name.
    package let arguments: [Argument]

    package init(_ name: String, _ arguments: [Argument]) { (self.name, self.arguments) = (name, arguments) }

    package init(_ name: String, _ arguments: Argument...) { self.init(name, arguments) }

    /// The name without the arguments, because they can be secrets.
    package var description: String { name }

    /// Appends the command in the form that Redis expects: an array of bulk strings.
    package func encode(into output: inout [UInt8]) {
        output.append(line: .array, "\(arguments.count + 1)".utf8)
        output.append(bulk: .bulkString, Array(name.utf8))
        for argument in arguments { output.append(bulk: .bulkString, argument.bytes) }
    }

    /// The size on the wire in bytes, rounded up.
    var byteCount: Int { arguments.reduce(name.utf8.count + 32) { $0 + $1.bytes.count + 16 } }
}

/// A script in Lua that Redis runs without executing other commands in between.
package struct RedisScript: Hashable, Sendable {
    /// The script's source.
    package let text: String
    /// The SHA-1 of the text in hexadecimal, by which Redis finds a script that it has seen before.
    package let sha1: String

    package init(_ text: String) {
        self.text = text
        sha1 = Insecure.SHA1.hash(data: Array(text.utf8)).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}

/// What Redis is requested to do.
package enum RedisRequest: Hashable, Sendable {
    /// A single command.
    case command(RedisCommand)
    /// Runs a script. Redis gets only the SHA-1 if it has the script, and otherwise the text.
    case script(RedisScript, keys: [RedisCommand.Argument], arguments: [RedisCommand.Argument])

    /// The command on the wire.
    ///
    /// - Parameter withText: whether to send a script's text instead of its SHA-1.
    func command(withText: Bool) -> RedisCommand {
        switch self {
        case .command(let command): command
        case .script(let script, let keys, let arguments):
            RedisCommand(
                withText ? "EVAL" : "EVALSHA",
                [.text(withText ? script.text : script.sha1), .number(keys.count)] + keys + arguments)
        }
    }

    /// The size on the wire in bytes, rounded up. Includes a script's text, because it may have to be sent.
    var byteCount: Int {
        switch self {
        case .command(let command): command.byteCount
        case .script: command(withText: true).byteCount
        }
    }

    var isScript: Bool { if case .script = self { true } else { false } }

    /// The kind of the push with which Redis confirms a subscription; nil for requests that are answered with a value.
    var confirmation: String? {
        guard case .command(let command) = self else { return nil }
        switch command.name.uppercased() {
        case "SUBSCRIBE": return "subscribe"
        case "PSUBSCRIBE": return "psubscribe"
        default: return nil
        }
    }
}

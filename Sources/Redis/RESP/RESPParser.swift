/// An error in what a server sent, or a value that exceeds a limit.
package enum RESPViolation: Error, Hashable, Sendable {
    /// The bytes are not RESP3.
    case malformed
    /// A streamed string or aggregate, which this parser does not support.
    case streamed
    /// Aggregates are nested more than ``RESPParser/Limits/maxDepth`` deep.
    case tooDeep
    /// A string, a line, an aggregate or the whole value is larger than the limits allow.
    case tooLarge
}

/// Reads RESP3 values from bytes that arrive in pieces of any size.
///
/// Invariants: the memory in use is proportional to the bytes that have arrived, whatever lengths the server declares.
/// Each byte is examined a constant number of times, however it is split. After a violation, the parser returns nothing
/// more, because it can no longer know where a value begins.
package struct RESPParser: Sendable {
    /// What one value may contain.
    package struct Limits: Sendable {
        /// How deep aggregates may be nested. The answers that we use have at most five levels.
        package var maxDepth = 32
        /// The number of elements of a value's aggregates together, as declared. Keys and values of maps count.
        package var maxElements = 1 << 20
        /// The bytes of one string. An entry of a stream has at most 256 KiB.
        package var maxBulkBytes = 16 << 20
        /// The bytes of a line: a simple string, an error, a number or a length.
        package var maxLineBytes = 64 << 10
        /// The bytes of a whole value. An answer to `XREAD` has 100 entries of at most 256 KiB.
        package var maxValueBytes = 64 << 20

        package init() {}
    }

    /// An aggregate whose elements have not all arrived.
    private struct Aggregate {
        let type: RESPType
        var missing: Int
        var elements: [RESPValue] = []
    }

    private enum Step {
        case needsMore
        case opened
        case value(RESPValue)
    }

    /// A buffer with more capacity than this is released when it is empty.
    private static let keptCapacity = 64 << 10

    private let limits: Limits
    private var buffer: [UInt8] = []
    /// The index of the first byte that is not part of a parsed value.
    private var position = 0
    /// The number of bytes after `position` that are known to contain no line break.
    private var scanned = 0
    /// The aggregates that contain the next value, the outermost first.
    private var open: [Aggregate] = []
    /// The string whose length has been read, but not its bytes.
    private var bulk: (type: RESPType, length: Int)?
    /// The bytes and the declared elements of the value so far.
    private var size = (bytes: 0, elements: 0)
    private var violation: RESPViolation?

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of bytes that have arrived and are not part of a complete string, line or length.
    package var bufferedBytes: Int { buffer.count - position }

    /// Adds bytes from the server. Call `next` until it returns nil before adding more.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        guard violation == nil else { return }
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= Self.keptCapacity)
            position = 0
        } else if position > buffer.count / 2 {
            // Moves fewer bytes than were parsed since the last time.
            buffer.removeSubrange(..<position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Returns the next complete value; nil if more bytes are needed.
    ///
    /// - Throws: the violation, also in all later calls.
    package mutating func next() throws(RESPViolation) -> RESPValue? {
        if let violation { throw violation }
        do throws(RESPViolation) {
            while true {
                switch try step() {
                case .needsMore: return nil
                case .opened: break
                case .value(let value):
                    guard let complete = close(with: value) else { continue }
                    size = (0, 0)
                    return complete
                }
            }
        } catch {
            violation = error
            (buffer, position, open, bulk) = ([], 0, [], nil)
            throw error
        }
    }

    /// Adds a value to the innermost aggregate. Returns the outermost value if it is complete.
    private mutating func close(with value: RESPValue) -> RESPValue? {
        var value = value
        while !open.isEmpty {
            let last = open.count - 1
            open[last].elements.append(value)
            open[last].missing -= 1
            guard open[last].missing == 0, let closed = open.popLast() else { return nil }
            value = Self.value(closed.type, closed.elements)
        }
        return value
    }

    private static func value(_ type: RESPType, _ elements: [RESPValue]) -> RESPValue {
        switch type {
        case .set: .set(elements)
        case .push: .push(elements)
        case .map: .map(pairs(elements[...]))
        // The last element is the value to which the attributes belong.
        case .attribute: .attributed(pairs(elements.dropLast()), elements.last ?? .null)
        default: .array(elements)
        }
    }

    private static func pairs(_ elements: ArraySlice<RESPValue>) -> [RESPValue.Pair] {
        zip(elements.indices, elements).compactMap { index, key in
            let isKey = (index - elements.startIndex).isMultiple(of: 2)
            return isKey && index + 1 < elements.endIndex ? .init(key, elements[index + 1]) : nil
        }
    }

    /// Reads a line or the bytes of a string.
    private mutating func step() throws(RESPViolation) -> Step {
        if let bulk { return try payload(bulk.type, bulk.length) }
        guard position < buffer.count else { return .needsMore }
        guard let type = RESPType(rawValue: buffer[position]) else {
            // `;` continues a streamed string, `.` ends a streamed aggregate.
            throw [UInt8(ascii: ";"), UInt8(ascii: ".")].contains(buffer[position]) ? .streamed : .malformed
        }
        guard let line = try line() else { return .needsMore }
        let text = buffer[line].dropFirst()
        switch type {
        case .bulkString, .bulkError, .verbatimString:
            if type == .bulkString, Self.isNull(text) { return .value(.null) }
            let length = try length(text)
            guard length <= limits.maxBulkBytes, size.bytes + length <= limits.maxValueBytes else { throw .tooLarge }
            guard type != .verbatimString || length >= 4 else { throw .malformed }
            bulk = (type, length)
            return try payload(type, length)
        case .array, .set, .map, .push, .attribute:
            if type == .array, Self.isNull(text) { return .value(.null) }
            return try openAggregate(type, length(text))
        case .null, .boolean, .number, .double, .bigNumber, .simpleString, .simpleError:
            guard let value = Self.scalar(type, text) else { throw .malformed }
            return .value(value)
        }
    }

    private mutating func openAggregate(_ type: RESPType, _ count: Int) throws(RESPViolation) -> Step {
        // A push is a message of its own, never a part of another value.
        guard type != .push || open.isEmpty else { throw .malformed }
        guard count <= limits.maxElements else { throw .tooLarge }
        let elements = type == .map || type == .attribute ? count * 2 : count
        size.elements += elements
        guard size.elements <= limits.maxElements else { throw .tooLarge }
        guard open.count < limits.maxDepth else { throw .tooDeep }
        // No memory is reserved for the declared number of elements, because they may never arrive.
        let missing = type == .attribute ? elements + 1 : elements
        guard missing > 0 else { return .value(Self.value(type, [])) }
        open.append(Aggregate(type: type, missing: missing))
        return .opened
    }

    /// Reads the bytes of a string whose length is known.
    private mutating func payload(_ type: RESPType, _ length: Int) throws(RESPViolation) -> Step {
        guard buffer.count - position >= length + 2 else { return .needsMore }
        let bytes = Array(buffer[position..<position + length])
        guard buffer[position + length] == 0x0D, buffer[position + length + 1] == 0x0A else { throw .malformed }
        try consume(length + 2)
        bulk = nil
        switch type {
        case .bulkError: return .value(.bulkError(bytes))
        case .verbatimString:
            guard bytes[3] == UInt8(ascii: ":") else { throw .malformed }
            return .value(.verbatimString(format: Array(bytes[..<3]), Array(bytes[4...])))
        default: return .value(.bulkString(bytes))
        }
    }

    /// Reads a line, with its type. Returns its place in the buffer without the line break; nil if more bytes are needed.
    private mutating func line() throws(RESPViolation) -> Range<Int>? {
        var index = position + scanned
        while index < buffer.count, buffer[index] != 0x0D {
            guard buffer[index] != 0x0A else { throw .malformed }
            guard index - position < limits.maxLineBytes else { throw .tooLarge }
            index += 1
        }
        scanned = index - position
        guard index + 1 < buffer.count else { return nil }
        guard buffer[index + 1] == 0x0A else { throw .malformed }
        let line = position..<index
        try consume(line.count + 2)
        return line
    }

    private mutating func consume(_ count: Int) throws(RESPViolation) {
        position += count
        scanned = 0
        size.bytes += count
        guard size.bytes <= limits.maxValueBytes else { throw .tooLarge }
    }

    private static func isNull(_ text: ArraySlice<UInt8>) -> Bool { text.elementsEqual("-1".utf8) }

    /// Reads the length of a string or an aggregate.
    private func length(_ text: ArraySlice<UInt8>) throws(RESPViolation) -> Int {
        guard text.first != UInt8(ascii: "?") else { throw .streamed }
        guard !text.isEmpty, text.allSatisfy(Self.isDigit) else { throw .malformed }
        // A number of more than 64 bits is a length too, only a large one.
        guard let length = Int(String(decoding: text, as: UTF8.self)) else { throw .tooLarge }
        return length
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isSign(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") }

    /// Reads a value that is a single line; nil if it is not well-formed.
    private static func scalar(_ type: RESPType, _ text: ArraySlice<UInt8>) -> RESPValue? {
        switch type {
        case .null: text.isEmpty ? .null : nil
        case .boolean:
            switch (text.first, text.count) {
            case (UInt8(ascii: "t"), 1): .boolean(true)
            case (UInt8(ascii: "f"), 1): .boolean(false)
            default: nil
            }
        case .number: Int64(String(decoding: text, as: UTF8.self)).map { .number($0) }
        case .double: double(text).map { .double($0) }
        case .bigNumber:
            if let digits = unsigned(text), !digits.isEmpty, digits.allSatisfy(isDigit) {
                .bigNumber(Array(text))
            } else {
                nil
            }
        case .simpleError: .simpleError(Array(text))
        default: .simpleString(Array(text))
        }
    }

    private static func unsigned(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let first = text.first else { return nil }
        return isSign(first) ? text.dropFirst() : text
    }

    private static func double(_ text: ArraySlice<UInt8>) -> Double? {
        let name = String(decoding: text, as: UTF8.self)
        switch name {
        case "inf": return .infinity
        case "-inf": return -.infinity
        // Redis writes what its C library prints, which has a sign for some NaNs.
        case "nan", "-nan": return .nan
        default:
            // Swift's parser accepts more: hexadecimal numbers and words.
            guard let first = unsigned(text)?.first, isDigit(first) || first == UInt8(ascii: "."),
                text.allSatisfy({ isDigit($0) || isSign($0) || [0x2E, 0x45, 0x65].contains($0) })
            else { return nil }
            return Double(name)
        }
    }
}

extension RESPValue {
    /// Appends this value in the form that a server sends.
    ///
    /// Simple strings and errors cannot contain line breaks. With a line break, the bulk form is written instead, which
    /// means the same.
    package func encode(into output: inout [UInt8]) {
        switch self {
        case .null: output.append(line: .null, [])
        case .boolean(let value): output.append(line: .boolean, [UInt8(ascii: value ? "t" : "f")])
        case .number(let number): output.append(line: .number, "\(number)".utf8)
        case .double(let number): output.append(line: .double, "\(number)".utf8)
        case .bigNumber(let digits): output.append(line: .bigNumber, digits)
        case .simpleString(let bytes): output.append(short: .simpleString, long: .bulkString, bytes)
        case .simpleError(let bytes): output.append(short: .simpleError, long: .bulkError, bytes)
        case .bulkString(let bytes): output.append(bulk: .bulkString, bytes)
        case .bulkError(let bytes): output.append(bulk: .bulkError, bytes)
        case .verbatimString(let format, let bytes):
            output.append(bulk: .verbatimString, format + [UInt8(ascii: ":")] + bytes)
        case .array(let elements): output.append(aggregate: .array, elements)
        case .set(let elements): output.append(aggregate: .set, elements)
        case .push(let elements): output.append(aggregate: .push, elements)
        case .map(let pairs): output.append(pairs: .map, pairs)
        case .attributed(let pairs, let value):
            output.append(pairs: .attribute, pairs)
            value.encode(into: &output)
        }
    }

    /// This value in the form that a server sends.
    package var encoded: [UInt8] {
        var output: [UInt8] = []
        encode(into: &output)
        return output
    }
}

extension [UInt8] {
    mutating func append(line type: RESPType, _ text: some Sequence<UInt8>) {
        append(type.rawValue)
        append(contentsOf: text)
        append(contentsOf: [0x0D, 0x0A])
    }

    mutating func append(bulk type: RESPType, _ bytes: [UInt8]) {
        append(line: type, "\(bytes.count)".utf8)
        append(contentsOf: bytes)
        append(contentsOf: [0x0D, 0x0A])
    }

    fileprivate mutating func append(short: RESPType, long: RESPType, _ bytes: [UInt8]) {
        if bytes.contains(0x0D) || bytes.contains(0x0A) {
            append(bulk: long, bytes)
        } else {
            append(line: short, bytes)
        }
    }

    fileprivate mutating func append(aggregate type: RESPType, _ elements: [RESPValue]) {
        append(line: type, "\(elements.count)".utf8)
        for element in elements { element.encode(into: &self) }
    }

    fileprivate mutating func append(pairs type: RESPType, _ pairs: [RESPValue.Pair]) {
        append(line: type, "\(pairs.count)".utf8)
        for pair in pairs {
            pair.key.encode(into: &self)
            pair.value.encode(into: &self)
        }
    }
}

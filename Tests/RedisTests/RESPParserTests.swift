import Testing

@testable import Redis

@Suite struct RESPParserTests {
    /// Parses the text after adding it in pieces that end at these indices.
    private func parse(
        _ bytes: [UInt8], splitAt splits: [Int] = [], limits: RESPParser.Limits = .init()
    ) throws(RESPViolation) -> [RESPValue] {
        var parser = RESPParser(limits: limits)
        var values: [RESPValue] = []
        for (start, end) in zip([0] + splits, splits + [bytes.count]) {
            parser.append(bytes[start..<end])
            while let value = try parser.next() { values.append(value) }
        }
        return values
    }

    private func parse(_ text: String, limits: RESPParser.Limits = .init()) throws(RESPViolation) -> [RESPValue] {
        try parse(Array(text.utf8), limits: limits)
    }

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// A value of each type, as a server sends it.
    private static let examples: [(text: String, value: RESPValue)] = [
        ("_\r\n", .null),
        ("$-1\r\n", .null),
        ("*-1\r\n", .null),
        ("#t\r\n", .boolean(true)),
        ("#f\r\n", .boolean(false)),
        (":0\r\n", .number(0)),
        (":+7\r\n", .number(7)),
        (":-9223372036854775808\r\n", .number(.min)),
        (",1.5\r\n", .double(1.5)),
        (",-10\r\n", .double(-10)),
        (",.5\r\n", .double(0.5)),
        (",1.5e-3\r\n", .double(0.0015)),
        (",1E+20\r\n", .double(1e20)),
        (",inf\r\n", .double(.infinity)),
        (",-inf\r\n", .double(-.infinity)),
        (
            "(3492890328409238509324850943850943825024385\r\n",
            .bigNumber(bytes("3492890328409238509324850943850943825024385"))
        ),
        ("(-1\r\n", .bigNumber(bytes("-1"))),
        ("+OK\r\n", .simpleString(bytes("OK"))),
        ("+\r\n", .simpleString([])),
        ("$5\r\nhe\r\no\r\n", .bulkString(bytes("he\r\no"))),
        ("$0\r\n\r\n", .bulkString([])),
        ("=8\r\ntxt:text\r\n", .verbatimString(format: bytes("txt"), bytes("text"))),
        ("=4\r\nmkd:\r\n", .verbatimString(format: bytes("mkd"), [])),
        ("-ERR no\r\n", .simpleError(bytes("ERR no"))),
        ("!6\r\nERR\r\n!\r\n", .bulkError(bytes("ERR\r\n!"))),
        ("*0\r\n", .array([])),
        ("*3\r\n:1\r\n*1\r\n_\r\n$1\r\na\r\n", .array([.number(1), .array([.null]), .bulkString(bytes("a"))])),
        ("~2\r\n:1\r\n:1\r\n", .set([.number(1), .number(1)])),
        ("~0\r\n", .set([])),
        ("%0\r\n", .map([])),
        (
            "%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n:2\r\n:3\r\n",
            .map([
                .init(.simpleString(bytes("a")), .number(1)),
                .init(.simpleString(bytes("b")), .map([.init(.number(2), .number(3))])),
            ])
        ),
        (">2\r\n+message\r\n+x\r\n", .push([.simpleString(bytes("message")), .simpleString(bytes("x"))])),
        (">0\r\n", .push([])),
        (
            "|1\r\n+ttl\r\n:5\r\n*1\r\n:1\r\n",
            .attributed([.init(.simpleString(bytes("ttl")), .number(5))], .array([.number(1)]))
        ),
        ("|0\r\n:1\r\n", .attributed([], .number(1))),
        (
            "*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n",
            .array([
                .attributed([.init(.simpleString(bytes("a")), .simpleString(bytes("b")))], .number(1)), .number(2),
            ])
        ),
    ]

    /// Bytes that are not RESP3, or not supported, and what is wrong with them.
    private static let faults: [(text: String, violation: RESPViolation)] = [
        ("x\r\n", .malformed),
        ("\r\n", .malformed),
        ("+a\nb\r\n", .malformed),
        ("+a\rb\r\n", .malformed),
        (":\r\n", .malformed),
        (":1a\r\n", .malformed),
        (": 1\r\n", .malformed),
        (":9223372036854775808\r\n", .malformed),
        (":--1\r\n", .malformed),
        (",\r\n", .malformed),
        (",0x1p3\r\n", .malformed),
        (",infinity\r\n", .malformed),
        (",1.2.3\r\n", .malformed),
        (",e5\r\n", .malformed),
        (",+\r\n", .malformed),
        ("(\r\n", .malformed),
        ("(-\r\n", .malformed),
        ("(1.5\r\n", .malformed),
        ("#\r\n", .malformed),
        ("#x\r\n", .malformed),
        ("#tt\r\n", .malformed),
        ("_x\r\n", .malformed),
        ("$\r\n", .malformed),
        ("$-2\r\n", .malformed),
        ("$+1\r\na\r\n", .malformed),
        ("$1 \r\na\r\n", .malformed),
        ("$1\r\nab\r\n", .malformed),
        ("$1\r\na\rb", .malformed),
        ("=3\r\ntxt\r\n", .malformed),
        ("=5\r\ntext:\r\n", .malformed),
        ("=-1\r\n", .malformed),
        ("!-1\r\n", .malformed),
        ("*\r\n", .malformed),
        ("*-2\r\n", .malformed),
        ("%-1\r\n", .malformed),
        ("~-1\r\n", .malformed),
        (">-1\r\n", .malformed),
        ("*1\r\n>1\r\n:1\r\n", .malformed),
        ("|0\r\n>0\r\n", .malformed),
        ("$?\r\n;4\r\nabcd\r\n;0\r\n", .streamed),
        ("*?\r\n:1\r\n.\r\n", .streamed),
        ("%?\r\n", .streamed),
        ("~?\r\n", .streamed),
        (";4\r\nabcd\r\n", .streamed),
        (".\r\n", .streamed),
        ("*2147483648\r\n", .tooLarge),
        ("%1073741824\r\n", .tooLarge),
        ("%9223372036854775807\r\n", .tooLarge),
        ("|9223372036854775807\r\n", .tooLarge),
        ("*99999999999999999999\r\n", .tooLarge),
        ("$9223372036854775807\r\n", .tooLarge),
        ("$99999999999999999999\r\n", .tooLarge),
        ("=9223372036854775807\r\n", .tooLarge),
        ("*1\r\n$2147483648\r\n", .tooLarge),
    ]

    @Test(arguments: examples.indices)
    func `reads a value of each type, split at any byte`(_ index: Int) throws {
        let (text, value) = Self.examples[index]
        let bytes = Array((text + text).utf8)
        #expect(try parse(bytes) == [value, value])
        for split in 0...bytes.count { #expect(try parse(bytes, splitAt: [split]) == [value, value]) }
        #expect(try parse(bytes, splitAt: Array(1..<bytes.count)) == [value, value])
        // Every proper part of a value is only incomplete.
        let length = text.utf8.count
        for end in 0..<length { #expect(try parse(Array(bytes[..<end])).isEmpty) }
    }

    @Test(arguments: examples.indices)
    func `encodes a value so that it is read back`(_ index: Int) throws {
        let value = Self.examples[index].value
        #expect(try parse(value.encoded) == [value])
    }

    @Test func `reads a NaN with any sign`() throws {
        for text in [",nan\r\n", ",-nan\r\n"] {
            guard case .double(let number)? = try parse(text).first else {
                Issue.record("\(text) is not a number")
                continue
            }
            #expect(number.isNaN)
        }
    }

    @Test(arguments: faults.indices)
    func `refuses what is malformed, at whatever byte it is split, and reads nothing more`(_ index: Int) throws {
        let (text, violation) = Self.faults[index]
        let bytes = Array(text.utf8)
        for splits in (0...bytes.count).map({ [$0] }) + [Array(1..<bytes.count)] {
            #expect(throws: violation) { try parse(bytes, splitAt: splits) }
        }
        var parser = RESPParser()
        parser.append(bytes)
        #expect(throws: violation) { try parser.next() }
        parser.append(Self.bytes("+OK\r\n"))
        #expect(throws: violation) { try parser.next() }
        #expect(parser.bufferedBytes == 0)
    }

    @Test func `returns the values before a violation`() throws {
        var parser = RESPParser()
        parser.append(Self.bytes("+OK\r\n:x\r\n"))
        #expect(try parser.next() == .simpleString(Self.bytes("OK")))
        #expect(throws: RESPViolation.malformed) { try parser.next() }
    }

    @Test func `encodes strings with line breaks in their bulk form`() {
        #expect(RESPValue.simpleString(Self.bytes("a\nb")).encoded == Self.bytes("$3\r\na\nb\r\n"))
        #expect(RESPValue.simpleError(Self.bytes("a\rb")).encoded == Self.bytes("!3\r\na\rb\r\n"))
    }

    // MARK: Limits

    @Test func `refuses values that are nested too deep`() throws {
        var limits = RESPParser.Limits()
        limits.maxDepth = 3
        let deep = { (type: String, depth: Int) in String(repeating: "\(type)1\r\n", count: depth) + ":1\r\n" }
        #expect(try parse(deep("*", 3), limits: limits).count == 1)
        #expect(throws: RESPViolation.tooDeep) { try parse(deep("*", 4), limits: limits) }
        #expect(throws: RESPViolation.tooDeep) {
            try parse(String(repeating: "|0\r\n", count: 4) + ":1\r\n", limits: limits)
        }
        // As soon as the level is opened, not when it is complete.
        #expect(throws: RESPViolation.tooDeep) { try parse(String(repeating: "*1\r\n", count: 1_000_000)) }
    }

    @Test func `counts the elements of all aggregates of a value`() throws {
        var limits = RESPParser.Limits()
        limits.maxElements = 4
        #expect(try parse("*2\r\n*2\r\n:1\r\n:1\r\n:1\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", limits: limits).count == 2)
        #expect(throws: RESPViolation.tooLarge) { try parse("*2\r\n*3\r\n", limits: limits) }
        #expect(try parse("%2\r\n:1\r\n:1\r\n:1\r\n:1\r\n", limits: limits).count == 1)
        #expect(throws: RESPViolation.tooLarge) { try parse("%3\r\n", limits: limits) }
    }

    @Test func `limits strings, lines and whole values`() throws {
        var limits = RESPParser.Limits()
        (limits.maxBulkBytes, limits.maxLineBytes, limits.maxValueBytes) = (8, 10, 40)
        #expect(try parse("$8\r\n12345678\r\n+123456789\r\n", limits: limits).count == 2)
        #expect(throws: RESPViolation.tooLarge) { try parse("$9\r\n", limits: limits) }
        #expect(throws: RESPViolation.tooLarge) { try parse("+1234567890", limits: limits) }
        let string = "$8\r\n12345678\r\n"
        #expect(try parse("*2\r\n" + string + string, limits: limits).count == 1)
        #expect(throws: RESPViolation.tooLarge) { try parse("*3\r\n" + string + string + "$8\r\n", limits: limits) }
        #expect(throws: RESPViolation.tooLarge) {
            try parse("*40\r\n" + String(repeating: "_\r\n", count: 13), limits: limits)
        }
        // The limits hold for each value, not for all together.
        #expect(try parse(String(repeating: string, count: 10), limits: limits).count == 10)
    }

    @Test func `keeps only what has arrived, whatever lengths are declared`() throws {
        var parser = RESPParser()
        // Each level declares what the limits allow, and nothing of it arrives.
        parser.append(Self.bytes("*1000000\r\n$16777216\r\nabc"))
        #expect(try parser.next() == nil)
        #expect(parser.bufferedBytes == 3)
        for _ in 0..<1000 { parser.append([0]) }
        #expect(try parser.next() == nil)
        #expect(parser.bufferedBytes == 1003)
    }

    @Test func `reads a large string that arrives byte by byte, and a long line, in linear time`() throws {
        let value = RESPValue.array([
            .bulkString([UInt8](repeating: 7, count: 200_000)), .simpleString([UInt8](repeating: 65, count: 60_000)),
        ])
        var parser = RESPParser()
        var found: [RESPValue] = []
        for byte in value.encoded {
            parser.append(CollectionOfOne(byte))
            if let next = try parser.next() { found.append(next) }
        }
        #expect(found == [value])
        #expect(parser.bufferedBytes == 0)
    }

    // MARK: Reading values

    @Test func `finds values in maps, through attributes`() throws {
        let map = RESPValue.attributed(
            [], .map([.init(.bulkString(Self.bytes("a")), .attributed([], .bulkString(Self.bytes("12"))))]))
        #expect(map["a"]?.text == "12")
        #expect(map["a"]?.integer == 12)
        #expect(map["b"] == nil)
        #expect(RESPValue.number(1)["a"] == nil)
        #expect(RESPValue.attributed([], .simpleError(Self.bytes("ERR"))).errorText == "ERR")
    }
}

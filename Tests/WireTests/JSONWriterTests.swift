import TestSupport
import Testing
import Wire

@Suite struct JSONWriterTests {
    private func text(_ value: JSONValue) -> String {
        var writer = JSONWriter()
        writer.value(value)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test func commasSeparateElementsAndMembers() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("a")
        writer.beginArray()
        writer.integer(1)
        writer.beginObject()
        writer.endObject()
        writer.beginArray()
        writer.endArray()
        writer.null()
        writer.endArray()
        writer.name("b")
        writer.bool(true)
        writer.name("c")
        writer.string("")
        writer.endObject()
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":[1,{},[],null],"b":true,"c":""}"#)
    }

    @Test func stringsAreEscapedAsJSONRequires() {
        #expect(text(.string("plain é €")) == "\"plain é €\"")
        #expect(text(.string("\"\\\n\r\t\u{0}\u{1F}/")) == #""\"\\\n\r\t\u0000\u001f/""#)
    }

    @Test func theSizeOfAStringIsThatOfItsJSON() {
        for string in ["", "plain é €", "\"\\\n\r\t\u{0}\u{1F}/\u{7F}", String(repeating: "\u{1}", count: 100)] {
            #expect(JSONWriter.size(of: string) == text(.string(string)).utf8.count - 2)
        }
    }

    @Test func numbersOfAnySizeAreValidJSON() throws {
        #expect(text(.integer(.min)) == "-9223372036854775808")
        for number in [0.1, -0.0, 5, 1e20, 1e-7, .greatestFiniteMagnitude, .leastNonzeroMagnitude] {
            let read = try JSONReader.parse(text(.number(number)).utf8)
            #expect(read == .number(number))
        }
        #expect(text(.number(.infinity)) == "null")
        #expect(text(.number(.nan)) == "null")
    }

    @Test func writtenValuesAreReadBackUnchanged() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("written values: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let value = randomValue(depth: 0, using: &generator)
            var writer = JSONWriter()
            writer.value(value)
            #expect(try JSONReader.parse(writer.bytes) == value, "seed \(seed)")
        }
    }

    private func randomValue(depth: Int, using generator: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth < 5 ? 7 : 5), using: &generator) {
        case 0: .null
        case 1: .bool(.random(using: &generator))
        case 2: .integer(.random(in: .min ... .max, using: &generator))
        case 3: .number(Double.random(in: -1e12...1e12, using: &generator))
        case 4: .string(randomString(using: &generator))
        case 5:
            .array(
                (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                    randomValue(depth: depth + 1, using: &generator)
                })
        default: .object(randomObject(depth: depth + 1, using: &generator))
        }
    }

    private func randomObject(depth: Int, using generator: inout SeededGenerator) -> JSONObject {
        var object = JSONObject()
        for index in 0..<Int.random(in: 0...4, using: &generator) {
            let name = "\(index)" + randomString(using: &generator)
            object.members.append(.init(name: name, value: randomValue(depth: depth, using: &generator)))
        }
        return object
    }

    private func randomString(using generator: inout SeededGenerator) -> String {
        let scalars = (0..<Int.random(in: 0...12, using: &generator)).compactMap { _ in
            // Half of the characters are ASCII, because only ASCII characters are escaped.
            Unicode.Scalar(UInt32.random(in: 0...(Bool.random(using: &generator) ? 0x7F : 0x10FFFF), using: &generator))
        }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars)
        return String(text)
    }
}

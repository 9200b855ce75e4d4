import NIOHTTP1
import Testing

@testable import Server

@Suite("Ranges of downloads") struct ByteRangeTests {
    @Test(arguments: [
        ("bytes=0-0", ByteRange.part(0..<1)), ("bytes=2-", .part(2..<10)), ("bytes=-3", .part(7..<10)),
        ("bytes=5-99", .part(5..<10)), ("bytes=0-18446744073709551615", .part(0..<10)), ("bytes=-99", .part(0..<10)),
        ("bytes=10-", .unsatisfiable), ("bytes=10-12", .unsatisfiable), ("bytes=-0", .unsatisfiable),
        ("bytes=5-4", .whole), ("bytes=-", .whole), ("bytes=0-1,3-4", .whole), ("items=0-1", .whole),
        ("bytes=a-b", .whole), ("", .whole), ("bytes=99999999999999999999-", .unsatisfiable),
    ])
    func `a range is read as RFC 9110 says`(text: String, range: ByteRange) {
        #expect(ByteRange.requested(["Range": text], tag: "\"x\"", size: 10) == range)
    }

    @Test func `a range of another version is ignored`() {
        #expect(ByteRange.requested(["Range": "bytes=1-2", "If-Range": "\"y\""], tag: "\"x\"", size: 10) == .whole)
        #expect(
            ByteRange.requested(["Range": "bytes=1-2", "If-Range": "\"x\""], tag: "\"x\"", size: 10) == .part(1..<3))
        #expect(ByteRange.requested(["Range": "bytes=-1"], tag: "\"x\"", size: 0) == .unsatisfiable)
    }
}

import MediaFiles
import Testing
import Wire

@testable import Broadcasting

@Suite("Requests that wait")
struct BlockingReloadsTests {

    @Test("directives are numbers, and a part needs its segment")
    func directives() throws {
        func parse(_ values: [String: String]) throws(HLSRefusal) -> HLSDirectives? {
            try HLSDirectives.parse { values[$0] }
        }
        #expect(try parse([:]) == nil)
        #expect(try parse(["_HLS_msn": "3", "_HLS_part": "1"]) == HLSDirectives(segment: 3, part: 1))
        for bad in [["_HLS_part": "1"], ["_HLS_msn": "-1"], ["_HLS_msn": "x"], ["_HLS_msn": "9999999999999999999"]] {
            #expect(throws: HLSRefusal.badRequest) { try parse(bad) }
        }
    }

    @Test("file names are parsed only as they are written")
    func names() {
        for file in [HLSFile.initialization(1), .segment(0), .segment(1_234_567), .part(12)] {
            #expect(HLSFile(name: file.name) == file)
        }
        for bad in [
            "seg-1.m4s", "seg-+00001.m4s", "../seg-000001.m4s", "init-01.mp4", "live.m3u8", "seg-000001.mp4", "",
        ] {
            #expect(HLSFile(name: bad) == nil)
        }
    }

    @Test("durations are rounded to five decimals")
    func seconds() {
        #expect(HLSSegment.seconds(.milliseconds(3_840)) == "3.84000")
        #expect(HLSSegment.seconds(.nanoseconds(999_996_000)) == "1.00000")
    }
}

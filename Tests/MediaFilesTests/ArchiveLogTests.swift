import MediaFiles
import TestSupport
import Testing
import Wire

@Suite("Event logs and manifests of archives")
struct ArchiveLogTests {
    /// One event of each kind, and its line.
    static let examples: [(ArchiveEvent, String)] = [
        (
            .archive(
                ArchiveOpening(
                    id: "a1", session: "s1", name: "Lesson \"1\"", canvas: ArchiveCanvas(width: 1280, height: 720),
                    layout: ArchiveLayout("bestFit", screenshareType: "pip"))),
            #"{"t":0,"e":"archive","id":"a1","sessionId":"s1","name":"Lesson \"1\"","resolution":"1280x720","#
                + #""layout":{"type":"bestFit","screenshareType":"pip"},"hasAudio":true,"hasVideo":true,"fps":25}"#
        ),
        (
            .archive(
                ArchiveOpening(
                    id: "a2", session: "s1", project: "4711", createdAt: Timestamp(milliseconds: 4), hasVideo: false)),
            #"{"t":0,"e":"archive","id":"a2","sessionId":"s1","partnerId":"4711","createdAt":4,"hasAudio":true,"#
                + #""hasVideo":false,"fps":25}"#
        ),
        (.began(at: Timestamp(milliseconds: 7)), #"{"t":0,"e":"began","at":7}"#),
        (
            .stream(
                ArchivedStream(
                    id: "x", connection: "c", connectionData: "{}", videoType: .screen, classes: ["focus"], name: "n")),
            #"{"t":0,"e":"stream","id":"x","connectionId":"c","connectionData":"{}","videoType":"screen","#
                + #""classes":["focus"],"name":"n"}"#
        ),
        (
            .file(ArchivedFile(stream: "x", name: "x.webm", codec: .vp8)),
            #"{"t":0,"e":"file","stream":"x","file":"x.webm","codec":"vp8"}"#
        ),
        (
            .file(ArchivedFile(stream: "x", name: "x1.webm", codec: .vp9, start: .milliseconds(3))),
            #"{"t":0,"e":"file","stream":"x","file":"x1.webm","codec":"vp9","start":3}"#
        ),
        (
            .fileEnd(stream: "x", name: "x.webm", size: 9),
            #"{"t":0,"e":"fileEnd","stream":"x","file":"x.webm","size":9}"#
        ),
        (.failed(stream: "x", reason: "cannotWrite"), #"{"t":0,"e":"failed","stream":"x","reason":"cannotWrite"}"#),
        (.video(stream: "x", isOn: false), #"{"t":0,"e":"video","stream":"x","on":false}"#),
        (.audio(stream: "x", isOn: true), #"{"t":0,"e":"audio","stream":"x","on":true}"#),
        (.size(stream: "x", width: 640, height: 480), #"{"t":0,"e":"size","stream":"x","w":640,"h":480}"#),
        (.rotation(stream: "x", degrees: 90), #"{"t":0,"e":"rotation","stream":"x","degrees":90}"#),
        (.classes(stream: "x", ["a", "b"]), #"{"t":0,"e":"classes","stream":"x","classes":["a","b"]}"#),
        (
            .layout(ArchiveLayout("custom", stylesheet: "stream{}")),
            #"{"t":0,"e":"layout","type":"custom","stylesheet":"stream{}"}"#
        ),
        (
            .include(stream: "x", audio: true, video: false),
            #"{"t":0,"e":"include","stream":"x","audio":true,"video":false}"#
        ),
        (.gone(stream: "x"), #"{"t":0,"e":"gone","stream":"x"}"#),
        (.lost(stream: "x", for: .milliseconds(40)), #"{"t":0,"e":"lost","stream":"x","ms":40}"#),
        (.pause(at: Timestamp(milliseconds: 5)), #"{"t":0,"e":"pause","at":5}"#),
        (.resume(at: Timestamp(milliseconds: 6)), #"{"t":0,"e":"resume","at":6}"#),
        (.end(reason: "user initiated"), #"{"t":0,"e":"end","reason":"user initiated"}"#),
    ]

    @Test("every event is written as documented, and is read back", arguments: examples.indices)
    func example(index: Int) {
        let (event, text) = Self.examples[index]
        let line = ArchiveLogLine(event, at: .zero)
        #expect(String(decoding: line.bytes, as: UTF8.self) == text + "\n")
        #expect(ArchiveLog(Array((text + "\n").utf8)).lines == [line])
    }

    @Test("a log cut anywhere yields all whole lines before the cut")
    func cutAnywhere() {
        let log = ArchiveLog(Self.examples.map { ArchiveLogLine($0.0, at: .milliseconds(7)) })
        var whole = 0
        for count in 0...log.bytes.count {
            let read = ArchiveLog(Array(log.bytes.prefix(count)))
            if count > 0, log.bytes[count - 1] == UInt8(ascii: "\n") { whole += 1 }
            #expect(read.lines == Array(log.lines.prefix(whole)))
            #expect(read.isCut == (count > 0 && log.bytes[count - 1] != UInt8(ascii: "\n")) && read.skipped == 0)
        }
    }

    @Test("damaged and unknown lines are skipped and counted, and the time never goes back")
    func damaged() {
        let text = """
            {"t":40,"e":"gone","stream":"x"}
            {"t":80,"e":"confetti"}
            {"t":-1,"e":"gone","stream":"x"}
            not JSON

            {"t":20,"e":"gone","stream":"y"}

            """
        let log = ArchiveLog(Array(text.utf8))
        #expect(log.lines.map(\.event) == [.gone(stream: "x"), .gone(stream: "y")])
        #expect(log.lines.map(\.time) == [.milliseconds(40), .milliseconds(40)])
        #expect(log.skipped == 3 && !log.isCut)
    }

    @Test(
        "a log cannot name a file outside its folder",
        arguments: [
            "../x.webm", "/etc/x.mkv", "-i.webm", "x.mp4", "x", ".webm", "a/b.webm", "x.webm\0", "é.webm", "a.b.webm",
        ])
    func names(name: String) {
        #expect(!ArchiveFileName.isValid(name))
        let line = ArchiveLogLine(.file(ArchivedFile(stream: "x", name: name, codec: .vp8)), at: .zero)
        #expect(ArchiveLog(line.bytes).lines.isEmpty && ArchiveLog(line.bytes).skipped == 1)
    }

    @Test("later files of a stream are numbered from 1, and H.264 is in Matroska files")
    func fileNames() {
        #expect(ArchiveFileName.of(stream: "x", index: 0, codec: .opus) == "x.webm")
        #expect(ArchiveFileName.of(stream: "x", index: 2, codec: .h264) == "x2.mkv")
        #expect(ArchiveFileName.isValid("0f3a-9.webm"))
    }

    @Test("a manifest has OpenTok's members, and is read back")
    func manifest() throws {
        let manifest = ArchiveManifest(
            id: "a1", partnerID: "10000000", session: "s1", createdAt: Timestamp(milliseconds: 1_700_000_000_000),
            files: [ArchiveManifestFile(stream: "x", name: "x.webm", size: 9, start: .zero, stop: .seconds(2))])
        let text = """
            {"id":"a1","partnerId":10000000,"sessionId":"s1","createdAt":1700000000000,"files":[{"streamId":"x",\
            "filename":"x.webm","size":9,"startTimeOffset":0,"stopTimeOffset":2000,"connectionData":"","videoType":"camera"}]}
            """
        #expect(String(decoding: manifest.json, as: UTF8.self) == text)
        #expect(try ArchiveManifest(Array(text.utf8)) == manifest)
        var other = manifest
        (other.partnerID, other.duration, other.reason) = ("0x1", .seconds(2), "disk full")
        #expect(try ArchiveManifest(other.json) == other)
        #expect(throws: WireError.self) { try ArchiveManifest(Array(text.utf8.dropLast())) }
    }

    @Test("no damaged log is a trap")
    func mutated() {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        let log = ArchiveLog(Self.examples.map { ArchiveLogLine($0.0, at: .zero) }).bytes
        for _ in 0..<2_000 {
            var bytes = log
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let read = ArchiveLog(bytes)
            #expect(ArchiveLog(read.bytes).lines == read.lines, "seed \(seed)")
        }
    }
}

import ConfabHeadless
import Foundation
import MediaFiles
import Synchronization
import Testing

@testable import Peers
@testable import Robots

@Suite("What a bot receives")
struct BotRecorderTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "confab-recorder-\(UUID())")
    private let lines = Lines()

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
        func add(_ line: String) { all.withLock { $0.append(line) } }
    }

    private func recorder(recording: Bool = true) throws -> StreamRecorder {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return StreamRecorder("s", directory: recording ? folder.path : nil) { [lines] in lines.add($0) }
    }

    private func picture(_ number: Int) -> EncodedFrame {
        let bytes = vp8Frame(isKeyframe: number % 10 == 0, size: 100, filler: UInt8(number))
        return EncodedFrame(.vp8, bytes, at: .milliseconds(100 * number), isKeyframe: number % 10 == 0)
    }

    private func sound(_ number: Int) -> EncodedFrame {
        EncodedFrame(.opus, [0x78, 1, 2], at: .milliseconds(20 * number))
    }

    private func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: folder.appending(path: name))) }

    @Test("is written to one file for the video and one for the audio, and counted")
    func files() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let recorder = try recorder()
        // A stream that is joined late does not begin at zero.
        for number in 10..<30 { await recorder.take(picture(number)) }
        for number in 0..<60 { await recorder.take(sound(number)) }
        await recorder.finish()
        #expect(try ivf(bytes("s-1.ivf")).frames.map(\.time) == (0..<20).map { $0 * 9_000 })
        #expect(try opus(bytes("s-1.ogg")).packets.count == 60)
        #expect(await recorder.summary == "Received 20 video frames and 60 audio packets")
        #expect(lines.all.withLock { $0 } == ["ivf", "ogg"].map { "Recording \(folder.path)/s-1.\($0)" })
    }

    @Test("begins another file when it comes from another source, whose times begin again")
    func sources() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let recorder = try recorder()
        for _ in 0..<2 {
            await recorder.begin(.vp8)
            await recorder.begin(.opus)
            for number in 0..<5 { await recorder.take(picture(number)) }
            for number in 0..<5 { await recorder.take(sound(number)) }
        }
        await recorder.finish()
        for number in 1...2 {
            #expect(try ivf(bytes("s-\(number).ivf")).frames.map(\.time) == (0..<5).map { $0 * 9_000 })
            #expect(try opus(bytes("s-\(number).ogg")).packets.count == 5)
        }
        #expect(await recorder.summary == "Received 10 video frames and 10 audio packets")
    }

    @Test("is only counted by a bot that does not record")
    func counted() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let recorder = try recorder(recording: false)
        for number in 0..<3 { await recorder.take(picture(number)) }
        await recorder.finish()
        #expect(await recorder.summary == "Received 3 video frames and 0 audio packets")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
}

import LiveComposing
import Testing

@testable import Compositor

/// Decodes streams that ffmpeg encodes.
@Suite("The decoders of streams", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
struct StreamDecodersTests {
    private static let open = VideoQueue.Item.decoder(.vp8, configuration: [])

    private static func frames(_ inputs: [CompositorInput]) -> [VideoQueue.Item] {
        inputs.compactMap { input in
            guard case .video(_, let time, let isKeyframe, let bytes) = input else { return nil }
            return .frame(.init(time: time, isKeyframe: isKeyframe, bytes: bytes))
        }
    }

    @Test("refuse frames of more than two canvases of 1920x1080, and decode smaller ones")
    func sizes() throws {
        try TestMedia.with { media in
            for (size, isAllowed) in [("2560x1440", true), ("3840x2160", false)] {
                let decoders = StreamDecoders()
                let frames = Self.frames(try media.video(TestMedia.gray(80, size: size, seconds: 0.04), of: 1))
                #expect(frames.count == 1)
                #expect(decoders.decode([Self.open] + frames, of: 1) == isAllowed, "\(size)")
                #expect((decoders.image(of: 1) != nil) == isAllowed, "\(size)")
                #expect(decoders.takeFaults().map(\.stream) == (isAllowed ? [] : [1]))
            }
        }
    }

    @Test("close the decoder of a hidden stream, which needs another decoder before its next frame")
    func hidden() throws {
        try TestMedia.with { media in
            let decoders = StreamDecoders()
            let frames = Self.frames(try media.video(TestMedia.gray(80, seconds: 0.04), of: 1))
            #expect(decoders.decode([Self.open] + frames, of: 1) && decoders.image(of: 1) != nil)
            decoders.hide(1)
            #expect(decoders.image(of: 1) == nil)
            #expect(decoders.decode(frames, of: 1) && decoders.image(of: 1) == nil)
            #expect(decoders.decode([Self.open] + frames, of: 1) && decoders.image(of: 1) != nil)
            #expect(decoders.takeFaults().isEmpty)
        }
    }

    @Test("report damaged audio and damaged video of a stream separately, each once until it is decoded again")
    func faults() throws {
        try TestMedia.with { media in
            let decoders = StreamDecoders()
            let good = Self.frames(try media.video(TestMedia.gray(80, seconds: 0.04), of: 1))
            let bad = [VideoQueue.Item.frame(.init(time: .zero, isKeyframe: true, bytes: [0xff, 0xff, 0xff]))]
            guard case .audio(_, _, let packet)? = try media.audio("sine=f=440:d=0.1", of: 1).first else {
                Issue.record("ffmpeg made no audio")
                return
            }
            let damaged: [UInt8] = [0xff, 0xff, 0xff]
            func faults(_ body: () -> Void) -> Int {
                body()
                return decoders.takeFaults().count
            }
            #expect(faults { _ = decoders.decode([Self.open] + good, of: 1) } == 0)
            #expect(faults { _ = decoders.decodeAudio(damaged, of: 1) } == 1)
            // Good video says nothing about the audio.
            #expect(faults { _ = decoders.decode(good, of: 1) } == 0)
            #expect(faults { _ = decoders.decodeAudio(damaged, of: 1) } == 0)
            #expect(faults { _ = decoders.decode(bad, of: 1) } == 1)
            #expect(faults { _ = decoders.decode(bad, of: 1) } == 0)
            #expect(faults { _ = decoders.decodeAudio(packet, of: 1) } == 0)
            #expect(faults { _ = decoders.decodeAudio(damaged, of: 1) } == 1)
            #expect(faults { _ = decoders.decode(bad, of: 1) } == 0)
            #expect(decoders.damaged == 6)
        }
    }
}

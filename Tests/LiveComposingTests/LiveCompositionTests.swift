import Testing

@testable import LiveComposing

/// Scripts of what the server sends, and what the compositor then decodes and draws.
@Suite("A live composition")
struct LiveCompositionTests {
    private var composition = LiveComposition(CompositorConfiguration())

    private static func cell(_ stream: UInt32, x: Int = 0) -> CompositorCell {
        CompositorCell(stream: stream, x: x, y: 0, width: 640, height: 720)
    }

    private mutating func take(_ input: CompositorInput, now: Int = 0) -> [LiveComposition.Effect] {
        composition.take(input, now: .milliseconds(now))
    }

    private mutating func video(_ stream: UInt32, _ time: Int, key: Bool = false) -> [LiveComposition.Effect] {
        take(.video(stream: stream, at: .milliseconds(time), isKeyframe: key, [1]), now: time)
    }

    private static let request = LiveComposition.Effect.send(.needKeyframe(stream: 1))

    @Test("decodes a stream that is drawn, from its first keyframe on, which it requests again each 500 ms")
    mutating func keyframes() {
        #expect(take(.open(stream: 1, .vp8, configuration: [])) == [])
        #expect(take(.layout(CompositorLayout([Self.cell(1)]), at: .zero)) == [Self.request])
        #expect(video(1, 100) == [] && video(1, 499) == [])
        #expect(video(1, 500) == [Self.request])
        #expect(composition.requests(now: .milliseconds(999)) == [])
        #expect(composition.requests(now: .milliseconds(1_000)) == [Self.request])
        #expect(video(1, 1_200, key: true) == [])
        #expect(composition.requests(now: .seconds(9)) == [])
        #expect(composition.plan(for: .milliseconds(1_199)).decode.isEmpty)
        #expect(composition.plan(for: .milliseconds(1_200)).decode[1]?.count == 2)
        #expect(composition.dropped == 3)
        composition.decoderFailed(1)
        #expect(composition.requests(now: .seconds(10)) == [Self.request])
    }

    @Test("changes the layout on the frame of its time, and replaces layouts that are not due yet")
    mutating func layouts() {
        let (left, right) = (CompositorLayout([Self.cell(1)]), CompositorLayout([Self.cell(1, x: 640)]))
        for (layout, time) in [(left, 40), (right, 80), (CompositorLayout(), 90), (right, 85)] {
            _ = take(.layout(layout, at: .milliseconds(time)))
        }
        #expect(composition.plan(for: .zero).cells == [])
        #expect(composition.plan(for: .milliseconds(40)).cells == left.cells)
        #expect(composition.plan(for: .milliseconds(79)).cells == left.cells)
        for time in [80, 90, 1_000] { #expect(composition.plan(for: .milliseconds(time)).cells == right.cells) }
        for index in 0..<1_000 { _ = take(.layout(right, at: .seconds(10 + index))) }
        _ = take(.layout(left, at: .seconds(2_000)))
        #expect(composition.plan(for: .seconds(3_000)).cells == left.cells)
    }

    @Test("decodes no stream that is not drawn, and requests a keyframe when the layout is sent in which it is")
    mutating func hidden() {
        _ = take(.open(stream: 1, .vp8, configuration: []))
        #expect(video(1, 0, key: true) == [] && video(1, 40) == [])
        #expect(composition.plan(for: .seconds(1)).decode.isEmpty)
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .seconds(2)), now: 1_500)
        #expect(composition.requests(now: .milliseconds(2_000)) == [Self.request])
        // The keyframe is there before the layout is due.
        _ = video(1, 1_600, key: true)
        #expect(composition.plan(for: .seconds(2)).decode[1]?.count == 2)
        _ = take(.layout(CompositorLayout(), at: .seconds(3)), now: 2_900)
        _ = video(1, 2_980, key: true)
        #expect(composition.plan(for: .seconds(3)).decode.isEmpty)
    }

    @Test("hides a stream when its camera is turned off, after what it had sent, and shows it again from a keyframe on")
    mutating func cameraOff() {
        _ = take(.open(stream: 1, .vp8, configuration: [7]))
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .zero))
        _ = video(1, 40, key: true)
        // These frames are later than the end of the video.
        _ = take(.video(stream: 1, at: .milliseconds(200), isKeyframe: false, [1]), now: 80)
        #expect(take(.open(stream: 1, nil, configuration: []), now: 120) == [])
        #expect(take(.audio(stream: 1, at: .zero, [1]), now: 130).count == 1)
        let last = composition.plan(for: .milliseconds(120))
        #expect(last.decode[1]?.count == 2 && last.hidden == [])
        for time in [160, 240, 1_000] {
            let plan = composition.plan(for: .milliseconds(time))
            #expect(plan.hidden == [1] && plan.decode.isEmpty && plan.ended.isEmpty, "\(time) ms")
        }
        #expect(take(.open(stream: 1, .vp8, configuration: [7]), now: 1_100) == [Self.request])
        _ = video(1, 1_200, key: true)
        let plan = composition.plan(for: .milliseconds(1_200))
        #expect(plan.hidden == [] && plan.decode[1]?.first == .decoder(.vp8, configuration: [7]))
    }

    @Test("opens the decoder again for a stream that was hidden")
    mutating func hiddenDecoder() {
        _ = take(.open(stream: 1, .vp9, configuration: [7]))
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .zero))
        _ = video(1, 0, key: true)
        #expect(composition.plan(for: .zero).decode[1]?.count == 2)
        _ = take(.layout(CompositorLayout(), at: .milliseconds(40)), now: 40)
        #expect(composition.plan(for: .milliseconds(40)).hidden == [1])
        #expect(take(.layout(CompositorLayout([Self.cell(1)]), at: .seconds(1)), now: 900) == [Self.request])
        _ = video(1, 1_000, key: true)
        #expect(composition.plan(for: .seconds(1)).decode[1]?.first == .decoder(.vp9, configuration: [7]))
    }

    @Test("drops a frame whose time is more than 10 s ahead, and continues at the next keyframe")
    mutating func farAhead() {
        _ = take(.open(stream: 1, .vp8, configuration: []))
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .zero))
        _ = video(1, 0, key: true)
        func frame(at time: Int) -> CompositorInput {
            .video(stream: 1, at: .milliseconds(time), isKeyframe: true, [1])
        }
        #expect(take(frame(at: 11_000), now: 1_000) == [] && composition.dropped == 0)
        #expect(take(frame(at: 11_001), now: 1_000) == [Self.request] && composition.dropped == 1)
        #expect(video(1, 1_040) == [] && composition.dropped == 2)
        _ = video(1, 1_080, key: true)
        #expect(composition.requests(now: .seconds(9)) == [])
        _ = take(.video(stream: 1, at: CompositorMessage.maxTime, isKeyframe: true, [1]), now: 1_120)
        #expect(composition.dropped == 3)
    }

    @Test("composes what was sent before a stream was closed, then forgets it")
    mutating func closing() {
        _ = take(.open(stream: 1, .vp8, configuration: []))
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .zero))
        _ = video(1, 80, key: true)
        #expect(take(.close(stream: 1), now: 120) == [] && composition.openStreams == 0)
        #expect(take(.audio(stream: 1, at: .zero, [1]), now: 130) == [])
        _ = video(1, 120)
        let plan = composition.plan(for: .milliseconds(120))
        #expect(plan.decode[1]?.count == 2 && plan.ended == [])
        #expect(composition.plan(for: .milliseconds(160)).ended == [1])
        // Another stream may get its number.
        _ = take(.open(stream: 1, .av1, configuration: []))
        #expect(composition.openStreams == 1)
    }

    @Test("passes audio on at once, also of streams without video, and ignores streams that are not open")
    mutating func audio() {
        #expect(take(.audio(stream: 1, at: .zero, [1])) == [])
        _ = take(.open(stream: 1, nil, configuration: []))
        #expect(take(.audio(stream: 1, at: .seconds(1), [1])) == [.audio(stream: 1, at: .seconds(1), [1])])
        _ = take(.layout(CompositorLayout([Self.cell(1)]), at: .zero))
        #expect(video(1, 0) == [] && composition.requests(now: .seconds(1)) == [])
    }

    @Test("reports what it cannot do, and continues")
    mutating func faults() {
        func isFault(_ effects: [LiveComposition.Effect]) -> Bool {
            guard case .send(.fault(let fault))? = effects.first else { return false }
            return !fault.isFatal
        }
        #expect(isFault(take(.config(CompositorConfiguration(), at: .zero))))
        #expect(isFault(take(.layout(CompositorLayout([Self.cell(1, x: 642)]), at: .zero))))
        #expect(isFault(take(.layout(CompositorLayout([Self.cell(1), Self.cell(1)]), at: .zero))))
        for id in 1...200 {
            #expect(
                isFault(take(.open(stream: UInt32(id), nil, configuration: []))) == (id > LiveComposition.maxStreams))
        }
    }

    @Test("stops at the time that the server says, but not later than now")
    mutating func stop() {
        #expect(take(.stop(at: .seconds(3)), now: 4_000) == [.stop(at: .seconds(3))])
        #expect(take(.stop(at: .seconds(9)), now: 4_000) == [.stop(at: .seconds(4))])
    }
}
